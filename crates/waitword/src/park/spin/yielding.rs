//! Yielding the CPU, where that gives it to a thread of this process.
//!
//! A waiter that yields lets the threads of its process run, which is what it waits for. But where
//! another process wants the CPU, the yield gives it away for a whole slice of the scheduler's, 3
//! ms or so. That cannot be asked beforehand. So a yield that took long is looked at: if the
//! process had less than three quarters of its CPUs' time since the last long one, others had the
//! rest, and nobody yields for a hundred times as long as that yield took: that costs 1 % of the
//! time.

use crate::sys;
use crate::sys::clock::{Clock, now};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A yield that took longer is looked at.
const LONG: u64 = 500_000;
/// Two long yields that are further apart say nothing of the time between them.
const TOGETHER: u64 = 20_000_000;
/// For how long nobody yields, by how long a yield took.
const TIMES: u64 = 100;

/// When threads may yield again. All of this is a guess, so everything is Relaxed.
static AGAIN_AT: AtomicU64 = AtomicU64::new(0);
/// When the last long yield ended, and what CPU time the process had had by then.
static LAST_LONG: AtomicU64 = AtomicU64::new(0);
static CPU_TIME: AtomicU64 = AtomicU64::new(0);

/// Whether a yield is likely to give the CPU to a thread of this process, if to any. `time`: now,
/// in nanoseconds of the monotonic clock.
pub(crate) fn is_worth_while(time: u64) -> bool {
    time >= AGAIN_AT.load(Relaxed)
}

/// Yields the CPU; what time it is then.
pub(crate) fn yield_cpu(from: u64) -> u64 {
    sys::sched::yield_cpu();
    let to = now(Clock::Monotonic).as_nanos() as u64;
    if to.saturating_sub(from) > LONG {
        look_at(to - from, to);
    }
    to
}

#[cold]
fn look_at(took: u64, now: u64) {
    let cpu_time = sys::clock::process_cpu_time().as_nanos() as u64;
    let since = now.saturating_sub(LAST_LONG.swap(now, Relaxed));
    let had = cpu_time.saturating_sub(CPU_TIME.swap(cpu_time, Relaxed));
    if since < TOGETHER && is_shared_with_others(since, had, sys::sched::cpus()) {
        AGAIN_AT.store(now + took * TIMES, Relaxed);
    }
}

/// Whether other processes had the CPUs, going by what this one `had` of them in so much time.
fn is_shared_with_others(time: u64, had: u64, cpus: u32) -> bool {
    had * 4 < time * u64::from(cpus) * 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_known_by_what_they_leave() {
        assert!(!is_shared_with_others(1_000_000, 2_000_000, 2));
        assert!(!is_shared_with_others(1_000_000, 1_600_000, 2));
        assert!(is_shared_with_others(1_000_000, 1_000_000, 2));
        assert!(is_shared_with_others(3_000_000, 0, 1));
    }
}
