//! C11's `mtx_*`, `cnd_*` and `call_once`.
//!
//! A `mtx_t` is a `pthread_mutex_t` by another name, for the C library as for us, a `cnd_t` is a
//! `pthread_cond_t` (on `CLOCK_REALTIME`), and a `once_flag` is a `pthread_once_t`. So these
//! functions call pthread's, which also decide which library serves an object, and convert the
//! results to C11's. The C library's own `mtx_*` would not call ours, since they call its internal
//! functions. So the whole family must be defined here.

use crate::cond::{
    pthread_cond_broadcast, pthread_cond_destroy, pthread_cond_init, pthread_cond_signal,
    pthread_cond_timedwait, pthread_cond_wait,
};
use crate::mode;
use crate::mutex::{
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_timedlock,
    pthread_mutex_trylock, pthread_mutex_unlock,
};
use crate::once::{Routine, pthread_once};
use core::ffi::c_int;
use core::mem::MaybeUninit;
use libc::{pthread_cond_t, pthread_mutex_t, pthread_once_t, timespec};

/// C11's results, as glibc numbers them.
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
    /// Every mutex supports timed waits.
    pub(super) const TIMED: c_int = 2;
}

/// C11's result for pthread's.
#[inline(always)]
fn answer_of_c11(number: c_int) -> c_int {
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

/// Initialises a mutex. `thrd_error` if there is no such kind. Source: C11 7.26.4.2.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mtx_init(mutex: *mut pthread_mutex_t, kind: c_int) -> c_int {
    // glibc checks one bit and accepts all others.
    if mode::is_on() && kind & !(mtx::RECURSIVE | mtx::TIMED) != 0 {
        return thrd::ERROR;
    }
    let pthreads = match kind & mtx::RECURSIVE {
        0 => libc::PTHREAD_MUTEX_NORMAL,
        _ => libc::PTHREAD_MUTEX_RECURSIVE,
    };
    let mut attributes = MaybeUninit::uninit();
    // SAFETY: `attributes` is a place for attributes, which are initialised before they are used,
    // and are not used after they are destroyed. For the mutex this forwards the function's own
    // contract.
    answer_of_c11(unsafe {
        libc::pthread_mutexattr_init(attributes.as_mut_ptr());
        libc::pthread_mutexattr_settype(attributes.as_mut_ptr(), pthreads);
        let made = pthread_mutex_init(mutex, attributes.as_ptr());
        libc::pthread_mutexattr_destroy(attributes.as_mut_ptr());
        made
    })
}

/// Initialises a condition variable. Source: C11 7.26.3.3.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn cnd_init(condition: *mut pthread_cond_t) -> c_int {
    // SAFETY: forwards this function's own contract.
    answer_of_c11(unsafe { pthread_cond_init(condition, core::ptr::null()) })
}

/// `by_another_name! { fn mtx_lock(mutex: *mut pthread_mutex_t) = pthread_mutex_lock; }`: defines
/// `mtx_lock`, with C11's results.
macro_rules! by_another_name {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*) = $pthreads:ident;)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($argument: $type),*) -> c_int {
            // SAFETY: forwards this function's own contract.
            answer_of_c11(unsafe { $pthreads($($argument),*) })
        }
    )*};
}

by_another_name! {
    /// Locks a mutex. Source: C11 7.26.4.3.
    fn mtx_lock(mutex: *mut pthread_mutex_t) = pthread_mutex_lock;
    /// Locks a mutex, waiting until a time of `TIME_UTC` at the latest. Source: C11 7.26.4.4.
    fn mtx_timedlock(mutex: *mut pthread_mutex_t, until: *const timespec) = pthread_mutex_timedlock;
    /// Locks a mutex if that needs no waiting. Source: C11 7.26.4.5.
    fn mtx_trylock(mutex: *mut pthread_mutex_t) = pthread_mutex_trylock;
    /// Unlocks a mutex. Source: C11 7.26.4.6.
    fn mtx_unlock(mutex: *mut pthread_mutex_t) = pthread_mutex_unlock;
    /// Wakes one waiter. Source: C11 7.26.3.4.
    fn cnd_signal(condition: *mut pthread_cond_t) = pthread_cond_signal;
    /// Wakes all waiters. Source: C11 7.26.3.1.
    fn cnd_broadcast(condition: *mut pthread_cond_t) = pthread_cond_broadcast;
    /// Unlocks the mutex and waits. A cancellation point, as glibc's is. Source: C11 7.26.3.6.
    fn cnd_wait(condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) = pthread_cond_wait;
    /// The same, until a time of `TIME_UTC` at the latest. Source: C11 7.26.3.5.
    fn cnd_timedwait(
        condition: *mut pthread_cond_t,
        mutex: *mut pthread_mutex_t,
        until: *const timespec
    ) = pthread_cond_timedwait;
}

/// Destroys a mutex. Source: C11 7.26.4.1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mtx_destroy(mutex: *mut pthread_mutex_t) {
    // SAFETY: forwards this function's own contract. C11 specifies no result.
    let _ = unsafe { pthread_mutex_destroy(mutex) };
}

/// Destroys a condition variable. Source: C11 7.26.3.2.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn cnd_destroy(condition: *mut pthread_cond_t) {
    // SAFETY: forwards this function's own contract. C11 specifies no result.
    let _ = unsafe { pthread_cond_destroy(condition) };
}

/// Calls the routine if no thread has, or waits for the thread that runs it. Source: C11 7.26.2.1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn call_once(flag: *mut pthread_once_t, routine: Option<Routine>) {
    // SAFETY: forwards this function's own contract. C11 specifies no result.
    let _ = unsafe { pthread_once(flag, routine) };
}
