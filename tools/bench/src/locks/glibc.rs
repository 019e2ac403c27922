//! The C library's locks: mutexes (normal, adaptive, recursive, error-checking,
//! priority-inheriting), the condition variable, and the reader-writer lock in both preferences.
//! The normal mutex, the condition variable and the default reader-writer lock are the baselines.
//! The same objects can be served by the drop-in, which defines functions of the same names
//! (`pthread.rs`).
//!
//! A `pthread_mutex_t` is plain data while no thread holds it or waits on it, so it may be moved
//! out of `new`.

use super::pthread::{CLibrary, Library};
use super::traits::{bench_condvar, bench_mutex, bench_rwlock};
use core::cell::{Cell, UnsafeCell};
use core::ffi::c_int;
use core::marker::PhantomData;

/// The kind of mutex to create.
pub trait MutexKind: 'static {
    /// Its name in the report.
    const NAME: &'static str;
    /// Its name when served by the drop-in.
    const DROP_IN: &'static str;
    /// The argument of `pthread_mutexattr_settype`.
    const TYPE: c_int;
    /// The argument of `pthread_mutexattr_setprotocol`.
    const PROTOCOL: c_int;
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident, $called:literal, $type:ident, $protocol:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name;

        impl MutexKind for $name {
            const NAME: &'static str = concat!("glibc", $called);
            const DROP_IN: &'static str = concat!("drop-in", $called);
            const TYPE: c_int = libc::$type;
            const PROTOCOL: c_int = libc::$protocol;
        }
    )*};
}

kinds! {
    /// A waiter sleeps at once. Most programs use this kind.
    Normal, "", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE;
    /// A waiter spins first, for as long as recent spins needed.
    Adaptive, ", adaptive", PTHREAD_MUTEX_ADAPTIVE_NP, PTHREAD_PRIO_NONE;
    /// The kernel hands it from the owner to a waiter, and lends the waiter's priority to the
    /// owner.
    Inherit, ", PI", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT;
    /// Its owner may lock it again.
    Recursive, ", recursive", PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_NONE;
    /// Relocking by its owner is an error.
    ErrorChecking, ", error-checking", PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PRIO_NONE;
}

/// `pthread_mutex_t`.
#[repr(C)]
pub struct Mutex<K, L: Library = CLibrary>(UnsafeCell<libc::pthread_mutex_t>, PhantomData<(K, L)>);

// SAFETY: a mutex is made to be used by many threads; the kind is only a type-level name.
unsafe impl<K, L: Library> Send for Mutex<K, L> {}
// SAFETY: as above.
unsafe impl<K, L: Library> Sync for Mutex<K, L> {}

// SAFETY: the C library's own lock.
bench_mutex! {
    #[inline] impl [K: MutexKind, L: Library] Mutex<K, L>
        = if L::IS_DROP_IN { K::DROP_IN } else { K::NAME };
    new: {
        let mutex = Self(
            UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER),
            PhantomData,
        );
        // SAFETY: the attributes are initialized here, and no other thread can reach the mutex yet.
        unsafe {
            let mut attributes: libc::pthread_mutexattr_t = core::mem::zeroed();
            done(libc::pthread_mutexattr_init(&mut attributes));
            done(libc::pthread_mutexattr_settype(&mut attributes, K::TYPE));
            done(libc::pthread_mutexattr_setprotocol(
                &mut attributes,
                K::PROTOCOL,
            ));
            done((L::functions().mutex_init)(mutex.0.get(), &attributes));
            done(libc::pthread_mutexattr_destroy(&mut attributes));
        }
        mutex
    };
    |lock| lock: succeeds((L::functions().mutex_lock)(lock.0.get()));
    try_lock: {
        let error = (L::functions().mutex_trylock)(lock.0.get());
        debug_assert!(error == 0 || error == libc::EBUSY);
        error == 0
    };
    unlock: succeeds((L::functions().mutex_unlock)(lock.0.get()));
}

impl<K, L: Library> Drop for Mutex<K, L> {
    fn drop(&mut self) {
        // SAFETY: no other reference to it exists. If it is still locked, the call returns an error
        // and does no harm.
        unsafe { (L::functions().mutex_destroy)(self.0.get()) };
    }
}

/// `pthread_cond_t`, with a normal mutex.
#[repr(C)]
pub struct Condvar<L: Library = CLibrary>(UnsafeCell<libc::pthread_cond_t>, PhantomData<L>);

// SAFETY: a condition variable is made to be used by many threads.
unsafe impl<L: Library> Send for Condvar<L> {}
// SAFETY: as above.
unsafe impl<L: Library> Sync for Condvar<L> {}

// SAFETY: the C library's own condition variable, used with its own mutex.
bench_condvar! {
    #[inline] impl [L: Library] Condvar<L>, Mutex<Normal, L>;
    new: Self(UnsafeCell::new(libc::PTHREAD_COND_INITIALIZER), PhantomData);
    |condvar, mutex| wait: succeeds((L::functions().cond_wait)(condvar.0.get(), mutex.0.get()));
    signal: _ = (L::functions().cond_signal)(condvar.0.get());
    broadcast: _ = (L::functions().cond_broadcast)(condvar.0.get());
}

// No `pthread_cond_destroy`: it waits for threads that are still waiting, and a failed workload may
// have left some.

/// The kind of reader-writer lock to create.
pub trait RwLockKind: 'static {
    /// Its name in the report.
    const NAME: &'static str;
    /// Its name when served by the drop-in.
    const DROP_IN: &'static str;
    /// The argument of `pthread_rwlockattr_setkind_np`.
    const KIND: c_int;
}

/// `PTHREAD_RWLOCK_PREFER_READER_NP`, the default: new readers overtake waiting writers.
#[derive(Debug)]
pub struct PreferReader;
/// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`: new readers wait behind waiting writers.
#[derive(Debug)]
pub struct PreferWriter;

impl RwLockKind for PreferReader {
    const NAME: &'static str = "glibc";
    const DROP_IN: &'static str = "drop-in";
    const KIND: c_int = 0;
}

impl RwLockKind for PreferWriter {
    const NAME: &'static str = "glibc, prefer writer";
    const DROP_IN: &'static str = "drop-in, prefer writer";
    const KIND: c_int = 2;
}

/// `pthread_rwlock_t`.
#[repr(C)]
pub struct RwLock<K, L: Library = CLibrary>(
    UnsafeCell<libc::pthread_rwlock_t>,
    PhantomData<(K, L)>,
);

// SAFETY: a reader-writer lock is made to be used by many threads; the kind is only a type-level
// name.
unsafe impl<K, L: Library> Send for RwLock<K, L> {}
// SAFETY: as above.
unsafe impl<K, L: Library> Sync for RwLock<K, L> {}

// SAFETY: the C library's own lock.
bench_rwlock! {
    #[inline] impl [K: RwLockKind, L: Library] RwLock<K, L>
        = if L::IS_DROP_IN { K::DROP_IN } else { K::NAME };
    new: {
        let lock = Self(
            UnsafeCell::new(libc::PTHREAD_RWLOCK_INITIALIZER),
            PhantomData,
        );
        // SAFETY: the attributes are initialized here, and no other thread can reach the lock yet.
        unsafe {
            let mut attributes: libc::pthread_rwlockattr_t = core::mem::zeroed();
            done(libc::pthread_rwlockattr_init(&mut attributes));
            done(libc::pthread_rwlockattr_setkind_np(
                &mut attributes,
                K::KIND,
            ));
            done((L::functions().rwlock_init)(lock.0.get(), &attributes));
            done(libc::pthread_rwlockattr_destroy(&mut attributes));
        }
        lock
    };
    |lock| read_lock: succeeds((L::functions().rwlock_rdlock)(lock.0.get()));
    read_unlock: succeeds((L::functions().rwlock_unlock)(lock.0.get()));
    write_lock: succeeds((L::functions().rwlock_wrlock)(lock.0.get()));
    write_unlock: succeeds((L::functions().rwlock_unlock)(lock.0.get()));
}

impl<K, L: Library> Drop for RwLock<K, L> {
    fn drop(&mut self) {
        // SAFETY: no other reference to it exists.
        unsafe { (L::functions().rwlock_destroy)(self.0.get()) };
    }
}

/// For the measured operations.
#[inline(always)]
fn succeeds(error: c_int) {
    debug_assert_eq!(error, 0);
}

/// # Panics
/// If the C library reports an error: the figures would describe something else.
fn done(error: c_int) {
    assert_eq!(error, 0, "the C library refuses to make such a lock");
}

/// `sem_t`.
pub struct Semaphore<L: Library = CLibrary>(UnsafeCell<libc::sem_t>, PhantomData<L>);

// SAFETY: a semaphore is made to be used by many threads.
unsafe impl<L: Library> Send for Semaphore<L> {}
// SAFETY: as above.
unsafe impl<L: Library> Sync for Semaphore<L> {}

impl<L: Library> Semaphore<L> {
    /// Creates a semaphore of value 1.
    pub fn new() -> Self {
        Self::with_value(1)
    }

    /// Creates a semaphore of this value.
    pub fn with_value(value: u32) -> Self {
        // SAFETY: plain bytes, initialized below before any other thread can reach them.
        let semaphore = unsafe { Self(core::mem::zeroed(), PhantomData) };
        // SAFETY: as above.
        done(unsafe { (L::functions().sem_init)(semaphore.0.get(), 0, value) });
        semaphore
    }

    /// Takes a token, waiting for one if needed.
    #[inline]
    pub fn wait(&self) {
        // SAFETY: the semaphore is initialized.
        succeeds(unsafe { (L::functions().sem_wait)(self.0.get()) });
    }

    /// Releases a token.
    #[inline]
    pub fn post(&self) {
        // SAFETY: the semaphore is initialized.
        succeeds(unsafe { (L::functions().sem_post)(self.0.get()) });
    }

    /// Takes an available token and releases it.
    #[inline]
    pub fn wait_and_post(&self) {
        self.wait();
        self.post();
    }
}

impl<L: Library> Default for Semaphore<L> {
    fn default() -> Self {
        Self::new()
    }
}

/// `pthread_once_t`.
pub struct Once<L: Library = CLibrary>(UnsafeCell<libc::pthread_once_t>, PhantomData<L>);

impl<L: Library> Once<L> {
    /// Creates one whose function has already run.
    pub fn done() -> Self {
        let once = Self(UnsafeCell::new(libc::PTHREAD_ONCE_INIT), PhantomData);
        once.ask();
        once
    }

    /// Checks that the function runs on the first call and not on the second.
    pub fn is_one() -> bool {
        thread_local! {
            static DONE: Cell<u32> = const { Cell::new(0) };
        }
        extern "C" fn count() {
            DONE.set(DONE.get() + 1);
        }
        let once = Self(UnsafeCell::new(libc::PTHREAD_ONCE_INIT), PhantomData);
        let before = DONE.get();
        for _ in 0..2 {
            // SAFETY: the once object is initialized.
            unsafe { (L::functions().once)(once.0.get(), count) };
        }
        DONE.get() - before == 1
    }

    /// Calls `pthread_once` on it.
    #[inline]
    pub fn ask(&self) {
        extern "C" fn nothing() {}
        // SAFETY: the once object is initialized.
        unsafe { (L::functions().once)(self.0.get(), nothing) };
    }
}
