//! C11's `cnd_*`: pthread's condition variables with C11's results, on `CLOCK_REALTIME`. A `cnd_t`
//! is a `pthread_cond_t` by another name.

use crate::c11::answer_of_c11;
use crate::cond::{
    pthread_cond_broadcast, pthread_cond_destroy, pthread_cond_init, pthread_cond_signal,
    pthread_cond_timedwait, pthread_cond_wait,
};
use core::ffi::c_int;
use libc::{pthread_cond_t, pthread_mutex_t, timespec};

/// Initialises a condition variable. Source: C11 7.26.3.3.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn cnd_init(condition: *mut pthread_cond_t) -> c_int {
    // SAFETY: forwards this function's own contract.
    answer_of_c11(unsafe { pthread_cond_init(condition, core::ptr::null()) })
}

/// Destroys a condition variable. Source: C11 7.26.3.2.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn cnd_destroy(condition: *mut pthread_cond_t) {
    // SAFETY: forwards this function's own contract. C11 specifies no result.
    let _ = unsafe { pthread_cond_destroy(condition) };
}

/// Wakes one waiter. Source: C11 7.26.3.4.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn cnd_signal(condition: *mut pthread_cond_t) -> c_int {
    // SAFETY: forwards this function's own contract.
    answer_of_c11(unsafe { pthread_cond_signal(condition) })
}

/// Wakes all waiters. Source: C11 7.26.3.1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn cnd_broadcast(condition: *mut pthread_cond_t) -> c_int {
    // SAFETY: forwards this function's own contract.
    answer_of_c11(unsafe { pthread_cond_broadcast(condition) })
}

/// Unlocks the mutex and waits. A cancellation point, as glibc's is. Source: C11 7.26.3.6.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn cnd_wait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
) -> c_int {
    // SAFETY: forwards this function's own contract.
    answer_of_c11(unsafe { pthread_cond_wait(condition, mutex) })
}

/// The same, until a time of `TIME_UTC` at the latest. Source: C11 7.26.3.5.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn cnd_timedwait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: forwards this function's own contract.
    answer_of_c11(unsafe { pthread_cond_timedwait(condition, mutex, until) })
}
