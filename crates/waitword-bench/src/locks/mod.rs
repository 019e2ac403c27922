//! What a lock must offer to be measured, and the contenders: ours in each flavour, the peers, and the old ways, which is what
//! there was before each of the futex patches that this project takes up.
//!
//! The loops of the workloads are generic over these traits, so that they are the same for every contender. In
//! every contender each operation is *one call of a function that is not inlined* (libc's and the C++ libraries' are so
//! by nature; the Rust ones are made so), and what differs between two figures is what the locks do.
//!
//! | file | locks |
//! |---|---|
//! | [`glibc`] | the C library's: mutex normal (the baseline), adaptive, PI; condvar; rwlock in both preferences |
//! | [`pthread`] | whose functions serve these: the C library's, or the drop-in's, beside it in this process |
//! | [`semaphore`], [`barrier`], [`event`] | what is no lock, with a trait of its own each, and the contenders |
//! | [`futex`], [`futex_pi`] | the textbook's mutex, directly on futex(2); a plain PI futex |
//! | [`requeue`] | the condvar before and after the patch of 2003: wakes all, or requeues |
//! | [`nptl`] | NPTL's condvar before and after the patch of 2005, in three manners |
//! | [`nptl_rwlock`] | NPTL's rwlock, which the patch of 2008 was to replace |
//! | [`stdlib`], [`parking_lot`] | Rust's standard library; the crate of that name |
//! | `cpp` | the C++ standard library's, and a mutex of `std::atomic::wait`; there if the build script found a compiler |
//! | `tbb` | oneTBB's, adaptive and queuing; there if the build script found it, and if it can be loaded |
//! | `nsync`, `absl` | Google's, in C and C++; there if the build script found them |
//! | `every` | the lists of all contenders, for workloads to walk |
//!
//! A peer that this build does not have (its library was not installed) is named in the report, not silently left
//! out: [`missing`].

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

/// A mutual-exclusion lock. All zeros need not be one; one that nobody holds may be moved.
///
/// # Safety
/// Between a `lock` (or a `try_lock` that says true) and the same thread's `unlock`, no other thread's `lock` returns.
pub unsafe trait BenchMutex: Send + Sync + Sized + 'static {
    /// As the report calls it.
    const NAME: &'static str;
    /// An unlocked one.
    fn new() -> Self;
    /// Takes it, waiting as long as it needs.
    fn lock(&self);
    /// Takes it if that needs no waiting; whether it did.
    fn try_lock(&self) -> bool;
    /// Gives it back.
    ///
    /// # Safety
    /// The calling thread holds it, and it has not been moved since it was locked.
    unsafe fn unlock(&self);
}

/// A condition variable and the mutex that it works with.
///
/// # Safety
/// As [`BenchMutex`] for the mutex; `wait` gives it back and takes it again.
pub unsafe trait BenchCondvar: Send + Sync + Sized + 'static {
    /// What it works with.
    type Mutex: BenchMutex;
    /// As the report calls it; by default as its mutex.
    const NAME: &'static str = <Self::Mutex as BenchMutex>::NAME;
    /// One that nobody waits on.
    fn new() -> Self;
    /// Waits to be signalled. May return for no reason.
    ///
    /// # Safety
    /// As [`BenchMutex::unlock`]; all who wait at the same time have the same mutex.
    unsafe fn wait(&self, mutex: &Self::Mutex);
    /// Wakes one.
    fn signal(&self);
    /// Wakes all.
    fn broadcast(&self);
}

/// A lock for many readers or one writer.
///
/// # Safety
/// While a writer holds it, nobody else does.
pub unsafe trait BenchRwLock: Send + Sync + Sized + 'static {
    /// As the report calls it.
    const NAME: &'static str;
    /// An unlocked one.
    fn new() -> Self;
    /// Takes it for reading.
    fn read_lock(&self);
    /// Gives a reader's hold back.
    ///
    /// # Safety
    /// The calling thread holds it for reading, it has not been moved since, and the thread has no other lock of the type for
    /// reading: one at a time.
    unsafe fn read_unlock(&self);
    /// Takes it for writing.
    fn write_lock(&self);
    /// Gives a writer's hold back.
    ///
    /// # Safety
    /// The calling thread holds it for writing, and it has not been moved since.
    unsafe fn write_unlock(&self);
}

#[cfg(test)]
mod tests;
