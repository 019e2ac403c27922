//! Code shared by the C functions of the C ABI and of the pthread drop-in: pthreads' way of
//! returning errors, clocks, times, and a once whose routine may be left in any way ([`once`]).
//!
//! A lock function returns 0 or an error number and leaves `errno` alone. Each one is a single
//! expression: [`answer`] around a closure in which `?` returns the number of the error, whatever
//! its type.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod once;

use core::ffi::c_int;
use core::time::Duration;
use libc::timespec;
use waitword::{Clock, CountError, Deadline, Error, LockError, RobustError, RwLockError};

/// An error number, never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number(pub c_int);

/// `EINVAL`.
pub const INVALID: Number = Number(libc::EINVAL);

macro_rules! numbers_of {
    ($($error:ty),*) => {$(
        impl From<$error> for Number {
            // Keeps the error path out of successful calls.
            #[cold]
            #[inline(never)]
            fn from(error: $error) -> Self {
                Self(error.raw_os_error())
            }
        }
    )*};
}

numbers_of!(CountError, Error, LockError, RobustError, RwLockError);

/// 0, or the error's number. Inlined, so that the closure becomes the function's own code.
#[inline(always)]
pub fn answer(call: impl FnOnce() -> Result<(), Number>) -> c_int {
    match call() {
        Ok(()) => 0,
        Err(Number(number)) => number,
    }
}

/// The clock with this C number.
///
/// # Errors
/// `EINVAL`: not a clock that can be waited on.
#[inline]
pub fn clock(clock: c_int) -> Result<Clock, Number> {
    match clock {
        libc::CLOCK_REALTIME => Ok(Clock::Realtime),
        libc::CLOCK_MONOTONIC => Ok(Clock::Monotonic),
        _ => Err(INVALID),
    }
}

/// The time behind a C pointer. A time before the clock's zero has passed (as in glibc).
///
/// # Errors
/// `EINVAL`: NULL, or nanoseconds outside 0 to 10^9 - 1.
///
/// # Safety
/// The pointer is NULL or points to a time.
pub unsafe fn deadline(clock: Clock, time: *const timespec) -> Result<Deadline, Number> {
    if time.is_null() {
        return Err(INVALID);
    }
    // SAFETY: not NULL, so by this function's contract a time. It may be misaligned, hence the
    // unaligned read.
    let time = unsafe { time.read_unaligned() };
    let nanoseconds = u32::try_from(time.tv_nsec).map_err(|_| INVALID)?;
    if nanoseconds >= 1_000_000_000 {
        return Err(INVALID);
    }
    let since_zero = match u64::try_from(time.tv_sec) {
        Ok(seconds) => Duration::new(seconds, nanoseconds),
        Err(_) => Duration::ZERO,
    };
    Ok(Deadline::at(clock, since_zero))
}

/// The time of this C clock behind a C pointer.
///
/// # Errors
/// `EINVAL`: not a clock that can be waited on, or as [`deadline`].
///
/// # Safety
/// As [`deadline`].
#[inline]
pub unsafe fn deadline_on(clock: c_int, time: *const timespec) -> Result<Deadline, Number> {
    // SAFETY: forwards this function's own contract.
    unsafe { deadline(self::clock(clock)?, time) }
}

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
