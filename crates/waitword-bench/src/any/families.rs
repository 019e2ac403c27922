//! The work of each family, generic over the lock. Each checks its lock: what it guards is in the end what was counted.

pub(super) mod burst;
pub(super) mod fork_join;
pub(super) mod many_mutexes;
pub(super) mod mutex;
pub(super) mod pool;
pub(super) mod queue;
pub(super) mod rwlock;

use super::cell::Cell;
use super::crowd::Outcome;
use crate::harness::{Failure, check};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// What is run.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    pub(super) cell: &'a Cell,
    pub(super) time: Duration,
    pub(super) is_traced: bool,
}

/// A number that only the holder of a lock writes, on a line of its own.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Tally(AtomicU64);

impl Tally {
    /// One more; by the lock's holder. A load and a store, and not one atomic step: of two threads that hold the lock at
    /// once, one's is lost. Relaxed, since the lock has to bring the order.
    #[inline(always)]
    pub(super) fn count(&self) {
        self.0.store(self.0.load(Relaxed) + 1, Relaxed);
    }

    /// So far.
    pub(super) fn so_far(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The sections that were counted under the lock are those that the threads have counted.
pub(super) fn check_counted(counted: u64, outcome: &Outcome) -> Result<(), Failure> {
    let done: u64 = outcome.operations.iter().sum();
    check(counted == done, || {
        format!("{done} sections were done, of which the lock has let {counted} count")
    })
}
