//! Yielding the CPU, where that gives it to a thread of this process.
//!
//! A waiter that yields lets the threads of its process run, which is what it waits for. But where
//! another process wants the CPU, the yield gives it away for a whole slice of the scheduler's, 3
//! ms or so. That cannot be asked beforehand, and a yield that gave the CPU to one of tens of
//! threads of this process takes as long.
//!
//! So after a yield that took long the next ones are *watched*: the CPU time that the process has
//! had is read before each (which takes 0.3 µs), and behind one that took long. Its CPU was busy all
//! the while: else it would have returned. If the process had less CPU time than that, another one
//! had it, and nobody yields for a hundred times as long: that costs 1 or 2 % of the time.
//!
//! (Tried: the CPU time since the last long yield, against three quarters of what all CPUs have. A
//! process of which one CPU sleeps was taken for one beside others, and so was one whose threads
//! lost their CPU between two of these steps, for 300 ms each time: with 32 threads nobody yielded
//! for most of the time.)

use crate::sys;
use crate::sys::clock::{Clock, now};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A yield that took longer is one that another thread had a slice in.
const LONG: u64 = 500_000;
/// For how long yields are watched.
const WATCHED_FOR: u64 = 20_000_000;
/// For how long nobody yields, by how long a yield took.
const TIMES: u64 = 100;
/// For how long nobody watches behind a long yield to a thread of this process, by how long it took.
const TRUSTED_TIMES: u64 = 3;

// Times in nanoseconds of the monotonic clock. All of this is a guess, so everything is Relaxed.
/// When threads may yield again.
static AGAIN_AT: AtomicU64 = AtomicU64::new(0);
static WATCHED_UNTIL: AtomicU64 = AtomicU64::new(0);
static TRUSTED_UNTIL: AtomicU64 = AtomicU64::new(0);

/// Whether a yield is likely to give the CPU to a thread of this process, if to any. `time`: now,
/// in nanoseconds of the monotonic clock.
pub(crate) fn is_worth_while(time: u64) -> bool {
    time >= AGAIN_AT.load(Relaxed)
}

/// Yields the CPU; what time it is then.
pub(crate) fn yield_cpu(from: u64) -> u64 {
    let is_watched = from < WATCHED_UNTIL.load(Relaxed);
    let had = is_watched.then(cpu_time);
    sys::sched::yield_cpu();
    let to = now(Clock::Monotonic).as_nanos() as u64;
    let took = to.saturating_sub(from);
    if took > LONG {
        look_at(took, to, had);
    }
    to
}

fn cpu_time() -> u64 {
    sys::clock::process_cpu_time().as_nanos() as u64
}

/// `had_before`: the CPU time that the process had had before a yield that was watched.
#[cold]
fn look_at(took: u64, now: u64, had_before: Option<u64>) {
    let Some(had_before) = had_before else {
        if now >= TRUSTED_UNTIL.load(Relaxed) {
            WATCHED_UNTIL.store(now + WATCHED_FOR, Relaxed);
        }
        return;
    };
    if was_given_away(took, cpu_time().saturating_sub(had_before)) {
        let again_at = now + took * TIMES;
        AGAIN_AT.store(again_at, Relaxed);
        // The first ones then are watched.
        WATCHED_UNTIL.store(again_at + WATCHED_FOR, Relaxed);
    } else {
        TRUSTED_UNTIL.store(now + took * TRUSTED_TIMES, Relaxed);
        WATCHED_UNTIL.store(0, Relaxed);
    }
}

/// Whether another process had the CPU in a yield that took so long, in which this process `had` so
/// much time of all CPUs.
fn was_given_away(took: u64, had: u64) -> bool {
    // A tenth less: the clocks are read one after the other.
    had * 10 < took * 9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_known_by_what_they_leave() {
        // One CPU, or two, and this process on them; or one of two sleeps.
        assert!(!was_given_away(3_000_000, 3_000_000));
        assert!(!was_given_away(3_000_000, 6_000_000));
        assert!(!was_given_away(3_000_000, 2_900_000));
        // Others on one CPU, or on both for half of the time.
        assert!(was_given_away(3_000_000, 0));
        assert!(was_given_away(3_000_000, 1_500_000));
    }
}
