//! The Rust standard library's: `Mutex`, `Condvar`, `RwLock`.
//!
//! They are unlocked by dropping a guard and in no other way, so the guard must be kept from lock to unlock. Where:
//!
//! | guard | is kept | since |
//! |---|---|---|
//! | of a mutex, of a writer | beside the lock, on a cache line of its own | there is one, and locks may be nested |
//! | of a reader | in the thread, one at a time | there are many, and a shared place would be a lock of its own |
//!
//! A real program has its guard on the stack. What is added here is a store and a load of 16 bytes. Compared in
//! one run: in the lock's own line, on a line of its own, and in the thread (which allows no nesting) were within 1 % of each
//! other uncontended. With two threads, in the lock's own line, which the waiter reads all the while, was some
//! 5 % behind; the other two were alike.

use super::{BenchCondvar, BenchMutex, BenchRwLock};
use core::cell::{Cell, UnsafeCell};
use core::mem::MaybeUninit;
use std::sync::{self, MutexGuard, PoisonError, RwLockReadGuard, RwLockWriteGuard, TryLockError};

const NAME: &str = "std";

/// A place for a guard, written by the thread that has just locked, and emptied by it before it unlocks.
#[derive(Debug)]
#[repr(align(128))]
struct Kept<G>(UnsafeCell<MaybeUninit<G>>);

impl<G> Kept<G> {
    const fn new() -> Self {
        Self(UnsafeCell::new(MaybeUninit::uninit()))
    }

    /// # Safety
    /// The calling thread holds the lock that `guard` is of; nothing is kept here.
    #[inline(always)]
    unsafe fn put(&self, guard: G) {
        // SAFETY: only the lock's holder comes here, and this is it.
        unsafe { (*self.0.get()).write(guard) };
    }

    /// # Safety
    /// The calling thread holds the lock and has [`Kept::put`] its guard here; it has not taken it yet.
    #[inline(always)]
    unsafe fn take(&self) -> G {
        // SAFETY: only the lock's holder comes here, and this is it; there is a guard, which is read once.
        unsafe { (*self.0.get()).assume_init_read() }
    }
}

/// The same reference, for as long as one likes.
///
/// # Safety
/// It is not used after what it refers to has moved or gone.
#[inline(always)]
unsafe fn forever<T>(reference: &T) -> &'static T {
    // SAFETY: as the caller says.
    unsafe { &*core::ptr::from_ref(reference) }
}

/// `std::sync::Mutex`.
#[derive(Debug)]
#[repr(C)]
pub struct Mutex {
    inner: sync::Mutex<()>,
    guard: Kept<MutexGuard<'static, ()>>,
}

// SAFETY: the guard never leaves the thread that locked: the same thread unlocks, as `BenchMutex` asks; the place for it is
// touched by the holder only.
unsafe impl Send for Mutex {}
// SAFETY: as above.
unsafe impl Sync for Mutex {}

// SAFETY: the standard library's own lock.
unsafe impl BenchMutex for Mutex {
    const NAME: &'static str = NAME;

    fn new() -> Self {
        Self {
            inner: sync::Mutex::new(()),
            guard: Kept::new(),
        }
    }

    #[inline(never)]
    fn lock(&self) {
        // SAFETY: the guard's next and last use is in `unlock`, whose caller says that the lock has not moved.
        let inner = unsafe { forever(&self.inner) };
        let guard = inner.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: just locked; who held it before took its guard away.
        unsafe { self.guard.put(guard) };
    }

    #[inline(never)]
    fn try_lock(&self) -> bool {
        // SAFETY: as in `lock`.
        let guard = match unsafe { forever(&self.inner) }.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        // SAFETY: as in `lock`.
        unsafe { self.guard.put(guard) };
        true
    }

    #[inline(never)]
    unsafe fn unlock(&self) {
        // SAFETY: the caller holds it, as it says.
        drop(unsafe { self.guard.take() });
    }
}

/// `std::sync::Condvar`.
#[derive(Debug)]
pub struct Condvar(sync::Condvar);

// SAFETY: the standard library's own, with its own mutex.
unsafe impl BenchCondvar for Condvar {
    type Mutex = Mutex;

    fn new() -> Self {
        Self(sync::Condvar::new())
    }

    #[inline(never)]
    unsafe fn wait(&self, mutex: &Mutex) {
        // SAFETY: the caller holds it, as it says.
        let guard = unsafe { mutex.guard.take() };
        let guard = self.0.wait(guard).unwrap_or_else(PoisonError::into_inner);
        // SAFETY: held again; who held it meanwhile took its guard away.
        unsafe { mutex.guard.put(guard) };
    }

    #[inline(never)]
    fn signal(&self) {
        self.0.notify_one();
    }

    #[inline(never)]
    fn broadcast(&self) {
        self.0.notify_all();
    }
}

/// `std::sync::RwLock`. A thread holds at most one for reading at a time.
#[derive(Debug)]
#[repr(C)]
pub struct RwLock {
    inner: sync::RwLock<()>,
    writer: Kept<RwLockWriteGuard<'static, ()>>,
}

/// Needs no destructor, so that it is a plain place in the thread's memory.
type Reader = MaybeUninit<RwLockReadGuard<'static, ()>>;

thread_local! {
    static READER: Cell<Reader> = const { Cell::new(MaybeUninit::uninit()) };
    /// For the check that there is one at most.
    #[cfg(debug_assertions)]
    static READS: Cell<bool> = const { Cell::new(false) };
}

// SAFETY: as for `Mutex`; readers' guards are in their threads.
unsafe impl Send for RwLock {}
// SAFETY: as above.
unsafe impl Sync for RwLock {}

// SAFETY: the standard library's own lock.
unsafe impl BenchRwLock for RwLock {
    const NAME: &'static str = NAME;

    fn new() -> Self {
        Self {
            inner: sync::RwLock::new(()),
            writer: Kept::new(),
        }
    }

    #[inline(never)]
    fn read_lock(&self) {
        #[cfg(debug_assertions)]
        assert!(!READS.replace(true), "one read lock a thread at a time");
        // SAFETY: the guard's next and last use is in `read_unlock`, whose caller says that the lock has not moved.
        let inner = unsafe { forever(&self.inner) };
        let guard = inner.read().unwrap_or_else(PoisonError::into_inner);
        READER.set(MaybeUninit::new(guard));
    }

    #[inline(never)]
    unsafe fn read_unlock(&self) {
        #[cfg(debug_assertions)]
        assert!(READS.replace(false), "nothing to unlock");
        // SAFETY: the calling thread has locked for reading and not yet unlocked, as the caller says: there is a
        // guard, and it is read once.
        drop(unsafe { READER.replace(MaybeUninit::uninit()).assume_init() });
    }

    #[inline(never)]
    fn write_lock(&self) {
        // SAFETY: as for `read_lock`.
        let inner = unsafe { forever(&self.inner) };
        let guard = inner.write().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: just locked for writing; the writer before took its guard away.
        unsafe { self.writer.put(guard) };
    }

    #[inline(never)]
    unsafe fn write_unlock(&self) {
        // SAFETY: the caller holds it for writing, as it says.
        drop(unsafe { self.writer.take() });
    }
}
