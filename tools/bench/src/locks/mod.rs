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
mod traits;

pub use crate::names::{DROP_IN, is_ours, is_peer, marked, owner, remark, remarks};
pub use every::{Missing, missing, names};
pub(crate) use every::{condvars, every_condvar, every_mutex, every_rwlock, mutexes, rwlocks};
pub use traits::{BenchCondvar, BenchMutex, BenchRwLock};

#[cfg(test)]
mod tests;
