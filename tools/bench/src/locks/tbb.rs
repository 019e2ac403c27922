//! oneTBB (Intel's C++ task library; Debian 12: 2021.8): `tbb::mutex`, `tbb::rw_mutex` and the two
//! queuing mutexes.
//!
//! | lock | a waiter |
//! |---|---|
//! | `tbb::mutex` | pauses (1, 2, ... 16), checks with 32 yields, then sleeps in an address table |
//! | `tbb::rw_mutex` | the same; a pending writer keeps new readers out |
//! | `tbb::queuing_mutex`, `tbb::queuing_rw_mutex` | pauses, then yields, and *never sleeps* |
//!
//! `tbb::mutex` is first come, first served only in that table. The waiters of the queuing mutexes
//! form a queue in strict order, and each spins on a place of its own.
//!
//! Used as oneTBB's specification describes: the first two by `lock` and `unlock`, the queuing ones
//! by a `scoped_lock` ([`queuing`]). The library has no condition variable. Each unlock of the
//! first two is a full barrier and a call into the library, which checks the table for sleepers.
//! The queuing mutexes are made for at most as many threads as CPUs. With more, the next thread in
//! the queue may not be running, and all others wait until the scheduler runs it. This is a
//! property of oneTBB, not of this benchmark.
//!
//! The functions in `tbb.cc` are one call each, through a [table](library) as with the drop-in. An
//! unlocked mutex is all zeros and may be moved: the library's table knows its address only while a
//! thread sleeps there.

pub mod library;
pub mod queuing;

use super::{BenchMutex, BenchRwLock};
use core::cell::UnsafeCell;
use library::functions;
pub use library::is_there;

/// `tbb::mutex`.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Mutex(UnsafeCell<usize>);

// SAFETY: one word, accessed only atomically by oneTBB's functions.
unsafe impl Send for Mutex {}
// SAFETY: as above.
unsafe impl Sync for Mutex {}

// SAFETY: oneTBB's own lock.
unsafe impl BenchMutex for Mutex {
    const NAME: &'static str = "tbb::mutex";

    fn new() -> Self {
        Self::default()
    }

    #[inline]
    fn lock(&self) {
        // SAFETY: the lock was made by `new`.
        unsafe { (functions().mutex_lock)(self.0.get()) }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        // SAFETY: as above.
        unsafe { (functions().mutex_try_lock)(self.0.get()) }
    }

    #[inline]
    unsafe fn unlock(&self) {
        // SAFETY: as above; the caller holds the lock, per this method's contract.
        unsafe { (functions().mutex_unlock)(self.0.get()) }
    }
}

/// `tbb::rw_mutex`.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct RwMutex(UnsafeCell<usize>);

// SAFETY: one word, accessed only atomically by oneTBB's functions.
unsafe impl Send for RwMutex {}
// SAFETY: as above.
unsafe impl Sync for RwMutex {}

// SAFETY: oneTBB's own lock.
unsafe impl BenchRwLock for RwMutex {
    const NAME: &'static str = "tbb::rw_mutex";

    fn new() -> Self {
        Self::default()
    }

    #[inline]
    fn read_lock(&self) {
        // SAFETY: the lock was made by `new`.
        unsafe { (functions().rw_mutex_lock_shared)(self.0.get()) }
    }

    #[inline]
    unsafe fn read_unlock(&self) {
        // SAFETY: as above; the caller holds the lock, per this method's contract.
        unsafe { (functions().rw_mutex_unlock_shared)(self.0.get()) }
    }

    #[inline]
    fn write_lock(&self) {
        // SAFETY: as above.
        unsafe { (functions().rw_mutex_lock)(self.0.get()) }
    }

    #[inline]
    unsafe fn write_unlock(&self) {
        // SAFETY: as above; the caller holds the lock, per this method's contract.
        unsafe { (functions().rw_mutex_unlock)(self.0.get()) }
    }
}
