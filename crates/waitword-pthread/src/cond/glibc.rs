//! The C library's functions for condition variables.

use core::ffi::{CStr, c_int};
use libc::{clockid_t, pthread_cond_t, pthread_condattr_t, pthread_mutex_t, timespec};

/// The second version of those that there are two of. Other processors had no first one.
const SECOND: Option<&CStr> =
    if cfg!(target_arch = "x86_64") { Some(c"GLIBC_2.3.2") } else { None };

crate::real::real! {
    in SECOND;
    fn pthread_cond_init(
        cond: *mut pthread_cond_t,
        attributes: *const pthread_condattr_t
    ) -> c_int;
    fn pthread_cond_destroy(cond: *mut pthread_cond_t) -> c_int;
    fn pthread_cond_wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int;
    fn pthread_cond_timedwait(
        cond: *mut pthread_cond_t,
        mutex: *mut pthread_mutex_t,
        until: *const timespec
    ) -> c_int;
    fn pthread_cond_signal(cond: *mut pthread_cond_t) -> c_int;
    fn pthread_cond_broadcast(cond: *mut pthread_cond_t) -> c_int;
}

crate::real::real! {
    fn pthread_cond_clockwait(
        cond: *mut pthread_cond_t,
        mutex: *mut pthread_mutex_t,
        clock: clockid_t,
        until: *const timespec
    ) -> c_int;
}
