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

/// Whether a lock that has seen its readers overlap often enough may become fast.
#[cold]
pub(super) fn may_begin(lock: usize) -> bool {
    // In a model the clock has no meaning; locks are made fast by hand.
    if cfg!(loom) || !slots::has_room_for(lock) {
        return false;
    }
    let entry = entry(lock);
    let now = nanoseconds();
    let Some(cpu) = crate::oncpu::current_cpu() else {
        // Nothing can be known of CPUs here; no lock becomes fast.
        return false;
    };
    let cpu = u64::from(cpu) % (1 << CPU_BITS);
    // Two who do this at once may each take the other's place: then it is seen the next time.
    let last = entry
        .last_seen
        .swap(now >> CPU_BITS << CPU_BITS | cpu, Relaxed);
    last % (1 << CPU_BITS) != cpu
        && now.saturating_sub(last) < CLOSE
        && now >= entry.not_before.load(Relaxed)
        // A slow lock stands in no slot. If it does, an earlier lock at this place was freed while a reader held it (programs do
        // that to pthread's), and a writer of this one would wait for that reader for ever.
        && !slots::any(lock)
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
    use std::time::{Duration, Instant};

    /// Moves the calling thread to another CPU; false if there is none.
    fn move_on() -> bool {
        // SAFETY: a set of CPUs is plain data.
        let mut allowed: libc::cpu_set_t = unsafe { core::mem::zeroed() };
        let size = size_of::<libc::cpu_set_t>();
        let process = std::process::id() as libc::pid_t;
        // SAFETY: it writes the set.
        let answer = unsafe { libc::sched_getaffinity(process, size, &raw mut allowed) };
        assert_eq!(answer, 0);
        let here = crate::oncpu::current_cpu().unwrap() as usize;
        // SAFETY: the set is large enough for the number.
        let other = (0..1024).find(|&cpu| cpu != here && unsafe { libc::CPU_ISSET(cpu, &allowed) });
        let Some(other) = other else {
            return false;
        };
        // SAFETY: as above.
        let mut one: libc::cpu_set_t = unsafe { core::mem::zeroed() };
        // SAFETY: as above.
        unsafe { libc::CPU_SET(other, &mut one) };
        // SAFETY: it reads the set.
        unsafe { libc::sched_setaffinity(0, size, &raw const one) == 0 }
    }

    /// Seen from two CPUs in turn, for so long: whether it may ever become fast.
    fn may_ever_begin(lock: usize, patience: Duration) -> bool {
        let end = Instant::now() + patience;
        while Instant::now() < end {
            if may_begin(lock) {
                return true;
            }
            assert!(move_on());
        }
        false
    }

    #[test]
    fn where_a_forgotten_reader_stands_in_a_slot_no_lock_becomes_fast() {
        const NOWHERE: usize = 0x7ffd_0000_1238;
        std::thread::spawn(|| {
            if !move_on() {
                return;
            }
            let _ = slots::publish(NOWHERE).unwrap();
            assert!(!may_ever_begin(NOWHERE, Duration::from_millis(200)));
            assert!(slots::retract(NOWHERE));
            assert!(may_ever_begin(NOWHERE, Duration::from_secs(30)));
        })
        .join()
        .unwrap();
    }
}
