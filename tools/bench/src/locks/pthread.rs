//! The functions that serve the C library's objects: its own, or the drop-in's. The drop-in is
//! loaded into this process next to the C library and defines the same names. So both are measured
//! in the same rounds, on the same objects, through the same kind of call.

use core::ffi::{c_int, c_uint};
use libc::{
    pthread_barrier_t, pthread_barrierattr_t, pthread_cond_t, pthread_mutex_t, pthread_mutexattr_t,
    pthread_once_t, pthread_rwlock_t, pthread_rwlockattr_t, sem_t,
};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Declares a table of a library's functions.
macro_rules! functions {
    ($($field:ident: $name:ident($($argument:ty),*);)*) => {
        /// Functions with pthread's names.
        #[derive(Debug)]
        pub struct Functions {
            $(
                #[doc = concat!("`", stringify!($name), "`.")]
                pub $field: unsafe extern "C-unwind" fn($($argument),*) -> c_int,
            )*
        }

        unsafe extern "C-unwind" {
            $(fn $name($(_: $argument),*) -> c_int;)*
        }

        static C_LIBRARY: Functions = Functions { $($field: $name,)* };

        fn find_all(library: &libloading::Library) -> Result<Functions, libloading::Error> {
            Ok(Functions {
                $(
                    // SAFETY: a function of this name has this type.
                    $field: unsafe { *library.get(concat!(stringify!($name), "\0").as_bytes())? },
                )*
            })
        }
    };
}

functions! {
    mutex_init: pthread_mutex_init(*mut pthread_mutex_t, *const pthread_mutexattr_t);
    mutex_destroy: pthread_mutex_destroy(*mut pthread_mutex_t);
    mutex_lock: pthread_mutex_lock(*mut pthread_mutex_t);
    mutex_trylock: pthread_mutex_trylock(*mut pthread_mutex_t);
    mutex_unlock: pthread_mutex_unlock(*mut pthread_mutex_t);
    cond_wait: pthread_cond_wait(*mut pthread_cond_t, *mut pthread_mutex_t);
    cond_signal: pthread_cond_signal(*mut pthread_cond_t);
    cond_broadcast: pthread_cond_broadcast(*mut pthread_cond_t);
    rwlock_init: pthread_rwlock_init(*mut pthread_rwlock_t, *const pthread_rwlockattr_t);
    rwlock_destroy: pthread_rwlock_destroy(*mut pthread_rwlock_t);
    rwlock_rdlock: pthread_rwlock_rdlock(*mut pthread_rwlock_t);
    rwlock_wrlock: pthread_rwlock_wrlock(*mut pthread_rwlock_t);
    rwlock_unlock: pthread_rwlock_unlock(*mut pthread_rwlock_t);
    sem_init: sem_init(*mut sem_t, c_int, c_uint);
    sem_wait: sem_wait(*mut sem_t);
    sem_post: sem_post(*mut sem_t);
    barrier_init: pthread_barrier_init(
        *mut pthread_barrier_t, *const pthread_barrierattr_t, c_uint
    );
    barrier_wait: pthread_barrier_wait(*mut pthread_barrier_t);
    once: pthread_once(*mut pthread_once_t, extern "C" fn());
}

/// The library that the functions come from.
pub trait Library: 'static {
    /// Whether it is the drop-in.
    const IS_DROP_IN: bool;
    /// Its functions.
    fn functions() -> &'static Functions;
}

/// The C library itself.
#[derive(Debug)]
pub struct CLibrary;

impl Library for CLibrary {
    const IS_DROP_IN: bool = false;

    #[inline(always)]
    fn functions() -> &'static Functions {
        &C_LIBRARY
    }
}

/// The drop-in, which has been [loaded](load).
#[derive(Debug)]
pub struct DropIn;

static DROP_IN: AtomicPtr<Functions> = AtomicPtr::new(null_mut());

impl Library for DropIn {
    const IS_DROP_IN: bool = true;

    #[inline(always)]
    fn functions() -> &'static Functions {
        // Relaxed: loaded before the threads that use it were started.
        let functions = DROP_IN.load(Ordering::Relaxed);
        debug_assert!(!functions.is_null(), "used only if loaded");
        // SAFETY: set once, to a table that is never freed; contenders use it only after that
        // (`is_loaded`).
        unsafe { &*functions }
    }
}

/// Whether [`load`] has succeeded.
pub fn is_loaded() -> bool {
    !DROP_IN.load(Ordering::Relaxed).is_null()
}

/// Loads the drop-in next to the C library. From then on it is a contender.
///
/// # Errors
/// If the file is not such a library.
pub fn load(path: &Path) -> Result<(), libloading::Error> {
    // SAFETY: the drop-in has no constructor that affects this process.
    let library = unsafe { libloading::Library::new(path)? };
    let functions = find_all(&library)?;
    // Never unloaded.
    std::mem::forget(library);
    DROP_IN.store(Box::leak(Box::new(functions)), Ordering::Relaxed);
    Ok(())
}
