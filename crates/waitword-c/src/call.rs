//! What the functions of the locks share: pthread's way to answer, the object behind a pointer, times.
//!
//! A lock's function returns 0 or an error number and leaves `errno` alone. Each is one expression: [`answer`] around
//! a closure in which `?` ends it with the number of whatever went wrong, whichever error type it came in.

use core::ffi::{c_int, c_uint};
use core::mem::{align_of, size_of};
use core::time::Duration;
use libc::timespec;
use waitword_core::{
    Clock, CountError, Deadline, Error, LockError, RobustError, RwLockError, Scope,
};

use crate::lock_flags::WW_PROCESS_SHARED;

/// An error number, never 0.
pub(crate) struct Number(pub(crate) c_int);

pub(crate) const INVALID: Number = Number(libc::EINVAL);

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
pub(crate) fn answer(call: impl FnOnce() -> Result<(), Number>) -> c_int {
    match call() {
        Ok(()) => 0,
        Err(Number(number)) => number,
    }
}

/// The Rust object that lies behind C's pointer.
///
/// Whatever bytes are there are a Rust object of that kind, if not always a sensible one: all are made of atomics and
/// numbers. That the two types have one layout is seen when this is compiled.
///
/// # Errors
/// `EINVAL`: NULL, or not aligned.
///
/// # Safety
/// NULL, or memory of this size that lives as long as `'a` and that only this library changes.
#[inline(always)]
pub(crate) unsafe fn object<'a, C, R>(pointer: *const C) -> Result<&'a R, Number> {
    same_layout::<C, R>();
    if pointer.is_null() || !pointer.is_aligned() {
        return Err(INVALID);
    }
    // SAFETY: aligned as C is, which is as R is; the rest is the caller's promise.
    Ok(unsafe { &*pointer.cast::<R>() })
}

/// Puts a new Rust object behind C's pointer, whatever was there.
///
/// # Errors
/// `EINVAL`: NULL, or not aligned.
///
/// # Safety
/// NULL, or memory of this size that nobody uses meanwhile.
#[inline(always)]
pub(crate) unsafe fn put<C, R>(pointer: *mut C, object: R) -> Result<(), Number> {
    same_layout::<C, R>();
    if pointer.is_null() || !pointer.is_aligned() {
        return Err(INVALID);
    }
    // SAFETY: as above.
    unsafe { pointer.cast::<R>().write(object) };
    Ok(())
}

const fn same_layout<C, R>() {
    const {
        assert!(size_of::<C>() == size_of::<R>());
        assert!(align_of::<C>() == align_of::<R>());
        // Nothing is dropped that C does not know of.
        assert!(!core::mem::needs_drop::<R>());
    }
}

/// The scope that `flags` say, for an object that has no other flags.
///
/// # Errors
/// `EINVAL`: other flags.
pub(crate) fn scope_alone(flags: c_uint) -> Result<Scope, Number> {
    match flags & !WW_PROCESS_SHARED {
        0 => Ok(scope(flags)),
        _ => Err(INVALID),
    }
}

/// The scope that `flags` say among others.
pub(crate) fn scope(flags: c_uint) -> Scope {
    match flags & WW_PROCESS_SHARED {
        0 => Scope::Private,
        _ => Scope::Shared,
    }
}

/// The clock that C's number means.
///
/// # Errors
/// `EINVAL`: not a clock to wait by.
#[inline]
pub(crate) fn clock(clock: c_int) -> Result<Clock, Number> {
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
pub(crate) unsafe fn deadline(clock: Clock, time: *const timespec) -> Result<Deadline, Number> {
    // SAFETY: the caller's promise.
    let Some(time) = (unsafe { time.as_ref() }) else {
        return Err(INVALID);
    };
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
