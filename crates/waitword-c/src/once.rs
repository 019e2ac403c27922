//! `ww_once_t`: `pthread_once`, and one whose function takes an argument.

use crate::call::{INVALID, answer, object};
use core::ffi::{c_int, c_void};
use waitword_abi::once::execute;
use waitword_core::Once;

/// Something that is done once: 4 bytes, all zero before it has been done. `WW_ONCE_INIT`.
///
/// For the threads of one process. If a process forks while another of its threads is at it, the child's next call does it anew.
#[allow(non_camel_case_types)] // C's name.
#[derive(Debug)]
#[repr(C)]
pub struct ww_once_flag {
    /// Not for you.
    pub word_: u32,
}

/// Something that is done once.
#[allow(non_camel_case_types)] // C's name.
pub type ww_once_t = ww_once_flag;

/// Calls `routine` if nobody has with this `once`, or waits for whoever is at it. When this returns, what was done is visible to the
/// caller. If it is done already this is one load.
///
/// If `routine` is left in another way than by return (a C++ exception, `pthread_exit`) it counts as not called, and one of those
/// who wait calls its own. A `routine` that calls `ww_once` with the same `once` waits for itself for ever.
///
/// Errors:
/// - `EINVAL`: `once` is NULL or misaligned; `routine` is NULL.
///
/// Blocks. Not a cancellation point. Not for signal handlers. After `pthread_once`.
///
/// # Safety
/// `once` is NULL or a once; `routine` is NULL or a function that may be called.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ww_once(
    once: *mut ww_once_t,
    routine: Option<unsafe extern "C-unwind" fn()>,
) -> c_int {
    answer(|| {
        // SAFETY: NULL or a once, by this function's contract: what `object` asks.
        let once: &Once = unsafe { object(once) }?;
        let routine = routine.ok_or(INVALID)?;
        // SAFETY: a function that may be called, by this function's contract. `execute` calls it
        // once at most.
        execute(once, || unsafe { routine() });
        Ok(())
    })
}

/// `ww_once` for a function that takes an argument. With which of several arguments, and which of several functions, it was done, is
/// decided by who came first.
///
/// Errors:
/// - `EINVAL`: `once` is NULL or misaligned; `routine` is NULL.
///
/// Blocks. Not a cancellation point. Not for signal handlers. After C++11's `std::call_once`.
///
/// # Safety
/// As for `ww_once`; `argument` is what `routine` takes it for.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ww_once_call(
    once: *mut ww_once_t,
    routine: Option<unsafe extern "C-unwind" fn(argument: *mut c_void)>,
    argument: *mut c_void,
) -> c_int {
    answer(|| {
        // SAFETY: NULL or a once, by this function's contract: what `object` asks.
        let once: &Once = unsafe { object(once) }?;
        let routine = routine.ok_or(INVALID)?;
        // SAFETY: a function that may be called with this argument, by this function's contract.
        // `execute` calls it once at most.
        execute(once, || unsafe { routine(argument) });
        Ok(())
    })
}
