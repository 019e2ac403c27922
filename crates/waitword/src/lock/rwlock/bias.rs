//! When readers may hold a lock by slots, and when not again for a while.
//!
//! Fast readers cost writers: each write that finds the lock fast looks through the table and waits for whoever is there. So
//! a lock becomes fast only once readers were *seen to overlap*, again and again with no write in between (the count is in the word,
//! `OVERLAPS`, and a writer clears it) and from different threads; and not within nine times of what
//! the last driving out took: all of them together cost writers a tenth of their time at most (BRAVO's rule).
//!
//! There is no room in the word for a time or a thread; both lie in a small table by the lock's address. Locks that share an
//! entry are a little sooner or later fast for each other's sake, no more.

use super::slots;
use crate::sys::clock::{Clock, now};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use core::time::Duration;

/// How often longer than it took to drive readers out they stay out.
const TIMES_THE_COST: u64 = 9;
const ENTRIES: usize = 128;

struct Entry {
    /// Nanoseconds on the monotonic clock.
    not_before: AtomicU64,
    /// Who was the last to find others inside.
    last_thread: AtomicU32,
}

static TABLE: [Entry; ENTRIES] = [const {
    Entry {
        not_before: AtomicU64::new(0),
        last_thread: AtomicU32::new(0),
    }
}; ENTRIES];

fn entry(lock: usize) -> &'static Entry {
    let hash = (lock as u64 >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    &TABLE[(hash >> 57) as usize % ENTRIES]
}

fn nanoseconds() -> u64 {
    now(Clock::Monotonic).as_nanos() as u64
}

/// Whether a lock that has seen its readers overlap often enough may become fast.
#[cold]
pub(super) fn may_begin(lock: usize) -> bool {
    // In a model the clock has no meaning; locks are made fast by hand.
    if cfg!(loom) || !slots::has_room_for(lock) {
        return false;
    }
    let entry = entry(lock);
    // One thread that takes the lock again and again while it holds it overlaps only with itself.
    let last = entry.last_thread.swap(slots::thread_number(), Relaxed);
    last != 0 && last != slots::thread_number() && nanoseconds() >= entry.not_before.load(Relaxed)
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
        const MOST: u64 = Duration::from_secs(1).as_nanos() as u64;
        let now = nanoseconds();
        let pause = now
            .saturating_sub(self.began)
            .saturating_mul(TIMES_THE_COST);
        entry(lock).not_before.store(now + pause.min(MOST), Relaxed);
    }
}
