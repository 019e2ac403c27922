//! `rwlock`: some threads, one reader-writer lock.
//!
//! **Work.** Thread i, on CPU i mod n. A read section compares two numbers; a write section adds one to each. Nothing between.
//!
//! | cases | each thread |
//! |---|---|
//! | *t = ..., one write in ...* | as many operations as every other (a power of two), of which one in 1000, 100, 10 or 2 is a write, or none |
//! | *... readers, ... writers* | only reads or only writes, until time is over |
//!
//! **Redraws** Ulrich Drepper's benchmark (mail of 2008, 64-bit futexes): 2^k read sections of trivial work, 1 to 16 threads. There the lock
//! of several variables behind an internal lock (*glibc*, here the baseline) lost 20 % with one thread and 64 to 75 % with 2 to 16 to one
//! whose whole state was one 64-bit word; and the new one's curve was flat past the number of cores. The mail takes the least
//! of ten runs; the report has the least of all rounds beside the median. The second kind of cases is ours: what a class
//! of threads must wait while the other never leaves off, for each preference.
//!
//! **Figures** of the first kind. *time*: from the start until the last thread has ended, by the operations of all: nanoseconds for one,
//! which on n CPUs is at best an n-th of what it takes. (The mail has cycles: the header of the report says how many ticks of the
//! time-stamp counter a nanosecond has.) *ops*: the same the other way round, of all threads in a second; *more is better*. *CPU*: of
//! the process, for one operation. *slept*, *preempted*: voluntary context switches and the others, for one operation.
//!
//! Of the second kind. *reads*, *writes*: of all readers and all writers, in a second; *more is better*. *read*, *write p50, p99, max*: from
//! before the lock call until after, for each class. A wait as long as the run (50 ms; 100 ms of 100 threads; four times as
//! long with `--full`) is one that ended only since the other class left off: that is starvation, and the median of that
//! class is worth a look. Where threads are more than CPUs, a wait for the lock can contain one for the CPU.

mod classes;
mod mixed;

use crate::harness::Case;
use crate::locks::BenchRwLock;
use crate::run::{Settings, Workload};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What the user calls by name.
pub const WORKLOAD: Workload = Workload {
    name: "rwlock",
    about: "t threads read and seldom write under one rwlock; readers against writers: throughput, waits",
    cases,
};

fn cases(settings: &Settings) -> Vec<Case> {
    let mut cases = mixed::cases(settings);
    cases.extend(classes::cases(settings));
    cases
}

/// A lock, and two numbers under it, on a cache line of their own: the lock's size must not decide whether they disturb it.
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

#[cfg(test)]
mod tests;
