//! Yielding the CPU, where that gives it to a thread of this process.
//!
//! A waiter that yields lets other threads of its process run, and it waits for one of them. But if
//! another process wants the CPU, the yield gives it away for a whole scheduler slice, 3 ms or so.
//! A waiter cannot know that beforehand. And a yield that gives the CPU to one of tens of threads
//! of this process takes as long.
//!
//! So after a long yield the next ones are *watched*: the CPU time of the process is read before
//! each (which takes 0.3 µs), and again after one that took long. The CPU was busy during the whole
//! yield; otherwise the yield would have returned. If the process had less CPU time than the yield
//! took, another process had the CPU. Then no thread yields for a hundred times as long, so such
//! yields cost 1 or 2 % of the time.
//!
//! (Tried: the CPU time since the last long yield, compared with three quarters of what all CPUs
//! have. This took a process with one sleeping CPU for one that competes with other processes. It
//! did the same with a process whose threads lost their CPU between two of these steps, for 300 ms
//! each time: with 32 threads no thread yielded for most of the time.)

use crate::atomic::process_static;
use crate::sys;
use crate::sys::clock::nanoseconds;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// In a yield that took longer, another thread had a time slice.
const LONG: u64 = 500_000;
/// How long yields are watched.
const WATCHED_FOR: u64 = 20_000_000;
/// How long no thread yields, as a multiple of the time that a yield took.
const TIMES: u64 = 100;
/// How long yields are not watched after a long yield to a thread of this process, as a multiple of
/// the time that it took.
const TRUSTED_TIMES: u64 = 3;

/// What long yields have shown. Times in nanoseconds of the monotonic clock. All of this is a
/// guess, so everything is Relaxed.
struct Yields {
    /// When threads may yield again.
    again_at: AtomicU64,
    watched_until: AtomicU64,
    trusted_until: AtomicU64,
}

process_static! {
    static YIELDS: Yields = Yields::new();
}

/// Whether a yield that gives the CPU away at all is likely to give it to a thread of this process.
/// `time`: now, in nanoseconds of the monotonic clock.
pub(crate) fn is_worth_while(time: u64) -> bool {
    YIELDS.are_worth_while(time)
}

/// Whether a yield has ever given the CPU to another process. Checked first, where the time is not
/// known yet.
pub(crate) fn have_been_in_vain() -> bool {
    YIELDS.again_at.load(Relaxed) != 0
}

/// Yields the CPU; returns the time after the yield.
pub(crate) fn yield_cpu(from: u64) -> u64 {
    let had = YIELDS.are_watched(from).then(cpu_time);
    sys::sched::yield_cpu();
    let to = nanoseconds();
    let took = to.saturating_sub(from);
    if took > LONG {
        let had = had.map(|before| cpu_time().saturating_sub(before));
        YIELDS.note_long(took, to, had);
    }
    to
}

/// As if a yield had given the CPU away, for this many nanoseconds from now.
#[cfg(any(test, loom))]
pub(crate) fn pretend_to_be_beside_others(for_nanoseconds: u64) {
    YIELDS.again_at.store(nanoseconds().saturating_add(for_nanoseconds), Relaxed);
}

fn cpu_time() -> u64 {
    sys::clock::process_cpu_time().as_nanos() as u64
}

impl Yields {
    const fn new() -> Self {
        Self {
            again_at: AtomicU64::new(0),
            watched_until: AtomicU64::new(0),
            trusted_until: AtomicU64::new(0),
        }
    }

    fn are_worth_while(&self, time: u64) -> bool {
        time >= self.again_at.load(Relaxed)
    }

    fn are_watched(&self, time: u64) -> bool {
        time < self.watched_until.load(Relaxed)
    }

    /// Notes a long yield that has just ended. `had`: the CPU time of the process during the yield,
    /// if it was watched.
    #[cold]
    fn note_long(&self, took: u64, now: u64, had: Option<u64>) {
        match had {
            None if now < self.trusted_until.load(Relaxed) => {}
            None => self.watched_until.store(now + WATCHED_FOR, Relaxed),
            Some(had) if was_given_away(took, had) => {
                let again_at = now + took * TIMES;
                self.again_at.store(again_at, Relaxed);
                // The first yields after that are watched.
                self.watched_until.store(again_at + WATCHED_FOR, Relaxed);
            }
            Some(_) => {
                self.trusted_until.store(now + took * TRUSTED_TIMES, Relaxed);
                self.watched_until.store(0, Relaxed);
            }
        }
    }
}

/// Whether another process had the CPU during a yield that took `took`, in which this process `had`
/// that much time on all CPUs.
fn was_given_away(took: u64, had: u64) -> bool {
    // A tenth less: the two clocks are read one after the other.
    had * 10 < took * 9
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_yield_to_another_process_is_known_by_the_cpu_time_that_is_left() {
        // One CPU, or two, used by this process only; or one of the two sleeps.
        assert!(!was_given_away(3_000_000, 3_000_000));
        assert!(!was_given_away(3_000_000, 6_000_000));
        assert!(!was_given_away(3_000_000, 2_900_000));
        // Other processes on one CPU, or on both for half of the time.
        assert!(was_given_away(3_000_000, 0));
        assert!(was_given_away(3_000_000, 1_500_000));
    }

    const TOOK: u64 = 3_000_000;
    const NOW: u64 = 1_000_000_000;

    #[test]
    fn a_yield_to_another_process_ends_yields_for_a_hundred_times_as_long() {
        let yields = Yields::new();
        assert!(yields.are_worth_while(NOW) && !yields.are_watched(NOW));
        // The first long yield shows nothing yet.
        yields.note_long(TOOK, NOW, None);
        assert!(yields.are_worth_while(NOW) && yields.are_watched(NOW));
        yields.note_long(TOOK, NOW, Some(0));
        let again_at = NOW + TOOK * TIMES;
        assert!(!yields.are_worth_while(again_at - 1));
        assert!(yields.are_worth_while(again_at) && yields.are_watched(again_at));
    }

    #[test]
    fn a_yield_to_a_thread_of_this_process_does_not_stop_the_next() {
        let yields = Yields::new();
        yields.note_long(TOOK, NOW, None);
        yields.note_long(TOOK, NOW, Some(TOOK));
        assert!(yields.are_worth_while(NOW) && !yields.are_watched(NOW));
        yields.note_long(TOOK, NOW, None);
        assert!(!yields.are_watched(NOW));
        let later = NOW + TOOK * TRUSTED_TIMES;
        yields.note_long(TOOK, later, None);
        assert!(yields.are_watched(later));
    }
}
