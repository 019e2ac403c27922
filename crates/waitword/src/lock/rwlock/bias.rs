//! The records of locks whose readers collide, and of revocations. `policy.rs` decides when a lock
//! becomes biased.
//!
//! The word has no room for these records. They are kept in a small table indexed by the lock's
//! address. Locks that share an entry become biased a little sooner or later because of each other,
//! nothing more.

use super::policy::{Policy, nanoseconds};
use super::slot_table::has_room_for;
use super::surroundings::Machine;
use super::visible_readers::free_number;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

const ENTRIES: usize = 128;

struct Entry {
    /// In nanoseconds on the monotonic clock.
    not_before: AtomicU64,
    /// The number of reports since the last write.
    reports: AtomicU32,
}

static TABLE: [Entry; ENTRIES] =
    [const { Entry { not_before: AtomicU64::new(0), reports: AtomicU32::new(0) } }; ENTRIES];

fn entry(lock: usize) -> &'static Entry {
    let hash = (lock as u64 >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    &TABLE[(hash >> 57) as usize % ENTRIES]
}

/// Returns the number for a bias of a lock whose readers have often collided, if the lock may
/// become biased. `is_first`: this is the first report since the last write.
#[cold]
pub(super) fn begin(lock: usize, is_first: bool) -> Option<u32> {
    if !has_room_for(lock) {
        return None;
    }
    let entry = entry(lock);
    // Two threads that do this at once may lose one of the two reports.
    let reports = match is_first {
        true => 1,
        false => entry.reports.load(Relaxed) + 1,
    };
    if !Policy::collide_enough(reports) {
        entry.reports.store(reports, Relaxed);
        return None;
    }
    entry.reports.store(0, Relaxed);
    let may_begin = Policy::may_be_biased(entry.not_before.load(Relaxed), &Machine);
    may_begin.then(free_number).flatten()
}

/// Measures how long a revocation takes.
pub(super) struct Cost {
    began: u64,
}

impl Cost {
    pub(super) fn begin() -> Self {
        Self { began: nanoseconds(&Machine) }
    }

    /// The readers have left. The lock stays unbiased for a while.
    pub(super) fn end(self, lock: usize) {
        let next = Policy::next_bias(self.began, &Machine);
        entry(lock).not_before.store(next, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::policy::REPORTS;
    use super::*;

    #[test]
    fn a_lock_becomes_biased_after_enough_reports_with_no_write_in_between() {
        static LOCK: u64 = 0;
        let lock = core::ptr::from_ref(&LOCK).addr();
        for _ in 0..2 {
            for number in 1..REPORTS {
                assert_eq!(begin(lock, number == 1), None, "{number}");
            }
        }
        assert!(begin(lock, false).is_some());
        assert_eq!(begin(lock, false), None, "the count starts again");
    }
}
