//! Whether the process is throttled: now and then stopped with all of its threads, because it has
//! used up its CPU quota (cgroups(7), `cpu.max`).
//!
//! With a quota, the throughput is the quota divided by the CPU time of an operation. A waiter that
//! stays awake spends CPU time that its process then lacks. So waiters stay awake for less time
//! ([`LONGEST_STAY_IF_THROTTLED`](super::policy)), and locks are left to one thread sooner
//! (`lock/mutex/policy/monopoly.rs`).
//!
//! The quota is in files, and a lock opens no files: the drop-in promises that. The files also do
//! not show whether the process uses the quota up. A waiter detects that itself. A long time
//! between two looks of a waiter that is awake means that it had no CPU. If the process got hardly
//! any CPU time meanwhile, no other thread had one either:
//!
//! ```text
//!   CPU 0   A holds the lock ...| throttled ........................| A continues
//!   CPU 1   B looks, B looks ...| throttled ........................| B looks: 75 ms later
//!   stamp         ^ the process's CPU time is read every READ_EVERY     ^ and now: 1 ms more
//! ```
//!
//! Another process that takes one CPU looks different: the threads on other CPUs continue to run.
//! Other processes that take all CPUs for 10 ms look the same, and so does a stop signal. In these
//! cases, too, the process lacks CPU time.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

// Times are in nanoseconds. These constants have not yet been measured over a tenfold range
// (`docs/constants.md`).

/// The time between two reads of the CPU time, while waiters are awake. A read takes 0.3 µs, and
/// some more for each thread of the process.
const READ_EVERY: u64 = 1_000_000;
/// A process that stood still for longer was throttled. A slice of another process lasts 3 or 4 ms;
/// a quota has a period of 100 ms by default.
const STOOD_STILL: u64 = 10_000_000;
/// The process counts as throttled for this many times the time it stood still. After that it is
/// throttled again, or it loses 1 % of its time to the wrong policy.
const THROTTLED_TIMES: u64 = 100;
/// The upper limit of that: a stop signal may have stopped the process for hours.
const THROTTLED_AT_MOST: u64 = 10_000_000_000;

/// What waiters have detected. All of this is a guess, so everything is Relaxed.
pub(super) struct Throttling {
    /// When the CPU time was read, and its value.
    stamp: AtomicU64,
    /// In nanoseconds of the monotonic clock; 0: the process is not throttled.
    until: AtomicU64,
}

/// Two times, in units of 65,536 ns, which wrap around after 78 hours.
#[derive(Clone, Copy)]
struct Stamp {
    time: u32,
    cpu_time: u32,
}

fn units(nanoseconds: u64) -> u32 {
    (nanoseconds >> 16) as u32
}

/// How much later `now` is than `then`; negative if it is earlier.
fn since(then: u32, now: u32) -> i32 {
    now.wrapping_sub(then) as i32
}

impl Throttling {
    pub(super) const fn new() -> Self {
        Self { stamp: AtomicU64::new(0), until: AtomicU64::new(0) }
    }

    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.until.load(Relaxed) != 0
    }

    #[cfg(test)]
    pub(super) fn pretend_to_be_on(&self) {
        self.until.store(u64::MAX, Relaxed);
    }

    fn stamp(&self) -> Stamp {
        let bits = self.stamp.load(Relaxed);
        Stamp { time: (bits >> 32) as u32, cpu_time: bits as u32 }
    }

    /// Notes that a thread wanted a CPU from the time `from` on, and has one `now`.
    #[inline]
    pub(super) fn wanted_cpu(&self, from: u64, now: u64, cpu_time: impl FnOnce() -> u64) {
        // A younger stamp shows nothing: another thread has just detected what there is to detect.
        // A stamp from the future belongs to a process that has not waited for 39 hours, or never.
        let age = since(self.stamp().time, units(now)).unsigned_abs();
        if age >= units(READ_EVERY) {
            self.look(from, now, cpu_time());
        }
    }

    #[cold]
    fn look(&self, from: u64, now: u64, cpu_time: u64) {
        let before = self.stamp();
        let stood_still = now.saturating_sub(from);
        let had = since(before.cpu_time, units(cpu_time));
        // The process may have had some CPU time just before `from` and just now. In the child of a
        // fork, whose CPU time starts at zero, the stamp is the parent's.
        let is_throttled = stood_still > STOOD_STILL
            && since(before.time, units(from)) >= 0
            && (0..units(stood_still / 4) as i32).contains(&had);
        if is_throttled {
            let until = now + (stood_still * THROTTLED_TIMES).min(THROTTLED_AT_MOST);
            self.until.store(until, Relaxed);
        } else if self.is_on() && now >= self.until.load(Relaxed) {
            self.until.store(0, Relaxed);
        }
        let stamp = u64::from(units(now)) << 32 | u64::from(units(cpu_time));
        self.stamp.store(stamp, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A process with a waiter.
    struct Process {
        throttling: Throttling,
        now: u64,
        cpu_time: u64,
    }

    impl Process {
        fn new() -> Self {
            Self {
                throttling: Throttling::new(),
                // 50 hours: more than half of the range of a stamp.
                now: 180_000_000 * MS,
                cpu_time: 0,
            }
        }

        fn looks(&mut self, from: u64) -> bool {
            let cpu_time = self.cpu_time;
            self.throttling.wanted_cpu(from, self.now, || cpu_time);
            self.throttling.is_on()
        }

        /// The waiter looks every 0.1 ms, for this long, while the process uses this many CPUs.
        fn runs(&mut self, milliseconds: u64, cpus: u64) -> bool {
            for _ in 0..milliseconds * 10 {
                let from = self.now;
                self.now += MS / 10;
                self.cpu_time += cpus * MS / 10;
                self.looks(from);
            }
            self.throttling.is_on()
        }

        /// The waiter has no CPU for this long, while the process uses this many other CPUs; then
        /// it looks.
        fn lacks_cpu(&mut self, milliseconds: u64, other_cpus: u64) -> bool {
            let from = self.now;
            self.now += milliseconds * MS;
            self.cpu_time += milliseconds * MS * other_cpus;
            self.looks(from)
        }
    }

    #[test]
    fn a_process_that_stands_still_is_throttled_for_a_hundred_times_as_long() {
        let mut process = Process::new();
        assert!(!process.runs(25, 2));
        assert!(process.lacks_cpu(50, 0));
        assert!(process.runs(4_990, 2));
        assert!(!process.runs(20, 2));
    }

    #[test]
    fn a_process_that_was_stopped_for_hours_is_not_throttled_for_long() {
        let mut process = Process::new();
        process.runs(5, 2);
        assert!(process.lacks_cpu(36_000_000, 0));
        process.now += THROTTLED_AT_MOST;
        process.runs(2, 1);
        assert!(!process.throttling.is_on());
    }

    #[test]
    fn a_thread_without_a_cpu_is_not_enough_while_others_run() {
        let mut process = Process::new();
        process.runs(5, 2);
        assert!(!process.lacks_cpu(50, 1));
    }

    #[test]
    fn slices_of_another_process_are_not_enough() {
        let mut process = Process::new();
        process.runs(5, 2);
        for _ in 0..100 {
            assert!(!process.lacks_cpu(9, 0));
            assert!(!process.runs(4, 2));
        }
    }

    /// The process sleeps, as a program without work does. All of its threads find that at once.
    #[test]
    fn time_asleep_does_not_count() {
        let mut process = Process::new();
        process.runs(5, 2);
        process.now += 1_000 * MS;
        let now = process.now;
        assert!(!process.looks(now));
        assert!(!process.runs(5, 2));
    }

    #[test]
    fn the_stamp_of_the_parent_is_no_evidence_in_the_child_of_a_fork() {
        let mut process = Process::new();
        process.runs(100, 2);
        process.cpu_time = 0;
        assert!(!process.lacks_cpu(50, 1));
    }

    /// The first of two waiters detects it; what the second sees shows nothing more.
    #[test]
    fn a_read_just_made_by_another_waiter_is_no_evidence() {
        let mut process = Process::new();
        process.runs(5, 2);
        let from = process.now;
        process.now += 50 * MS;
        process.cpu_time += 50 * MS;
        assert!(!process.looks(from));
        process.now += 2 * MS;
        assert!(!process.looks(from));
    }
}
