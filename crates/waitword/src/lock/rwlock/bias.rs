//! Reader bias: when a lock becomes biased, and when it may not.
//!
//! Biased readers cost writers: each write that finds the lock biased scans the slot table and
//! waits for the readers in it. So a lock becomes biased only if both are true:
//!
//! * Readers *took its word from each other* 120 times with no write in between. That is how often
//!   a reader's compare-and-swap failed because another CPU was faster. (The word counts up to 15
//!   in `COLLISIONS`, which are then reported here. A write clears what the word holds of them.)
//! * At least four times the duration of the last revocation has passed since then. So all
//!   revocations together cost writers at most a fifth of their time (BRAVO's rule).
//!
//! Revoking the bias takes 1 to 4 µs. A reader saves 0.05 to 0.2 µs: two transfers of a cache line.
//! So a revocation costs as much as some 80 reads save. Two threads that only read, on two CPUs,
//! collide once in 30 to 1,500 reads, and need 4,000 to 180,000 reads for those 120.
//!
//! Measured with other thresholds: with 15 collisions, three of seven random loads with few writes
//! lost 1 to 6 % on two CPUs, and the others stayed as they were. 45 and 375 differ by less than
//! the noise on random loads with 0.1 to 50 % writes (`docs/constants.md`). Where a bias began
//! after four reads, loads with 0.1 to 12 % writes lost 5 to 20 % on two CPUs, compared with no
//! bias at all (`waitword bench any --family rwlock`, seeds 41 and 43).
//!
//! Readers that merely overlap are not counted. That would require counting all readers, and each
//! reader would find the word less simple. It costs 7 % of the rate of short reads with a few
//! writes.
//!
//! The word has no room for the reports. They are kept in a small table indexed by the lock's
//! address. Locks that share an entry become biased a little sooner or later because of each other,
//! nothing more.

use super::slots;
use crate::sys::clock::{Clock, now};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use core::time::Duration;

/// For how many times the duration of a revocation the lock stays unbiased.
const TIMES_THE_COST: u64 = 4;
/// A longer revocation counts as this long. A reader that is waited for longer sleeps or has lost
/// its CPU, and any reader, biased or not, costs writers that.
const MOST_COST: u64 = Duration::from_micros(4).as_nanos() as u64;
const ENTRIES: usize = 128;

/// The number of reports (of 15 collisions each) with no write in between after which a lock
/// becomes biased.
const REPORTS: u32 = 8;

struct Entry {
    /// In nanoseconds on the monotonic clock.
    not_before: AtomicU64,
    /// The number of reports since the last write.
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

/// Returns the number for a bias of a lock whose readers have often collided, if the lock may
/// become biased. `is_first`: this is the first report since the last write.
#[cold]
pub(super) fn begin(lock: usize, is_first: bool) -> Option<u32> {
    // In a model, the clock has no meaning. Models make locks biased explicitly.
    if cfg!(loom) || !slots::has_room_for(lock) {
        return None;
    }
    let entry = entry(lock);
    // Two threads that do this at once may lose one of the two reports.
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

/// Measures how long a revocation takes.
pub(super) struct Cost {
    began: u64,
}

impl Cost {
    pub(super) fn begin() -> Self {
        Self {
            began: if cfg!(loom) { 0 } else { nanoseconds() },
        }
    }

    /// The readers have left. The lock stays unbiased for a while.
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
