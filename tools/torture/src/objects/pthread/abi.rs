//! Functions of the C library that the crate `libc` does not declare, or does not declare as ones
//! that may unwind.
//!
//! A cancelled thread is unwound from inside these functions, through the frames of its scenario.
//! Those frames have nothing to drop, because Rust allows no other frames to be unwound this way.
//! What must be undone is undone by cleanup handlers.

use libc::{
    c_int, c_void, clockid_t, pthread_attr_t, pthread_cond_t, pthread_mutex_t, pthread_once_t,
    pthread_rwlock_t, pthread_t, sem_t, timespec,
};

/// The buffer of a cleanup handler: `struct _pthread_cleanup_buffer`.
#[repr(C)]
pub(crate) struct CleanupBuffer {
    words: [usize; 4],
}

impl CleanupBuffer {
    pub(crate) const fn new() -> Self {
        Self { words: [0; 4] }
    }
}

pub(crate) type Start = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;
pub(crate) type Cleanup = unsafe extern "C-unwind" fn(*mut c_void);
pub(crate) type Routine = unsafe extern "C-unwind" fn();

pub(crate) const CANCEL_ENABLE: c_int = 0;
pub(crate) const CANCEL_DISABLE: c_int = 1;
pub(crate) const CANCEL_DEFERRED: c_int = 0;
pub(crate) const CANCEL_ASYNCHRONOUS: c_int = 1;
/// `PTHREAD_CANCELED`.
pub(crate) const CANCELED: *mut c_void = std::ptr::without_provenance_mut(usize::MAX);

/// Return values of C11's functions.
pub(crate) const THRD_BUSY: c_int = 1;
pub(crate) const THRD_TIMEDOUT: c_int = 4;
/// Kinds of C11's mutexes.
pub(crate) const MTX_RECURSIVE: c_int = 1;
pub(crate) const MTX_TIMED: c_int = 2;

pub(crate) const PRIO_PROTECT: c_int = 2;

unsafe extern "C-unwind" {
    pub(crate) fn pthread_create(
        thread: *mut pthread_t,
        attributes: *const pthread_attr_t,
        start: Start,
        argument: *mut c_void,
    ) -> c_int;
    pub(crate) fn pthread_cancel(thread: pthread_t) -> c_int;
    pub(crate) fn pthread_setcancelstate(new: c_int, old: *mut c_int) -> c_int;
    pub(crate) fn pthread_setcanceltype(new: c_int, old: *mut c_int) -> c_int;
    pub(crate) fn _pthread_cleanup_push(
        buffer: *mut CleanupBuffer,
        routine: Cleanup,
        argument: *mut c_void,
    );
    pub(crate) fn _pthread_cleanup_pop(buffer: *mut CleanupBuffer, execute: c_int);

    pub(crate) fn pthread_once(control: *mut pthread_once_t, routine: Routine) -> c_int;
    pub(crate) fn call_once(flag: *mut pthread_once_t, routine: Routine);

    pub(crate) fn pthread_cond_wait(
        cond: *mut pthread_cond_t,
        mutex: *mut pthread_mutex_t,
    ) -> c_int;
    pub(crate) fn pthread_cond_timedwait(
        cond: *mut pthread_cond_t,
        mutex: *mut pthread_mutex_t,
        until: *const timespec,
    ) -> c_int;
    pub(crate) fn pthread_cond_clockwait(
        cond: *mut pthread_cond_t,
        mutex: *mut pthread_mutex_t,
        clock: clockid_t,
        until: *const timespec,
    ) -> c_int;
    pub(crate) fn cnd_wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int;
    pub(crate) fn cnd_timedwait(
        cond: *mut pthread_cond_t,
        mutex: *mut pthread_mutex_t,
        until: *const timespec,
    ) -> c_int;

    pub(crate) fn sem_wait(semaphore: *mut sem_t) -> c_int;
    pub(crate) fn sem_timedwait(semaphore: *mut sem_t, until: *const timespec) -> c_int;
    pub(crate) fn sem_clockwait(
        semaphore: *mut sem_t,
        clock: clockid_t,
        until: *const timespec,
    ) -> c_int;
}

unsafe extern "C" {
    pub(crate) fn pthread_mutex_clocklock(
        mutex: *mut pthread_mutex_t,
        clock: clockid_t,
        until: *const timespec,
    ) -> c_int;
    pub(crate) fn pthread_mutexattr_setprioceiling(
        attributes: *mut libc::pthread_mutexattr_t,
        ceiling: c_int,
    ) -> c_int;
    pub(crate) fn mtx_init(mutex: *mut pthread_mutex_t, kind: c_int) -> c_int;
    pub(crate) fn mtx_destroy(mutex: *mut pthread_mutex_t);
    pub(crate) fn mtx_lock(mutex: *mut pthread_mutex_t) -> c_int;
    pub(crate) fn mtx_trylock(mutex: *mut pthread_mutex_t) -> c_int;
    pub(crate) fn mtx_timedlock(mutex: *mut pthread_mutex_t, until: *const timespec) -> c_int;
    pub(crate) fn mtx_unlock(mutex: *mut pthread_mutex_t) -> c_int;
    pub(crate) fn cnd_signal(cond: *mut pthread_cond_t) -> c_int;
    pub(crate) fn cnd_broadcast(cond: *mut pthread_cond_t) -> c_int;

    pub(crate) fn pthread_rwlock_clockrdlock(
        lock: *mut pthread_rwlock_t,
        clock: clockid_t,
        until: *const timespec,
    ) -> c_int;
    pub(crate) fn pthread_rwlock_clockwrlock(
        lock: *mut pthread_rwlock_t,
        clock: clockid_t,
        until: *const timespec,
    ) -> c_int;
    pub(crate) fn pthread_rwlock_timedrdlock(
        lock: *mut pthread_rwlock_t,
        until: *const timespec,
    ) -> c_int;
    pub(crate) fn pthread_rwlock_timedwrlock(
        lock: *mut pthread_rwlock_t,
        until: *const timespec,
    ) -> c_int;

    pub(crate) fn sem_getvalue(semaphore: *mut sem_t, value: *mut c_int) -> c_int;
    pub(crate) fn sem_open(name: *const libc::c_char, flags: c_int, ...) -> *mut sem_t;
}
