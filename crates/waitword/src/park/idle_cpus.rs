//! Whether CPUs are idle while threads of this process wait.
//!
//! A thread that waits while other threads keep the CPUs busy costs no throughput, however long it
//! waits. A thread that waits while CPUs are idle, because the threads it waits for sleep or do
//! I/O, costs the work it would have done.
//!
//! So a thread that is about to sleep compares the CPU time that the process has used with the CPU
//! time that its CPUs had to give since the last comparison, at most once every [`PERIOD`]. When
//! other processes compete for the CPUs, this reports CPUs as idle that are merely not ours. To the
//! caller that is the same: our threads wait for something other than our threads.

use crate::atomic::process_static;
use crate::sys::clock::{nanoseconds, process_cpu_time};
use crate::sys::sched;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

/// The shortest time between two comparisons, in nanoseconds. A comparison takes 0.3 µs, and this
/// is the time of some hundred sleeps and wake-ups.
const PERIOD: u64 = 2_000_000;
/// A period that began longer ago shows nothing about the present.
const OUTDATED: u64 = 100_000_000;

/// All of this is a guess, so everything is Relaxed.
struct IdleCpus {
    /// The start of the current period, on the monotonic clock.
    since: AtomicU64,
    /// The CPU time of the process at that time.
    had: AtomicU64,
    /// How many CPUs the process may use.
    cpus: AtomicU32,
    are_idle: AtomicBool,
}

process_static! {
    static IDLE_CPUS: IdleCpus = IdleCpus::new();
}

/// Whether CPUs were idle lately. For a thread that is about to sleep.
pub(crate) fn are_idle() -> bool {
    let time = nanoseconds();
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

    /// Compares at `time`, when the process has had `has_had` of CPU time, both in nanoseconds.
    fn compare(&self, time: u64, has_had: u64, cpus: impl Fn() -> u32) {
        let since = self.since.load(Relaxed);
        let is_mine = self.since.compare_exchange(since, time, Relaxed, Relaxed).is_ok();
        if !is_mine {
            return;
        }
        let used = has_had.saturating_sub(self.had.swap(has_had, Relaxed));
        let passed = time.saturating_sub(since);
        if passed > OUTDATED {
            self.cpus.store(cpus(), Relaxed);
        }
        let offered = passed * u64::from(self.cpus.load(Relaxed));
        // Idle means that more than a quarter of the time is left. Tried: two thirds. Once the
        // waiting threads get their turns, the process uses more than a third, and the threads wait
        // again.
        let are_idle = passed <= OUTDATED && used < offered / 4 * 3;
        self.are_idle.store(are_idle, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn cpus_with_a_quarter_of_their_time_left_are_idle() {
        let idle = IdleCpus::new();
        let compare = |time, had| {
            assert!(idle.is_due(time));
            idle.compare(time, had, || 2);
            idle.are_idle.load(Relaxed)
        };
        // The time before is unknown.
        assert!(!compare(1000 * MS, 5 * MS));
        assert!(!idle.is_due(1001 * MS));
        assert!(compare(1010 * MS, 19 * MS));
        assert!(!compare(1020 * MS, 35 * MS));
        assert!(compare(1030 * MS, 36 * MS));
        // The last comparison was too long ago.
        assert!(!compare(1200 * MS, 37 * MS));
    }
}
