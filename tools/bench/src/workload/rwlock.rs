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
mod guarded;
pub(super) mod mixed;

use crate::harness::Case;
use crate::harness::Workload;
use crate::settings::Settings;

/// The workload, as selected by name.
pub const WORKLOAD: Workload = Workload {
    name: "rwlock",
    about: "t threads read and seldom write under one rwlock; readers against writers: throughput, \
            waits",
    patch: Some(crate::patch::Patch::Wide),
    milliseconds: 170,
    cases,
};

fn cases(settings: &Settings) -> Vec<Case> {
    let mut cases = mixed::cases(settings);
    cases.extend(classes::cases(settings));
    cases
}

#[cfg(test)]
mod tests;
