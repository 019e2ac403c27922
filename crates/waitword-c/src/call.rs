//! What the functions of the locks share: the object behind a pointer, its scope. How they answer and what times they
//! take: `waitword-abi`.

use core::ffi::c_uint;
use core::mem::{align_of, size_of};
use waitword_core::Scope;

pub(crate) use waitword_abi::{INVALID, Number, answer, clock, deadline};

use crate::lock_flags::WW_PROCESS_SHARED;

/// The Rust object that lies behind C's pointer.
///
/// Whatever bytes are there are a Rust object of that kind, if not always a sensible one: all are made of atomics and
/// numbers. That the two types have one layout is seen when this is compiled.
///
/// # Errors
/// `EINVAL`: NULL, or not aligned.
///
/// # Safety
/// NULL, or an object of this kind, which is what the C functions' own sections mean by that:
/// memory of this size that stays for the call, `'a`, until another thread may free it by the
/// object's own rules, and that only this library changes.
#[inline(always)]
pub(crate) unsafe fn object<'a, C, R>(pointer: *const C) -> Result<&'a R, Number> {
    same_layout::<C, R>();
    if pointer.is_null() || !pointer.is_aligned() {
        return Err(INVALID);
    }
    // SAFETY: not NULL, so by this function's contract memory of R's size that is there as long as
    // the reference. It is aligned as C is, which is as R is (`same_layout`); any bytes are an R,
    // and what this library changes there is atomic.
    Ok(unsafe { &*pointer.cast::<R>() })
}

/// Puts a new Rust object behind C's pointer, whatever was there.
///
/// # Errors
/// `EINVAL`: NULL, or not aligned.
///
/// # Safety
/// NULL, or memory of this size that is not in use.
#[inline(always)]
pub(crate) unsafe fn put<C, R>(pointer: *mut C, object: R) -> Result<(), Number> {
    same_layout::<C, R>();
    if pointer.is_null() || !pointer.is_aligned() {
        return Err(INVALID);
    }
    // SAFETY: not NULL, so by this function's contract memory of R's size that is not in use. It is
    // aligned as C is, which is as R is (`same_layout`); nothing there needs to be dropped.
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
