//! The work of each family, generic over the lock. Each family checks its lock: in the end the
//! guarded count must equal what the threads counted.

pub(super) mod burst;
pub(super) mod fork_join;
pub(super) mod many_mutexes;
pub(super) mod mutex;
pub(super) mod pool;
pub(super) mod queue;
pub(super) mod rwlock;

use super::crowd::Outcome;
use crate::harness::{Failure, check};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A counter that only the lock's holder writes, on a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Tally(AtomicU64);

impl Tally {
    /// Adds one; called by the lock's holder. This is a load and a store, not one atomic step: if
    /// two threads hold the lock at once, an increment is lost. Relaxed, because the lock must
    /// provide the ordering.
    #[inline(always)]
    pub(super) fn count(&self) {
        self.0.store(self.0.load(Relaxed) + 1, Relaxed);
    }

    /// The count so far.
    pub(super) fn so_far(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Checks that the sections counted under the lock equal those the threads counted.
pub(super) fn check_counted(counted: u64, outcome: &Outcome) -> Result<(), Failure> {
    let done: u64 = outcome.operations.iter().sum();
    check(counted == done, || {
        format!("{done} sections were done, but {counted} were counted under the lock")
    })
}
