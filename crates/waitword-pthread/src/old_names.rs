//! The names that only programs linked long ago ask for, all of version `GLIBC_2.2.5`. The C
//! library keeps them for those programs, and a program that uses one of them and a new name on the
//! same object must find our functions behind both.
//!
//! Our definitions have no version, so the dynamic linker accepts them for whatever version is
//! requested.
//!
//! Some equally old names are not here, since the C library serves them under the drop-in too (and
//! returns its own results):
//!
//! * `pthread_mutex_consistent_np`. It is about robust mutexes, which are the C library's. For one
//!   of ours it returns `EINVAL`, as for any that is not robust.
//! * `pthread_mutexattr_{get,set}robust_np`, `pthread_mutexattr_{get,set}kind_np` and
//!   `__pthread_mutexattr_{init,destroy,settype}`. They are about attributes, which are the C
//!   library's.

use crate::once::Routine;
use core::ffi::c_int;
use libc::{
    pthread_mutex_t, pthread_mutexattr_t, pthread_once_t, pthread_rwlock_t, pthread_rwlockattr_t,
};

/// `old! { fn __name(argument: type) = the current function; }`
macro_rules! old {
    ($(fn $old:ident($($argument:ident: $type:ty),*) = $now:path;)*) => {$(
        #[doc = concat!("An old name of [`", stringify!($now), "`].")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $old($($argument: $type),*) -> c_int {
            // SAFETY: forwards this function's own contract, which is that of the current name.
            unsafe { $now($($argument),*) }
        }
    )*};
}

old! {
    fn __pthread_mutex_init(
        mutex: *mut pthread_mutex_t,
        attributes: *const pthread_mutexattr_t
    ) = crate::mutex::pthread_mutex_init;
    fn __pthread_mutex_destroy(mutex: *mut pthread_mutex_t) = crate::mutex::pthread_mutex_destroy;
    fn __pthread_mutex_lock(mutex: *mut pthread_mutex_t) = crate::mutex::pthread_mutex_lock;
    fn __pthread_mutex_trylock(mutex: *mut pthread_mutex_t) = crate::mutex::pthread_mutex_trylock;
    fn __pthread_mutex_unlock(mutex: *mut pthread_mutex_t) = crate::mutex::pthread_mutex_unlock;

    fn __pthread_rwlock_init(
        lock: *mut pthread_rwlock_t,
        attributes: *const pthread_rwlockattr_t
    ) = crate::rwlock::pthread_rwlock_init;
    fn __pthread_rwlock_destroy(lock: *mut pthread_rwlock_t)
        = crate::rwlock::pthread_rwlock_destroy;
    fn __pthread_rwlock_rdlock(lock: *mut pthread_rwlock_t) = crate::rwlock::pthread_rwlock_rdlock;
    fn __pthread_rwlock_tryrdlock(lock: *mut pthread_rwlock_t)
        = crate::rwlock::pthread_rwlock_tryrdlock;
    fn __pthread_rwlock_wrlock(lock: *mut pthread_rwlock_t) = crate::rwlock::pthread_rwlock_wrlock;
    fn __pthread_rwlock_trywrlock(lock: *mut pthread_rwlock_t)
        = crate::rwlock::pthread_rwlock_trywrlock;
    fn __pthread_rwlock_unlock(lock: *mut pthread_rwlock_t) = crate::rwlock::pthread_rwlock_unlock;
}

/// An old name of [`pthread_once`](crate::once::pthread_once).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __pthread_once(
    control: *mut pthread_once_t,
    routine: Option<Routine>,
) -> c_int {
    // SAFETY: forwards this function's own contract, which is that of the current name.
    unsafe { crate::once::pthread_once(control, routine) }
}
