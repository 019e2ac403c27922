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

use super::traits::{bench_mutex, bench_rwlock};
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
bench_mutex! {
    #[inline] impl [] Mutex = "tbb::mutex";
    new: Self::default();
    |lock| lock: (functions().mutex_lock)(lock.0.get());
    try_lock: (functions().mutex_try_lock)(lock.0.get());
    unlock: (functions().mutex_unlock)(lock.0.get());
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
bench_rwlock! {
    #[inline] impl [] RwMutex = "tbb::rw_mutex";
    new: Self::default();
    |lock| read_lock: (functions().rw_mutex_lock_shared)(lock.0.get());
    read_unlock: (functions().rw_mutex_unlock_shared)(lock.0.get());
    write_lock: (functions().rw_mutex_lock)(lock.0.get());
    write_unlock: (functions().rw_mutex_unlock)(lock.0.get());
}
