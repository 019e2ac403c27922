//! Code shared by the lock functions: the object behind a pointer, and its scope. Return values,
//! clocks and times are in `waitword-abi`.

use core::ffi::c_uint;
use core::mem::{align_of, size_of};
use libc::timespec;
use waitword_core::{Clock, Deadline, RwLockError, Scope};

pub(crate) use waitword_abi::{INVALID, Number, answer, clock, deadline};

use crate::lock_flags::WW_PROCESS_SHARED;

/// The Rust object behind a C pointer.
///
/// Any bytes there form a Rust object of that type, though not always a meaningful one: all these
/// types consist of atomics and numbers. A compile-time check shows that the two types have the
/// same layout.
///
/// # Errors
/// `EINVAL`: NULL, or misaligned.
///
/// # Safety
/// The pointer is NULL or points to an object of this type, in the sense of the C functions' own
/// safety sections: memory of this size that stays in place for the call, `'a`, or until another
/// thread may free it by the object's own rules, and that only this library changes.
#[inline(always)]
pub(crate) unsafe fn object<'a, C, R>(pointer: *const C) -> Result<&'a R, Number> {
    same_layout::<C, R>();
    if pointer.is_null() || !pointer.is_aligned() {
        return Err(INVALID);
    }
    // SAFETY: not NULL, so by this function's contract it points to memory of R's size that lives
    // as long as the reference. It is aligned for C, which has R's alignment (`same_layout`). Any
    // bytes are a valid R, and everything that this library changes there is atomic.
    Ok(unsafe { &*pointer.cast::<R>() })
}

/// Writes a new Rust object behind a C pointer, whatever was there before.
///
/// # Errors
/// `EINVAL`: NULL, or misaligned.
///
/// # Safety
/// The pointer is NULL or points to memory of this size that is not in use.
#[inline(always)]
pub(crate) unsafe fn put<C, R>(pointer: *mut C, object: R) -> Result<(), Number> {
    same_layout::<C, R>();
    if pointer.is_null() || !pointer.is_aligned() {
        return Err(INVALID);
    }
    // SAFETY: not NULL, so by this function's contract it points to memory of R's size that is not
    // in use. It is aligned for C, which has R's alignment (`same_layout`). Nothing there needs to
    // be dropped.
    unsafe { pointer.cast::<R>().write(object) };
    Ok(())
}

const fn same_layout<C, R>() {
    const {
        assert!(size_of::<C>() == size_of::<R>());
        assert!(align_of::<C>() == align_of::<R>());
        // C runs no destructor, so there must be none to run.
        assert!(!core::mem::needs_drop::<R>());
    }
}

/// What `tried` was; if that would have had to wait, what `wait` is, until the time. The time is
/// checked only then.
///
/// # Errors
/// `EINVAL`: not a time. Those of `wait`.
///
/// # Safety
/// The time is NULL or points to a time.
#[inline(always)]
pub(crate) unsafe fn or_wait(
    tried: Result<(), RwLockError>,
    clock: Clock,
    time: *const timespec,
    wait: impl FnOnce(Deadline) -> Result<(), RwLockError>,
) -> Result<(), Number> {
    match tried {
        // SAFETY: forwards this function's own contract.
        Err(RwLockError::Busy) => Ok(wait(unsafe { deadline(clock, time) }?)?),
        done => Ok(done?),
    }
}

/// The scope given by `flags`, for an object that has no other flags.
///
/// # Errors
/// `EINVAL`: other flags are set.
pub(crate) fn scope_alone(flags: c_uint) -> Result<Scope, Number> {
    match flags & !WW_PROCESS_SHARED {
        0 => Ok(scope(flags)),
        _ => Err(INVALID),
    }
}

/// The scope given by `flags`; other flags are ignored.
pub(crate) fn scope(flags: c_uint) -> Scope {
    match flags & WW_PROCESS_SHARED {
        0 => Scope::Private,
        _ => Scope::Shared,
    }
}
