//! oneTBB's (Intel's C++ library of tasks; Debian 12: 2021.8): `tbb::mutex`, `tbb::rw_mutex` and the two queuing ones.
//!
//! | lock | who waits |
//! |---|---|
//! | `tbb::mutex` | pauses (1, 2, ... 16), looks 32 times with a yield in between, then sleeps in a table by the mutex's address; first come, first served only there |
//! | `tbb::rw_mutex` | the same; a pending writer keeps new readers out |
//! | `tbb::queuing_mutex`, `tbb::queuing_rw_mutex` | in a queue, in strict order, each looking at a place of its own: pauses, then yields, and *never sleeps* |
//!
//! Used as oneTBB's specification says: the first two by `lock` and `unlock`, the queuing ones by a `scoped_lock`
//! ([`queuing`]). The library has no condition variable. Each unlock of the first two has a full barrier and a call into the library, which
//! looks in the table whether anybody sleeps. The queuing ones are made for as many threads as CPUs: with more, the next in the queue may be
//! one that does not run, and all wait until the scheduler comes to it. That is theirs, not this benchmark's.
//!
//! The functions of `tbb.cc` are one call each, through a [table](library) as with the drop-in. An unlocked mutex is all
//! zeros and may be moved: what sleeps in the library's table is there under the address only while it sleeps.

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

// SAFETY: one atomic to those who may touch it.
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
        // SAFETY: a lock made by `new`.
        unsafe { (functions().mutex_lock)(self.0.get()) }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        // SAFETY: as above.
        unsafe { (functions().mutex_try_lock)(self.0.get()) }
    }

    #[inline]
    unsafe fn unlock(&self) {
        // SAFETY: as above; held by the caller, as it says.
        unsafe { (functions().mutex_unlock)(self.0.get()) }
    }
}

/// `tbb::rw_mutex`.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct RwMutex(UnsafeCell<usize>);

// SAFETY: one atomic to those who may touch it.
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
        // SAFETY: a lock made by `new`.
        unsafe { (functions().rw_mutex_lock_shared)(self.0.get()) }
    }

    #[inline]
    unsafe fn read_unlock(&self) {
        // SAFETY: as above; held by the caller, as it says.
        unsafe { (functions().rw_mutex_unlock_shared)(self.0.get()) }
    }

    #[inline]
    fn write_lock(&self) {
        // SAFETY: as above.
        unsafe { (functions().rw_mutex_lock)(self.0.get()) }
    }

    #[inline]
    unsafe fn write_unlock(&self) {
        // SAFETY: as above; held by the caller, as it says.
        unsafe { (functions().rw_mutex_unlock)(self.0.get()) }
    }
}
