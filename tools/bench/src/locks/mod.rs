//! The interface that a lock must offer to be measured, and the contenders: ours in each flavour,
//! the peers, and the historical implementations from before each futex patch that this project
//! takes up.
//!
//! The workloads' loops are generic over these traits, so they are the same for every contender. In
//! every contender each operation is *one call of a function that is not inlined* (libc's and the
//! C++ libraries' are so by nature; the Rust ones are marked so). Two figures differ only by the
//! locks.
//!
//! | file | locks |
//! |---|---|
//! | [`glibc`] | the C library's mutex (normal, the baseline; adaptive; PI), condvar, two rwlocks |
//! | [`pthread`] | the functions for these: the C library's, or the drop-in's in the same process |
//! | [`semaphore`], [`barrier`], [`event`] | primitives with their own traits and contenders |
//! | [`futex`], [`futex_pi`] | the textbook mutex, directly on futex(2); a bare PI futex |
//! | [`requeue`] | the condvar before and after the patch of 2003: wakes all, or requeues |
//! | [`nptl`] | NPTL's condvar before and after the patch of 2005, in three variants |
//! | [`nptl_rwlock`] | NPTL's rwlock, which the patch of 2008 was meant to replace |
//! | [`stdlib`], [`parking_lot`] | Rust's standard library; the crate of that name |
//! | `cpp` | the C++ standard library, and a `std::atomic::wait` mutex; if a compiler was found |
//! | `tbb` | oneTBB, adaptive and queuing; if the build script found it and it can be loaded |
//! | `nsync`, `absl` | Google's, in C and C++; if the build script found them |
//! | `every` | the lists of all contenders, which the workloads iterate over |
//!
//! A peer missing from this build (its library was not installed) is named in the report rather
//! than silently left out: [`missing`].

mod every;
mod names;

#[cfg(has_absl)]
pub mod absl;
pub mod barrier;
#[cfg(has_cpp)]
pub mod cpp;
pub mod event;
pub mod futex;
pub mod futex_pi;
pub mod glibc;
pub mod nptl;
pub mod nptl_rwlock;
#[cfg(has_nsync)]
pub mod nsync;
pub mod ours;
pub mod parking_lot;
pub mod pthread;
pub mod requeue;
pub mod semaphore;
pub mod stdlib;
#[cfg(has_tbb)]
pub mod tbb;

pub use every::{Missing, missing};
pub(crate) use every::{every_condvar, every_mutex, every_rwlock};
pub use names::{DROP_IN, is_ours, is_peer, marked, names, owner, remark, remarks};

/// A mutual-exclusion lock. An all-zero value need not be valid; an unlocked one may be moved.
///
/// # Safety
/// Between a `lock` (or a `try_lock` that returns true) and the same thread's `unlock`, no other
/// thread's `lock` returns.
pub unsafe trait BenchMutex: Send + Sync + Sized + 'static {
    /// Its name in the report.
    const NAME: &'static str;
    /// Creates an unlocked mutex.
    fn new() -> Self;
    /// Locks it, waiting as long as needed.
    fn lock(&self);
    /// Locks it if that needs no waiting, and returns whether it did.
    fn try_lock(&self) -> bool;
    /// Unlocks it.
    ///
    /// # Safety
    /// The calling thread holds it, and it has not been moved since it was locked.
    unsafe fn unlock(&self);
}

/// A condition variable and the mutex that it works with.
///
/// # Safety
/// As for [`BenchMutex`], concerning the mutex; `wait` unlocks and relocks it.
pub unsafe trait BenchCondvar: Send + Sync + Sized + 'static {
    /// The mutex type that it works with.
    type Mutex: BenchMutex;
    /// Its name in the report; by default that of its mutex.
    const NAME: &'static str = <Self::Mutex as BenchMutex>::NAME;
    /// Creates one without waiters.
    fn new() -> Self;
    /// Waits for a signal. Spurious wake-ups are allowed.
    ///
    /// # Safety
    /// As for [`BenchMutex::unlock`]; all threads that wait at the same time use the same mutex.
    unsafe fn wait(&self, mutex: &Self::Mutex);
    /// Wakes one waiter.
    fn signal(&self);
    /// Wakes all waiters.
    fn broadcast(&self);
}

/// A lock for many readers or one writer.
///
/// # Safety
/// While a writer holds it, no other thread does.
pub unsafe trait BenchRwLock: Send + Sync + Sized + 'static {
    /// Its name in the report.
    const NAME: &'static str;
    /// Creates an unlocked one.
    fn new() -> Self;
    /// Locks it for reading.
    fn read_lock(&self);
    /// Unlocks it for a reader.
    ///
    /// # Safety
    /// The calling thread holds it for reading, it has not been moved since, and the thread holds
    /// no other lock of this type for reading: one at a time.
    unsafe fn read_unlock(&self);
    /// Locks it for writing.
    fn write_lock(&self);
    /// Unlocks it for a writer.
    ///
    /// # Safety
    /// The calling thread holds it for writing, and it has not been moved since.
    unsafe fn write_unlock(&self);
}

#[cfg(test)]
mod tests;
