//! Exceptions that a signal handler lets out of the wait that it has interrupted: of C++, or of any
//! other user of the unwinder (the Itanium C++ ABI, "Exception Handling", level I).
//!
//! ```text
//!   C's caller, catches ► run ► the work ► (signal frame) ► handler ► throw
//!                         1. the unwinder searches for a catching frame: not in the handler, and
//!                            not beyond the boundary
//!                                                      2. the handler's frames are unwound, and
//!                                                         their objects destroyed
//!                               3. back to the call, which comes to its end (`leave.rs`)
//!                         4. it is raised again from here
//! ```

use super::way_back::{Departure, WayBack, defer_end, never, way_back};
use crate::thread::current_call;
use core::arch::asm;
use core::ffi::{CStr, c_int, c_void};
use core::mem::transmute;

/// The unwinder's `_Unwind_Reason_Code`.
mod reason {
    use super::c_int;

    pub(super) const NONE: c_int = 0;
    pub(super) const FATAL_PHASE2_ERROR: c_int = 2;
    pub(super) const FATAL_PHASE1_ERROR: c_int = 3;
    pub(super) const CONTINUE_UNWIND: c_int = 8;
}

/// The unwinder's `_Unwind_Action`.
mod action {
    use super::c_int;

    pub(super) const SEARCH_PHASE: c_int = 1;
    pub(super) const END_OF_STACK: c_int = 16;
}

/// The unwinder's `_Unwind_Exception`.
#[repr(C)]
struct Exception {
    class: u64,
    cleanup: *const c_void,
    /// Its `private_1`: the [`Stop`] function, if any.
    is_forced: usize,
}

type Stop = extern "C-unwind" fn(c_int, c_int, u64, *mut c_void, *mut c_void, *mut c_void) -> c_int;

#[allow(non_snake_case, reason = "the unwinder's names")]
mod libgcc {
    use super::{Stop, c_int, c_void};

    crate::real::real! {
        fn _Unwind_RaiseException(exception: *mut c_void) -> c_int;
        fn _Unwind_Resume_or_Rethrow(exception: *mut c_void) -> c_int;
        fn _Unwind_ForcedUnwind(exception: *mut c_void, stop: Stop, argument: *mut c_void) -> c_int;
        fn _Unwind_GetCFA(context: *mut c_void) -> usize;
    }
}

/// Makes an exception ask [`personality`] before it leaves the function that contains this. It
/// costs no instruction.
#[inline(always)]
pub(crate) fn boundary() {
    // `0x1b`: the address is relative, in four bytes.
    // SAFETY: a directive for the function's unwind table, and no instruction.
    unsafe {
        asm!(
            ".cfi_personality 0x1b, {personality}",
            personality = sym personality,
            options(nomem, nostack, preserves_flags),
        );
    }
}

/// The unwinder calls this when it reaches the boundary: an exception does not leave a call that is
/// in the middle of its work.
extern "C" fn personality(
    _version: c_int,
    actions: c_int,
    _class: u64,
    _exception: *mut c_void,
    context: *mut c_void,
) -> c_int {
    /// More than the frame of the function whose call it is, and less than the distance between it
    /// and any other: a signal frame with its 440 bytes, 512 or more of floating-point state, and
    /// the 128 that are not touched.
    const FRAME: usize = 1024;
    // SAFETY: the unwinder's own context, for this call.
    let at = unsafe { libgcc::_Unwind_GetCFA(context) };
    let is_within = current_call().addr().wrapping_sub(at) < FRAME;
    match actions & action::SEARCH_PHASE != 0 && is_within {
        true => reason::FATAL_PHASE1_ERROR,
        false => reason::CONTINUE_UNWIND,
    }
}

/// No reachable frame catches the exception. If that is because a handler lets it out of a call,
/// the call is left first, and this does not return.
#[cold]
fn defer_exception(exception: *mut c_void) {
    if way_back(|_| true).is_some() {
        // SAFETY: the unwinder has refused the exception, so the caller still owns it. `stop`
        // unwinds only the handler's frames. None of them catches: the search passed them.
        unsafe { libgcc::_Unwind_ForcedUnwind(exception, stop, core::ptr::null_mut()) };
    }
}

/// Called before each frame is unwound.
extern "C-unwind" fn stop(
    _version: c_int,
    actions: c_int,
    _class: u64,
    exception: *mut c_void,
    context: *mut c_void,
    _argument: *mut c_void,
) -> c_int {
    // SAFETY: the unwinder's own context, for this call of `stop`.
    let at = unsafe { libgcc::_Unwind_GetCFA(context) };
    let is_over = |way: WayBack| way.frame.begins_at(at);
    if actions & action::END_OF_STACK != 0 || way_back(|_| true).is_none_or(is_over) {
        defer_end(Departure::Exception(exception));
        return reason::FATAL_PHASE2_ERROR;
    }
    reason::NONE
}

/// Raises the exception where the call was made, after the call has been left.
///
/// # Safety
/// The unwinder has refused the exception, and no other code owns it.
pub(super) unsafe fn raise(exception: *mut c_void) -> ! {
    // SAFETY: forwards this function's own contract. The unwinder has left `stop` in the exception,
    // and would call it again.
    unsafe {
        (*exception.cast::<Exception>()).is_forced = 0;
        _Unwind_RaiseException(exception);
    }
    terminate(exception)
}

/// Does what a `throw` does that nothing catches.
fn terminate(exception: *mut c_void) -> ! {
    let find = |name: &CStr| {
        // SAFETY: the name is a zero-terminated string.
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
    };
    let (begin_catch, terminate) = (find(c"__cxa_begin_catch"), find(c"_ZSt9terminatev"));
    if !begin_catch.is_null() && !terminate.is_null() {
        // SAFETY: the C++ ABI has these names for functions of these types, and they take any
        // exception that was raised and not caught.
        unsafe {
            transmute::<*mut c_void, extern "C-unwind" fn(*mut c_void) -> *mut c_void>(begin_catch)(
                exception,
            );
            transmute::<*mut c_void, extern "C-unwind" fn()>(terminate)();
        }
    }
    never()
}

/// `raise! { _Unwind_RaiseException }`: defines the function of this name.
macro_rules! raise {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[allow(non_snake_case, reason = "the unwinder's name")]
        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C-unwind" fn $name(exception: *mut c_void) -> c_int {
            // SAFETY: forwards this function's own contract.
            let refused = unsafe { libgcc::$name(exception) };
            if !current_call().is_null() {
                defer_exception(exception);
            }
            refused
        }
    )*};
}

raise! {
    /// Raises an exception; returns only if nothing catches it. Source: the Itanium C++ ABI.
    _Unwind_RaiseException
    /// The same, for one that was caught before. Source: GCC's `unwind.h`.
    _Unwind_Resume_or_Rethrow
}
