//! What the C functions of the C ABI and of the pthread drop-in share: pthread's way to answer,
//! clocks, times, a once that any end of its routine ends ([`once`]).
//!
//! A lock's function returns 0 or an error number and leaves `errno` alone. Each is one expression: [`answer`] around
//! a closure in which `?` ends it with the number of whatever went wrong, whichever error type it came in.

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
            // Out of the way of the calls that succeed.
            #[cold]
            #[inline(never)]
            fn from(error: $error) -> Self {
                Self(error.raw_os_error())
            }
        }
    )*};
}

numbers_of!(CountError, Error, LockError, RobustError, RwLockError);

/// 0, or the error's number. Inlined, so that what looks like a closure is the function's own code.
#[inline(always)]
pub fn answer(call: impl FnOnce() -> Result<(), Number>) -> c_int {
    match call() {
        Ok(()) => 0,
        Err(Number(number)) => number,
    }
}

/// The clock that C's number means.
///
/// # Errors
/// `EINVAL`: not a clock to wait by.
#[inline]
pub fn clock(clock: c_int) -> Result<Clock, Number> {
    match clock {
        libc::CLOCK_REALTIME => Ok(Clock::Realtime),
        libc::CLOCK_MONOTONIC => Ok(Clock::Monotonic),
        _ => Err(INVALID),
    }
}

/// The time that C's pointer leads to. One before the clock's zero has passed (so glibc, too).
///
/// # Errors
/// `EINVAL`: NULL, or nanoseconds that are not below 10^9.
///
/// # Safety
/// NULL, or a time.
pub unsafe fn deadline(clock: Clock, time: *const timespec) -> Result<Deadline, Number> {
    if time.is_null() {
        return Err(INVALID);
    }
    // SAFETY: not NULL, so a time, by this function's contract. It may be misaligned, and is read
    // so.
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
