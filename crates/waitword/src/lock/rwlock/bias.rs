//! When readers may hold a lock by slots, and when not again for a while.
//!
//! Fast readers cost writers: each write that finds the lock fast looks through the table and waits for whoever is there. So
//! a lock becomes fast only once readers were *seen to overlap*:
//! * again and again with no write in between (the count is in the word, `OVERLAPS`, and a writer clears it);
//! * and from different CPUs within a short time. Readers that overlap because one of them was preempted inside, or because one
//!   thread reads again while it reads, do not take the word's cache line from each other;
//! * and not within nine times of what the last driving out took: all of them together cost writers a tenth
//!   of their time at most (BRAVO's rule).
//!
//! There is no room in the word for times and CPUs; they lie in a small table by the lock's address. Locks that share an
//! entry are a little sooner or later fast for each other's sake, no more.

use super::slots;
use crate::sys::clock::{Clock, now};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use core::time::Duration;

/// How often longer than it took to drive readers out they stay out.
const TIMES_THE_COST: u64 = 4;
/// Whoever is waited for longer than this sleeps, or has lost its CPU: any reader costs writers that.
const MOST_COST: u64 = Duration::from_micros(4).as_nanos() as u64;
const ENTRIES: usize = 128;

/// How close together readers on two CPUs must have been seen: some times what it takes to count so many.
const CLOSE: u64 = Duration::from_micros(50).as_nanos() as u64;

struct Entry {
    /// Nanoseconds on the monotonic clock.
    not_before: AtomicU64,
    /// When it was last seen, and on which CPU, that readers overlap: nanoseconds, with the CPU's number in the low bits.
    last_seen: AtomicU64,
}

const CPU_BITS: u32 = 10;

static TABLE: [Entry; ENTRIES] = [const {
    Entry {
        not_before: AtomicU64::new(0),
        last_seen: AtomicU64::new(0),
    }
}; ENTRIES];

fn entry(lock: usize) -> &'static Entry {
    let hash = (lock as u64 >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    &TABLE[(hash >> 57) as usize % ENTRIES]
}

fn nanoseconds() -> u64 {
    now(Clock::Monotonic).as_nanos() as u64
}

/// The number for the bias of a lock that has seen its readers overlap often enough, if it may
/// become fast.
#[cold]
pub(super) fn begin(lock: usize) -> Option<u32> {
    // In a model the clock has no meaning; locks are made fast by hand.
    if cfg!(loom) || !slots::has_room_for(lock) {
        return None;
    }
    let entry = entry(lock);
    let now = nanoseconds();
    // Without it nothing can be known of CPUs; no lock becomes fast.
    let cpu = u64::from(crate::oncpu::current_cpu()?) % (1 << CPU_BITS);
    // Two who do this at once may each take the other's place: then it is seen the next time.
    let last = entry
        .last_seen
        .swap(now >> CPU_BITS << CPU_BITS | cpu, Relaxed);
    let may_begin = last % (1 << CPU_BITS) != cpu
        && now.saturating_sub(last) < CLOSE
        && now >= entry.not_before.load(Relaxed);
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
