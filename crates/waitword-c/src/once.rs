//! `ww_once_t`: `pthread_once`, and a variant whose function takes an argument.

use crate::call::{INVALID, answer, object};
use core::ffi::{c_int, c_void};
use waitword_abi::once::execute;
use waitword_core::Once;

/// A one-time initialisation: 4 bytes, all zero before it has run. Initialise it with
/// `WW_ONCE_INIT`.
///
/// For the threads of one process. If a process forks while another of its threads runs the
/// routine, the child's next call runs it again.
#[allow(non_camel_case_types)] // C's name.
#[derive(Debug)]
#[repr(C)]
pub struct ww_once_flag {
    /// Private to the library.
    pub word_: u32,
}

/// A one-time initialisation.
#[allow(non_camel_case_types)] // C's name.
pub type ww_once_t = ww_once_flag;

/// Calls `routine` unless one has completed with this `once`; if another thread is running one,
/// waits for it. When this returns, the routine's effects are visible to the caller. If the routine
/// has completed before, the call costs one load.
///
/// If `routine` is left other than by a return (a C++ exception, `pthread_exit`), it counts as not
/// called, and one of the waiting threads calls its own. A `routine` that calls `ww_once` with the
/// same `once` deadlocks.
///
/// Errors:
/// - `EINVAL`: `once` is NULL or misaligned; `routine` is NULL.
///
/// Blocks. Not a cancellation point. Must not be called from a signal handler. Modelled on
/// `pthread_once`.
///
/// # Safety
/// `once` must be NULL or point to a `ww_once_t`. `routine` must be NULL or a function that may be
/// called.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ww_once(
    once: *mut ww_once_t,
    routine: Option<unsafe extern "C-unwind" fn()>,
) -> c_int {
    answer(|| {
        // SAFETY: by this function's contract, NULL or a once, as `object` requires.
        let once: &Once = unsafe { object(once) }?;
        let routine = routine.ok_or(INVALID)?;
        // SAFETY: by this function's contract, a function that may be called. `execute` calls it at
        // most once.
        execute(once, || unsafe { routine() });
        Ok(())
    })
}

/// `ww_once` for a function that takes an argument. If calls differ in their function or argument,
/// those of the first caller are used.
///
/// Errors:
/// - `EINVAL`: `once` is NULL or misaligned; `routine` is NULL.
///
/// Blocks. Not a cancellation point. Must not be called from a signal handler. Modelled on C++11's
/// `std::call_once`.
///
/// # Safety
/// As for `ww_once`. `argument` must be what `routine` expects.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ww_once_call(
    once: *mut ww_once_t,
    routine: Option<unsafe extern "C-unwind" fn(argument: *mut c_void)>,
    argument: *mut c_void,
) -> c_int {
    answer(|| {
        // SAFETY: by this function's contract, NULL or a once, as `object` requires.
        let once: &Once = unsafe { object(once) }?;
        let routine = routine.ok_or(INVALID)?;
        // SAFETY: by this function's contract, a function that may be called with this argument.
        // `execute` calls it at most once.
        execute(once, || unsafe { routine(argument) });
        Ok(())
    })
}
