//! When readers may hold a lock by slots, and when not again for a while.
//!
//! Fast readers cost writers: each write that finds the lock fast looks through the table and waits for whoever is there. So
//! a lock becomes fast only once readers were *seen to overlap*:
//! * a thousand times with no write in between. (The word counts a few, `OVERLAPS`; then they are
//!   reported here; a writer clears what the word says of them.)
//! * and on different CPUs. Readers that overlap because one of them was preempted inside, or
//!   because one thread reads again while it reads, do not take the word's cache line from each other;
//! * and not within four times of what the last driving out took: all of them together cost writers
//!   a fifth of their time at most (BRAVO's rule).
//!
//! To drive readers out takes 1 to 4 µs, and what a reader saves is 0.05 to 0.2 µs: the move of a
//! line, twice. So a thousand reads are worth it anywhere; where a bias began
//! after four, random loads with 0.1 to 12 % writes lost 5 to 20 % on two CPUs, against no bias at
//! all (`waitword bench any --family rwlock`, seeds 41 and 43). 16 and
//! 1024 reports instead of 128 are within the noise of it.
//!
//! There is no room in the word for reports and CPUs; they lie in a small table by the lock's address. Locks that share an
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

/// After how many reports of readers that overlapped, eight times each, with no write in between, a
/// lock becomes fast.
const REPORTS: u32 = 128;

struct Entry {
    /// Nanoseconds on the monotonic clock.
    not_before: AtomicU64,
    /// A [`Reports`].
    reports: AtomicU64,
}

static TABLE: [Entry; ENTRIES] = [const {
    Entry {
        not_before: AtomicU64::new(0),
        reports: AtomicU64::new(0),
    }
}; ENTRIES];

fn entry(lock: usize) -> &'static Entry {
    let hash = (lock as u64 >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    &TABLE[(hash >> 57) as usize % ENTRIES]
}

fn nanoseconds() -> u64 {
    now(Clock::Monotonic).as_nanos() as u64
}

/// The reports of one lock since it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reports {
    count: u16,
    /// How many of them came from another CPU than the one before.
    from_another_cpu: u16,
    last_cpu: u32,
}

impl Reports {
    fn from_bits(bits: u64) -> Self {
        Self {
            count: bits as u16,
            from_another_cpu: (bits >> 16) as u16,
            last_cpu: (bits >> 32) as u32,
        }
    }

    fn to_bits(self) -> u64 {
        u64::from(self.count)
            | u64::from(self.from_another_cpu) << 16
            | u64::from(self.last_cpu) << 32
    }

    fn first(cpu: u32) -> Self {
        Self {
            count: 1,
            from_another_cpu: 0,
            last_cpu: cpu,
        }
    }

    fn with(self, cpu: u32) -> Self {
        Self {
            count: self.count.saturating_add(1),
            from_another_cpu: self.from_another_cpu + u16::from(cpu != self.last_cpu),
            last_cpu: cpu,
        }
    }

    fn are_enough(self) -> bool {
        u32::from(self.count) >= REPORTS
    }

    /// Whether the readers that overlapped did so on different CPUs.
    fn move_the_line(self) -> bool {
        u32::from(self.from_another_cpu) * 8 >= REPORTS
    }
}

/// The number for the bias of a lock that has seen its readers overlap often, if it may become
/// fast. `is_first`: since it was written.
#[cold]
pub(super) fn begin(lock: usize, is_first: bool) -> Option<u32> {
    // In a model the clock has no meaning; locks are made fast by hand.
    if cfg!(loom) || !slots::has_room_for(lock) {
        return None;
    }
    let entry = entry(lock);
    // Without it nothing can be known of CPUs; no lock becomes fast.
    let cpu = crate::oncpu::current_cpu()?;
    // Two that do this at once may lose one of the two reports.
    let reports = match is_first {
        true => Reports::first(cpu),
        false => Reports::from_bits(entry.reports.load(Relaxed)).with(cpu),
    };
    if !reports.are_enough() {
        entry.reports.store(reports.to_bits(), Relaxed);
        return None;
    }
    entry.reports.store(Reports::first(cpu).to_bits(), Relaxed);
    let may_begin = reports.move_the_line() && nanoseconds() >= entry.not_before.load(Relaxed);
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
    fn reports_are_enough_if_they_come_from_different_cpus() {
        let from = |cpu: fn(u32) -> u32| {
            let mut reports = Reports::first(cpu(0));
            for number in 1..REPORTS {
                assert!(!reports.are_enough());
                reports = Reports::from_bits(reports.with(cpu(number)).to_bits());
            }
            assert!(reports.are_enough());
            reports.move_the_line()
        };
        assert!(from(|number| number % 2));
        assert!(from(|number| number / 4));
        assert!(!from(|_| 70_000));
        // One thread was moved, once.
        assert!(!from(|number| number / 64));
    }

    #[test]
    fn a_write_begins_anew() {
        static LOCK: u64 = 0;
        if crate::oncpu::current_cpu().is_none() {
            return;
        }
        let lock = core::ptr::from_ref(&LOCK).addr();
        let report = |is_first| {
            let number = begin(lock, is_first);
            let reports = Reports::from_bits(entry(lock).reports.load(Relaxed));
            (number, reports.count)
        };
        assert_eq!(report(true), (None, 1));
        assert_eq!(report(false), (None, 2));
        assert_eq!(report(true), (None, 1));
    }
}
