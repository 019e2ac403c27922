//! The Rust standard library: `Mutex`, `Condvar`, `RwLock`.
//!
//! They can be unlocked only by dropping a guard, so the guard must be stored from lock to unlock:
//!
//! | guard of | stored | reason |
//! |---|---|---|
//! | a mutex, a writer | next to the lock, on its own cache line | there is one; locks may nest |
//! | a reader | in the thread, one at a time | there are many; a shared place would need a lock |
//!
//! A real program has its guard on the stack. This adds a store and a load of 16 bytes. Three
//! places were compared in one run: the lock's own line, a separate line, and the thread (which
//! allows no nesting). Uncontended, they were within 1 % of each other. With two threads, the
//! lock's own line, which the waiter keeps reading, was some 5 % slower; the other two were equal.

use super::traits::{BenchCondvar, BenchMutex, BenchRwLock};
use core::cell::{Cell, UnsafeCell};
use core::mem::MaybeUninit;
use std::sync::{self, MutexGuard, PoisonError, RwLockReadGuard, RwLockWriteGuard, TryLockError};

const NAME: &str = "std";

/// A place for a guard. The thread that has just locked fills it, and empties it before it unlocks.
#[derive(Debug)]
#[repr(align(128))]
struct Kept<G>(UnsafeCell<MaybeUninit<G>>);

impl<G> Kept<G> {
    const fn new() -> Self {
        Self(UnsafeCell::new(MaybeUninit::uninit()))
    }

    /// # Safety
    /// The calling thread holds the lock that `guard` belongs to, and the place is empty.
    #[inline(always)]
    unsafe fn put(&self, guard: G) {
        // SAFETY: only the lock's holder accesses the place, and the caller is the holder.
        unsafe { (*self.0.get()).write(guard) };
    }

    /// # Safety
    /// The calling thread holds the lock, has [`Kept::put`] its guard here, and has not taken it
    /// yet.
    #[inline(always)]
    unsafe fn take(&self) -> G {
        // SAFETY: only the lock's holder accesses the place, and the caller is the holder; a guard
        // is there and is read once.
        unsafe { (*self.0.get()).assume_init_read() }
    }
}

/// Extends the reference's lifetime.
///
/// # Safety
/// The result is not used after its referent has moved or been dropped.
#[inline(always)]
unsafe fn forever<T>(reference: &T) -> &'static T {
    // SAFETY: the caller guarantees it.
    unsafe { &*core::ptr::from_ref(reference) }
}

/// `std::sync::Mutex`.
#[derive(Debug)]
#[repr(C)]
pub struct Mutex {
    inner: sync::Mutex<()>,
    guard: Kept<MutexGuard<'static, ()>>,
}

// SAFETY: the guard never leaves the thread that locked, because `BenchMutex` demands that the same
// thread unlocks; only the holder accesses the place for it.
unsafe impl Send for Mutex {}
// SAFETY: as above.
unsafe impl Sync for Mutex {}

// SAFETY: the standard library's own lock.
unsafe impl BenchMutex for Mutex {
    const NAME: &'static str = NAME;

    fn new() -> Self {
        Self { inner: sync::Mutex::new(()), guard: Kept::new() }
    }

    #[inline(never)]
    fn lock(&self) {
        // SAFETY: the guard's next and last use is in `unlock`, whose caller guarantees that the
        // lock has not moved.
        let inner = unsafe { forever(&self.inner) };
        let guard = inner.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: just locked; the previous holder took its guard away.
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
        // SAFETY: the caller holds it, per this method's contract.
        drop(unsafe { self.guard.take() });
    }
}

/// `std::sync::Condvar`.
#[derive(Debug)]
pub struct Condvar(sync::Condvar);

// SAFETY: the standard library's own condition variable, used with its own mutex.
unsafe impl BenchCondvar for Condvar {
    type Mutex = Mutex;

    fn new() -> Self {
        Self(sync::Condvar::new())
    }

    #[inline(never)]
    unsafe fn wait(&self, mutex: &Mutex) {
        // SAFETY: the caller holds it, per this method's contract.
        let guard = unsafe { mutex.guard.take() };
        let guard = self.0.wait(guard).unwrap_or_else(PoisonError::into_inner);
        // SAFETY: held again; the previous holder took its guard away.
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

/// Has no destructor, so it is a plain place in thread-local memory.
type Reader = MaybeUninit<RwLockReadGuard<'static, ()>>;

thread_local! {
    static READER: Cell<Reader> = const { Cell::new(MaybeUninit::uninit()) };
    /// Checks that there is at most one.
    #[cfg(debug_assertions)]
    static READS: Cell<bool> = const { Cell::new(false) };
}

// SAFETY: as for `Mutex`; readers' guards stay in their threads.
unsafe impl Send for RwLock {}
// SAFETY: as above.
unsafe impl Sync for RwLock {}

// SAFETY: the standard library's own lock.
unsafe impl BenchRwLock for RwLock {
    const NAME: &'static str = NAME;

    fn new() -> Self {
        Self { inner: sync::RwLock::new(()), writer: Kept::new() }
    }

    #[inline(never)]
    fn read_lock(&self) {
        #[cfg(debug_assertions)]
        assert!(!READS.replace(true), "one read lock a thread at a time");
        // SAFETY: the guard's next and last use is in `read_unlock`, whose caller guarantees that
        // the lock has not moved.
        let inner = unsafe { forever(&self.inner) };
        let guard = inner.read().unwrap_or_else(PoisonError::into_inner);
        READER.set(MaybeUninit::new(guard));
    }

    #[inline(never)]
    unsafe fn read_unlock(&self) {
        #[cfg(debug_assertions)]
        assert!(READS.replace(false), "nothing to unlock");
        // SAFETY: the caller guarantees that this thread holds the lock for reading, so the guard
        // is there; it is read once.
        drop(unsafe { READER.replace(MaybeUninit::uninit()).assume_init() });
    }

    #[inline(never)]
    fn write_lock(&self) {
        // SAFETY: as for `read_lock`.
        let inner = unsafe { forever(&self.inner) };
        let guard = inner.write().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: just locked for writing; the previous writer took its guard away.
        unsafe { self.writer.put(guard) };
    }

    #[inline(never)]
    unsafe fn write_unlock(&self) {
        // SAFETY: the caller holds it for writing, per this method's contract.
        drop(unsafe { self.writer.take() });
    }
}
