//! `pthread_join` and its kin, of which only the wait is ours to record.
//!
//! The C library serves them all. In a process that does not record, each call only passes its
//! arguments on.

use crate::{mode, record};
use core::ffi::{c_int, c_void};
use core::ptr::with_exposed_provenance;
use libc::{clockid_t, pthread_t, timespec};
use waitword_record::format::Object;

mod glibc {
    use super::{c_int, c_void, clockid_t, pthread_t, timespec};

    crate::real::real! {
        fn pthread_join(thread: pthread_t, result: *mut *mut c_void) -> c_int;
        fn pthread_timedjoin_np(
            thread: pthread_t,
            result: *mut *mut c_void,
            until: *const timespec
        ) -> c_int;
        fn pthread_clockjoin_np(
            thread: pthread_t,
            result: *mut *mut c_void,
            clock: clockid_t,
            until: *const timespec
        ) -> c_int;
    }
}

/// Calls `join`, which waits for the end of this thread, and records that in a process that does.
#[inline(always)]
fn joining(thread: pthread_t, join: impl Fn() -> c_int) -> c_int {
    match mode::is_watched() {
        true => record::waiting(Object::Join, object(thread), join),
        false => join(),
    }
}

/// The same until a time.
#[inline(always)]
fn joining_until(thread: pthread_t, join: impl Fn() -> c_int) -> c_int {
    match mode::is_watched() {
        true => record::waiting_until(Object::Join, object(thread), join),
        false => join(),
    }
}

/// The thread's block, which is the object that is waited for.
fn object(thread: pthread_t) -> *const c_void {
    with_exposed_provenance(thread as usize)
}

/// Waits until a thread has ended. A cancellation point. Source: POSIX `pthread_join`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_join(thread: pthread_t, result: *mut *mut c_void) -> c_int {
    // SAFETY: forwards this function's own contract, POSIX's, to the function of the same name.
    joining(thread, || unsafe { glibc::pthread_join(thread, result) })
}

/// Waits until a thread has ended, or until a time of `CLOCK_REALTIME`. A cancellation point.
/// Source: pthread_timedjoin_np(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_timedjoin_np(
    thread: pthread_t,
    result: *mut *mut c_void,
    until: *const timespec,
) -> c_int {
    // SAFETY: forwards this function's own contract, that of the manual page, to the function of
    // the same name.
    joining_until(thread, || unsafe { glibc::pthread_timedjoin_np(thread, result, until) })
}

/// Waits until a thread has ended, or until a time of this clock. A cancellation point. Source:
/// glibc 2.31's manual, `pthread_clockjoin_np`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_clockjoin_np(
    thread: pthread_t,
    result: *mut *mut c_void,
    clock: clockid_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: as in `pthread_timedjoin_np`.
    joining_until(thread, || unsafe { glibc::pthread_clockjoin_np(thread, result, clock, until) })
}
