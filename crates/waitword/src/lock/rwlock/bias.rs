//! When readers may hold a lock by slots, and when not again for a while.
//!
//! Fast readers cost writers: each write that finds the lock fast looks through the table and waits for whoever is there. So
//! a lock becomes fast only once readers *took its word from each other*:
//! * 120 times with no write in between: so often the compare-and-swap of one failed, since one on another CPU had
//!   been faster. (The word counts a few, `COLLISIONS`; then they are reported here; a writer clears what the
//!   word says of them.)
//! * and not within four times of what the last driving out took: all of them together cost writers
//!   a fifth of their time at most (BRAVO's rule).
//!
//! To drive readers out takes 1 to 4 µs, and what a reader saves is 0.05 to 0.2 µs: the move of a
//! line, twice. So some 80 reads are worth it. Two threads that only read, on two CPUs, collide once in 30 to 1,500
//! reads, and need 4,000 to 180,000 for those 120. With 15, three of seven random loads with few writes lost 1 to
//! 6 % on two CPUs, and the others stayed as they were; 45 and 375 differ by less than the noise on
//! random loads with 0.1 to 50 % writes (`docs/constants.md`). Where a bias began
//! after four reads, those with 0.1 to 12 % writes lost 5 to 20 % on two CPUs, against no bias at
//! all (`waitword bench any --family rwlock`, seeds 41 and 43).
//!
//! Readers that merely overlap are not counted. That takes a count of all readers, so that each
//! finds the word less simple than it is: 7 % of the rate of short reads beside a few writes.
//!
//! There is no room in the word for reports; they lie in a small table by the lock's address. Locks that share an
//! entry are a little sooner or later fast for each other's sake, no more.

use super::slots;
use crate::sys::clock::{Clock, now};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use core::time::Duration;

/// How often longer than it took to drive readers out they stay out.
const TIMES_THE_COST: u64 = 4;
/// Whoever is waited for longer than this sleeps, or has lost its CPU: any reader costs writers that.
const MOST_COST: u64 = Duration::from_micros(4).as_nanos() as u64;
const ENTRIES: usize = 128;

/// After how many reports, of 15 collisions each, with no write in between, a lock becomes fast.
const REPORTS: u32 = 8;

struct Entry {
    /// Nanoseconds on the monotonic clock.
    not_before: AtomicU64,
    /// How many reports have come since the last write.
    reports: AtomicU32,
}

static TABLE: [Entry; ENTRIES] = [const {
    Entry {
        not_before: AtomicU64::new(0),
        reports: AtomicU32::new(0),
    }
}; ENTRIES];

fn entry(lock: usize) -> &'static Entry {
    let hash = (lock as u64 >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    &TABLE[(hash >> 57) as usize % ENTRIES]
}

fn nanoseconds() -> u64 {
    now(Clock::Monotonic).as_nanos() as u64
}

/// The number for the bias of a lock whose readers have collided often, if it may become
/// fast. `is_first`: since it was written.
#[cold]
pub(super) fn begin(lock: usize, is_first: bool) -> Option<u32> {
    // In a model the clock has no meaning; locks are made fast by hand.
    if cfg!(loom) || !slots::has_room_for(lock) {
        return None;
    }
    let entry = entry(lock);
    // Two that do this at once may lose one of the two reports.
    let reports = match is_first {
        true => 1,
        false => entry.reports.load(Relaxed) + 1,
    };
    if reports < REPORTS {
        entry.reports.store(reports, Relaxed);
        return None;
    }
    entry.reports.store(0, Relaxed);
    let may_begin = nanoseconds() >= entry.not_before.load(Relaxed);
    may_begin.then(slots::free_number).flatten()
}

/// The driving out of readers, timed.
pub(super) struct Cost {
    began: u64,
}

impl Cost {
    pub(super) fn begin() -> Self {
        Self {
            began: if cfg!(loom) { 0 } else { nanoseconds() },
        }
    }

    /// The readers are gone; they may not come back for a while.
    pub(super) fn end(self, lock: usize) {
        if cfg!(loom) {
            return;
        }
        let now = nanoseconds();
        let pause = now.saturating_sub(self.began).min(MOST_COST) * TIMES_THE_COST;
        entry(lock).not_before.store(now + pause, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_lock_becomes_fast_after_enough_reports_with_no_write_in_between() {
        static LOCK: u64 = 0;
        let lock = core::ptr::from_ref(&LOCK).addr();
        for _ in 0..2 {
            for number in 1..REPORTS {
                assert_eq!(begin(lock, number == 1), None, "{number}");
            }
        }
        assert!(begin(lock, false).is_some());
        assert_eq!(begin(lock, false), None, "it begins anew");
    }
}
