//! C11's `mtx_*` and `call_once`. (`cnd_*`: `c11_cond.rs`.)
//!
//! A `mtx_t` is a `pthread_mutex_t` by another name, for the C library as for us, and a `once_flag` a `pthread_once_t`. So these are
//! pthread's functions with C11's answers, and whose an object is they decide. The C library's own `mtx_*` would not come here: they
//! call its inner functions. So the family must be defined as a whole.

use crate::mode;
use crate::mutex::{
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_timedlock,
    pthread_mutex_trylock, pthread_mutex_unlock,
};
use crate::once::{Routine, pthread_once};
use core::ffi::c_int;
use core::mem::MaybeUninit;
use libc::{pthread_mutex_t, pthread_once_t, timespec};

/// C11's answers, as glibc numbers them.
mod thrd {
    use super::c_int;

    pub(super) const SUCCESS: c_int = 0;
    pub(super) const BUSY: c_int = 1;
    pub(super) const ERROR: c_int = 2;
    pub(super) const NOMEM: c_int = 3;
    pub(super) const TIMEDOUT: c_int = 4;
}

/// C11's kinds of mutex: bits.
mod mtx {
    use super::c_int;

    pub(super) const RECURSIVE: c_int = 1;
    /// Every mutex can wait with a time.
    pub(super) const TIMED: c_int = 2;
}

/// C11's answer for pthread's.
#[inline(always)]
pub(crate) fn answer_of_c11(number: c_int) -> c_int {
    match number {
        0 => thrd::SUCCESS,
        other => error_of_c11(other),
    }
}

#[cold]
fn error_of_c11(number: c_int) -> c_int {
    match number {
        libc::EBUSY => thrd::BUSY,
        libc::ENOMEM => thrd::NOMEM,
        libc::ETIMEDOUT => thrd::TIMEDOUT,
        _ => thrd::ERROR,
    }
}

/// Makes a mutex. `thrd_error` if there is no such kind. Source: C11 7.26.4.2.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mtx_init(mutex: *mut pthread_mutex_t, kind: c_int) -> c_int {
    // glibc looks at one bit, and takes whatever else there is.
    if mode::is_on() && kind & !(mtx::RECURSIVE | mtx::TIMED) != 0 {
        return thrd::ERROR;
    }
    let pthreads = match kind & mtx::RECURSIVE {
        0 => libc::PTHREAD_MUTEX_NORMAL,
        _ => libc::PTHREAD_MUTEX_RECURSIVE,
    };
    let mut attributes = MaybeUninit::uninit();
    // SAFETY: `attributes` is a place for attributes, which are initialised before they are used,
    // and are not used once destroyed. Of the mutex it forwards this function's own contract.
    answer_of_c11(unsafe {
        libc::pthread_mutexattr_init(attributes.as_mut_ptr());
        libc::pthread_mutexattr_settype(attributes.as_mut_ptr(), pthreads);
        let made = pthread_mutex_init(mutex, attributes.as_ptr());
        libc::pthread_mutexattr_destroy(attributes.as_mut_ptr());
        made
    })
}

/// Says that a mutex will not be used any more. Source: C11 7.26.4.1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mtx_destroy(mutex: *mut pthread_mutex_t) {
    // SAFETY: forwards this function's own contract. C11 has no answer to give.
    let _ = unsafe { pthread_mutex_destroy(mutex) };
}

/// Locks it. Source: C11 7.26.4.3.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mtx_lock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: forwards this function's own contract.
    answer_of_c11(unsafe { pthread_mutex_lock(mutex) })
}

/// Locks it, until a time of `TIME_UTC` at the latest. Source: C11 7.26.4.4.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mtx_timedlock(
    mutex: *mut pthread_mutex_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: forwards this function's own contract.
    answer_of_c11(unsafe { pthread_mutex_timedlock(mutex, until) })
}

/// Locks it if that needs no waiting. Source: C11 7.26.4.5.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mtx_trylock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: forwards this function's own contract.
    answer_of_c11(unsafe { pthread_mutex_trylock(mutex) })
}

/// Gives it back. Source: C11 7.26.4.6.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mtx_unlock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: forwards this function's own contract.
    answer_of_c11(unsafe { pthread_mutex_unlock(mutex) })
}

/// Calls the routine if nobody has, or waits for whoever is at it. Source: C11 7.26.2.1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn call_once(flag: *mut pthread_once_t, routine: Option<Routine>) {
    // SAFETY: forwards this function's own contract. C11 has no answer to give.
    let _ = unsafe { pthread_once(flag, routine) };
}
