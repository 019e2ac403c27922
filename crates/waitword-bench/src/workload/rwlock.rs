//! `rwlock`: some threads, one reader-writer lock.
//!
//! **Work.** Thread i, on CPU i mod n, over and over until time is over. A read section compares two numbers; a write
//! section adds one to each. Nothing between, as in the mail; in some cases 1000 ns of work, as in
//! programs: what a lock gains where threads do nothing but lock it may be gone there.
//!
//! | cases | each thread |
//! |---|---|
//! | *t = ..., one write in ...* | reads, but for one operation in 1000, 100, 10 or 2 |
//! | *... readers, ... writers* | only reads, or only writes |
//!
//! **Redraws** Ulrich Drepper's benchmark (mail of 2008, 64-bit futexes): 2^k read sections of trivial work, 1 to 16
//! threads. A lock whose whole state was one 64-bit word took 20 % less time there than the C library's of several
//! variables behind an internal lock (*glibc* today, the baseline here) with one thread, and 64 to 75 % less with 2
//! to 16; and its curve was flat past the number of cores. The mail counts up to a number of operations and takes the
//! least of ten runs; here it is a time, and the report has the least of all rounds beside the median. The second
//! kind of cases is ours: how long a class of threads must wait while the other never leaves off.
//!
//! **Figures** of the first kind. *time*: the run's, by the operations of all threads: nanoseconds for one, on n CPUs
//! at best an n-th of what it takes. (For cycles: the report's header says how many ticks of the time-stamp counter a
//! nanosecond has.) *all threads*: the same the other way round, operations in a second. CPU time
//! and context switches are in the columns that every report has (`/op`). *fairness*: Jain's index
//! over the threads' counts; 1 if all have done the same. *wait p99.9, max*: of all lock calls, in
//! a run of their own.
//!
//! Of the second kind. *reads*, *writes*: of all readers and all writers, in a second; *more is better*. *read* and
//! *write p50, p99, p99.9, max*: from before the lock call until after, for each class. A wait as
//! long as the run (300 ms) is one that ended only since the other class left off:
//! that is starvation. Where threads are more than CPUs, a wait for the lock can contain one for the CPU.

pub(super) mod classes;
pub(super) mod mixed;

use crate::harness::{Case, Failure, check};
use crate::locks::BenchRwLock;
use crate::run::{Settings, Workload};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What the user calls by name.
pub const WORKLOAD: Workload = Workload {
    name: "rwlock",
    about: "t threads read and seldom write under one rwlock; readers against writers: throughput, waits",
    patch: Some(crate::workload::Patch::Wide),
    milliseconds: 170,
    cases,
};

fn cases(settings: &Settings) -> Vec<Case> {
    let mut cases = mixed::cases(settings);
    cases.extend(classes::cases(settings));
    cases
}

/// A lock, and two numbers under it, on a cache line of their own: the lock's size must not decide whether they
/// disturb it.
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

    /// A read section. Whether it saw a write that was half done.
    #[inline(always)]
    fn read(&self) -> bool {
        // Relaxed, here and below: the lock has to bring the order.
        let [first, second] = &self.numbers.0;
        first.load(Relaxed) != second.load(Relaxed)
    }

    /// A write section. Loads and stores, and not atomic steps: of two writers at once, one's is lost.
    #[inline(always)]
    fn write(&self) {
        for number in &self.numbers.0 {
            let so_far = number.load(Relaxed);
            number.store(so_far + 1, Relaxed);
        }
    }

    /// How many write sections there were. Takes the lock.
    fn writes(&self) -> [u64; 2] {
        self.lock.read_lock();
        let writes = self.numbers.0.each_ref().map(|number| number.load(Relaxed));
        // SAFETY: locked above; `&self` keeps it where it is; this thread has no other.
        unsafe { self.lock.read_unlock() };
        writes
    }
}

/// Fails unless each writer was alone: `writes` were done since there were `before`, and `torn` readers saw a
/// half-done one.
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
            "a writer was not alone: {writes} wrote, {counted:?} counted; {torn} readers saw half a write"
        )
    })
}

#[cfg(test)]
mod tests;
