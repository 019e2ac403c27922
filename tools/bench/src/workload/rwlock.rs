//! `rwlock`: several threads, one reader-writer lock.
//!
//! **Work.** Thread i, on CPU i mod n, repeats until time is up. A read section compares two
//! numbers; a write section increments both. Nothing in between, as in the mail; in some cases 1000
//! ns of work, as in programs: a lock's advantage when threads do nothing but lock it may vanish
//! there.
//!
//! | cases | each thread |
//! |---|---|
//! | *t = ..., one write in ...* | reads, except for one operation in 1000, 100, 10 or 2 |
//! | *... readers, ... writers* | only reads, or only writes |
//!
//! **Reproduces** Ulrich Drepper's benchmark (mail of 2008, 64-bit futexes): 2^k read sections of
//! trivial work, 1 to 16 threads. There, a lock with its whole state in one 64-bit word took 20 %
//! less time than the C library's, which has several variables behind an internal lock (the
//! baseline here is today's *glibc*), with one thread, and 64 to 75 % less with 2 to 16; and its
//! curve was flat beyond the number of cores. The mail counts up to a number of operations and
//! takes the minimum of ten runs; here it is a time, and the report has the minimum of all rounds
//! next to the median. The second kind of case is ours: how long one class of threads must wait
//! while the other never pauses.
//!
//! **Figures** of the first kind. *time*: the run's, divided by the operations of all threads:
//! nanoseconds per operation, on n CPUs at best an n-th of its duration. (For cycles: the report's
//! header has the time-stamp counter's ticks per nanosecond.) *all threads*: its inverse,
//! operations per second. CPU time and context switches are in the columns that every report has
//! (`/op`). *fairness*: Jain's index over the threads' counts; 1 if all are equal. *wait p99.9,
//! max*: of all lock calls, in a separate run.
//!
//! Of the second kind. *reads*, *writes*: of all readers and of all writers, per second; *more is
//! better*. *read* and *write p50, p99, p99.9, max*: from before the lock call until after it, for
//! each class. A wait as long as the run (300 ms) ended only because the other class stopped: that
//! is starvation. With more threads than CPUs, a wait for the lock can include a wait for the CPU.

pub(super) mod classes;
pub(super) mod mixed;

use crate::harness::{Case, Failure, check};
use crate::locks::BenchRwLock;
use crate::run::{Settings, Workload};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The workload, as selected by name.
pub const WORKLOAD: Workload = Workload {
    name: "rwlock",
    about: "t threads read and seldom write under one rwlock; readers against writers: throughput, \
            waits",
    patch: Some(crate::workload::Patch::Wide),
    milliseconds: 170,
    cases,
};

fn cases(settings: &Settings) -> Vec<Case> {
    let mut cases = mixed::cases(settings);
    cases.extend(classes::cases(settings));
    cases
}

/// A lock and two numbers under it, on a separate cache line: the lock's size must not decide
/// whether they disturb it.
#[repr(C, align(128))]
struct Guarded<L> {
    lock: L,
    numbers: Numbers,
}

#[derive(Default)]
#[repr(align(128))]
struct Numbers([AtomicU64; 2]);

impl<L: BenchRwLock> Guarded<L> {
    fn new() -> Self {
        Self {
            lock: L::new(),
            numbers: Numbers::default(),
        }
    }

    /// A read section. Returns whether it saw a half-done write.
    #[inline(always)]
    fn read(&self) -> bool {
        // Relaxed, here and below: the lock must provide the ordering.
        let [first, second] = &self.numbers.0;
        first.load(Relaxed) != second.load(Relaxed)
    }

    /// A write section. Loads and stores instead of atomic steps: if two writers hold the lock at
    /// once, an increment is lost.
    #[inline(always)]
    fn write(&self) {
        for number in &self.numbers.0 {
            let so_far = number.load(Relaxed);
            number.store(so_far + 1, Relaxed);
        }
    }

    /// The number of write sections, by each number. Takes the lock.
    fn writes(&self) -> [u64; 2] {
        self.lock.read_lock();
        let writes = self.numbers.0.each_ref().map(|number| number.load(Relaxed));
        // SAFETY: locked above; `&self` keeps it in place; this thread holds no other.
        unsafe { self.lock.read_unlock() };
        writes
    }
}

/// Fails unless each writer was alone. `writes` write sections were done since the numbers were
/// `before`, and `torn` read sections saw a half-done one.
fn check_writes<L: BenchRwLock>(
    guarded: &Guarded<L>,
    before: [u64; 2],
    writes: u64,
    torn: u64,
) -> Result<(), Failure> {
    let now = guarded.writes();
    let counted = [now[0] - before[0], now[1] - before[1]];
    check(counted == [writes; 2] && torn == 0, || {
        format!(
            "a writer was not alone: {writes} writes were done, {counted:?} counted; {torn} reads \
             saw a half-done write"
        )
    })
}

#[cfg(test)]
mod tests;
