//! Whether CPUs are idle while threads of this process wait.
//!
//! A thread that waits while others keep the CPUs busy costs no throughput, however long it waits. One
//! that waits while CPUs are idle, because those that it waits for sleep or do I/O, costs what it
//! would have done.
//!
//! So a thread that is about to sleep compares the CPU time of the process with what its CPUs had to
//! give since that was done last, at most every [`PERIOD`]. Beside other processes this says that CPUs
//! are idle where they are only not ours. To whoever asks, that is the same: our threads wait for
//! something else than our threads.

use crate::sys::clock::{Clock, now, process_cpu_time};
use crate::sys::sched;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

/// How often CPU times are compared at most, in nanoseconds: it takes 0.3 µs, and there are some hundred sleeps and
/// wake-ups in it.
const PERIOD: u64 = 2_000_000;
/// What began longer ago says nothing about the present.
const OUTDATED: u64 = 100_000_000;

/// All of this is a guess, so everything is Relaxed.
struct IdleCpus {
    /// Since when CPU time is counted, on the monotonic clock.
    since: AtomicU64,
    /// The CPU time of the process at that time.
    had: AtomicU64,
    /// How many CPUs it may use.
    cpus: AtomicU32,
    are_idle: AtomicBool,
}

static IDLE_CPUS: IdleCpus = IdleCpus::new();

/// Whether CPUs were idle lately. For a thread that is about to sleep.
pub(crate) fn are_idle() -> bool {
    let time = now(Clock::Monotonic).as_nanos() as u64;
    if IDLE_CPUS.is_due(time) {
        IDLE_CPUS.compare(time, process_cpu_time().as_nanos() as u64, sched::cpus);
    }
    IDLE_CPUS.are_idle.load(Relaxed)
}

impl IdleCpus {
    const fn new() -> Self {
        Self {
            since: AtomicU64::new(0),
            had: AtomicU64::new(0),
            cpus: AtomicU32::new(1),
            are_idle: AtomicBool::new(false),
        }
    }

    fn is_due(&self, time: u64) -> bool {
        time.saturating_sub(self.since.load(Relaxed)) >= PERIOD
    }

    /// At this time the process has had so much CPU time, in nanoseconds.
    fn compare(&self, time: u64, has_had: u64, cpus: impl Fn() -> u32) {
        let since = self.since.load(Relaxed);
        let is_mine = self
            .since
            .compare_exchange(since, time, Relaxed, Relaxed)
            .is_ok();
        if !is_mine {
            return;
        }
        let used = has_had.saturating_sub(self.had.swap(has_had, Relaxed));
        let passed = time.saturating_sub(since);
        if passed > OUTDATED {
            self.cpus.store(cpus(), Relaxed);
        }
        let offered = passed * u64::from(self.cpus.load(Relaxed));
        // With a quarter left to give. Tried: two thirds. Once the threads that waited have their turns the
        // process uses more than a third, and waits again.
        let are_idle = passed <= OUTDATED && used < offered / 4 * 3;
        self.are_idle.store(are_idle, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn cpus_are_idle_that_have_a_quarter_of_their_time_left() {
        let idle = IdleCpus::new();
        let compare = |time, had| {
            assert!(idle.is_due(time));
            idle.compare(time, had, || 2);
            idle.are_idle.load(Relaxed)
        };
        // What was before is unknown.
        assert!(!compare(1000 * MS, 5 * MS));
        assert!(!idle.is_due(1001 * MS));
        assert!(compare(1010 * MS, 19 * MS));
        assert!(!compare(1020 * MS, 35 * MS));
        assert!(compare(1030 * MS, 36 * MS));
        // Long ago.
        assert!(!compare(1200 * MS, 37 * MS));
    }
}
