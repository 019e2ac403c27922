//! What a thread waits for and holds at present: for readers in other processes.
//!
//! Only the thread itself writes these fields of its ring. A reader finds each of them at some
//! moment, and looks twice before it believes what they say together.

use crate::format::{HELD_TO_READ, MOST_HELD, Object, Ring};
use core::sync::atomic::Ordering::{Relaxed, Release};

impl Ring {
    /// The thread begins to wait.
    pub(crate) fn begin_wait(&self, object: Object, address: u64, has_deadline: bool, now: u64) {
        self.object.store(object as u32, Relaxed);
        self.has_deadline.store(u32::from(has_deadline), Relaxed);
        self.since.store(now, Relaxed);
        // Release: a reader that finds the address finds the rest.
        self.waiting.store(address, Release);
    }

    /// It waits no longer.
    pub(crate) fn end_wait(&self) {
        // Relaxed: nothing is published.
        self.waiting.store(0, Relaxed);
    }

    /// The thread has taken this lock.
    pub(crate) fn hold(&self, address: u64, to_read: bool) {
        // Relaxed: only this thread writes the count.
        let count = self.held_count.load(Relaxed);
        if let Some(place) = self.held.get(count as usize) {
            place.store(address | if to_read { HELD_TO_READ } else { 0 }, Relaxed);
        }
        // Release: a reader that finds the count finds the addresses.
        self.held_count.store(count.wrapping_add(1), Release);
    }

    /// The thread has taken this lock, which it does not hold otherwise. Nothing happens if it is
    /// known already, or if there is no room.
    pub(crate) fn hold_once(&self, address: u64) {
        // Relaxed: only this thread writes these fields.
        let count = self.held_count.load(Relaxed) as usize;
        let mut known = self.held.iter().take(count);
        if count < MOST_HELD && !known.any(|held| held.load(Relaxed) & !HELD_TO_READ == address) {
            self.hold(address, false);
        }
    }

    /// The thread is about to release this lock: the hold that began last, if it has more than one.
    /// Returns whether it is known to hold it; otherwise nothing happens.
    pub(crate) fn release(&self, address: u64) -> bool {
        // Relaxed: only this thread writes these fields. (A reader that finds a lock twice, or for
        // a moment not, looks again.)
        let count = self.held_count.load(Relaxed) as usize;
        let known = count.min(MOST_HELD);
        let find = |address: u64| {
            let is_it = |&n: &usize| self.held[n].load(Relaxed) & !HELD_TO_READ == address;
            (0..known).rev().find(is_it)
        };
        // One that there was no room for may have got a place since, as 0.
        let is_beyond = count > MOST_HELD;
        match find(address).or_else(|| if is_beyond { None } else { find(0) }) {
            Some(at) => {
                for n in at..known {
                    let next = self.held.get(n + 1).map_or(0, |next| next.load(Relaxed));
                    self.held[n].store(if n + 1 < known { next } else { 0 }, Relaxed);
                }
            }
            // One of those that there was no room for.
            None if is_beyond => {}
            None => return false,
        }
        self.held_count.store(count as u32 - 1, Release);
        true
    }

    /// Whether this lock was taken last, of those that are held, and all of them are known.
    #[inline]
    pub(crate) fn has_taken_last(&self, address: u64) -> bool {
        // Relaxed: only this thread writes these fields.
        let count = self.held_count.load(Relaxed) as usize;
        let last = self.held.get(count.wrapping_sub(1));
        last.is_some_and(|held| held.load(Relaxed) & !HELD_TO_READ == address)
    }

    /// The thread is about to release the lock that it has taken last. All are known.
    #[inline]
    pub(crate) fn release_last(&self) {
        self.held_count.store(self.held_count.load(Relaxed).wrapping_sub(1), Release);
    }

    /// The call in which another process found the thread asleep since this time, plus one; 0:
    /// none.
    pub(crate) fn call_since(&self, since: u64) -> u16 {
        // Relaxed: it is a sample; the two may belong to different moments.
        match self.call_at.load(Relaxed) >= since {
            true => u16::try_from(self.call.load(Relaxed)).unwrap_or(0),
            false => 0,
        }
    }

    /// The ring begins to belong to another thread.
    pub(crate) fn forget_present(&self) {
        self.waiting.store(0, Relaxed);
        self.held_count.store(0, Relaxed);
        self.call_at.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU64;

    fn ring() -> Box<Ring> {
        // SAFETY: a ring consists of atomic integers.
        unsafe { Box::new(core::mem::zeroed()) }
    }

    fn held(ring: &Ring) -> (u32, Vec<u64>) {
        let count = ring.held_count.load(Relaxed);
        let all = ring.held.iter().take(count as usize).map(|held: &AtomicU64| held.load(Relaxed));
        (count, all.collect())
    }

    #[test]
    fn locks_are_held_until_they_are_released_in_any_order() {
        let ring = ring();
        ring.hold(0x10, false);
        ring.hold(0x20, true);
        ring.hold(0x30, false);
        ring.hold(0x10, false);
        assert_eq!(held(&ring), (4, vec![0x10, 0x21, 0x30, 0x10]));
        assert!(ring.release(0x20));
        assert_eq!(held(&ring), (3, vec![0x10, 0x30, 0x10]));
        // The last hold of two.
        ring.release(0x10);
        assert_eq!(held(&ring), (2, vec![0x10, 0x30]));
        ring.hold_once(0x30);
        assert_eq!(held(&ring), (2, vec![0x10, 0x30]));
        assert!(!ring.release(0x40));
        ring.release(0x10);
        ring.release(0x30);
        assert_eq!(held(&ring), (0, vec![]));
        ring.release(0x30);
        assert_eq!(held(&ring), (0, vec![]));
        assert!(!ring.has_taken_last(0x30));
        ring.hold(0x10, false);
        ring.hold(0x20, true);
        assert!(ring.has_taken_last(0x20) && !ring.has_taken_last(0x10));
        ring.release_last();
        assert!(ring.has_taken_last(0x10) && !ring.has_taken_last(0x20));
        assert_eq!(held(&ring), (1, vec![0x10]));
        ring.release_last();
        assert_eq!(held(&ring), (0, vec![]));
    }

    #[test]
    fn more_locks_than_there_is_room_for_are_counted() {
        let ring = ring();
        let lock = |n: usize| 0x1000 + 16 * n as u64;
        (0..MOST_HELD + 3).for_each(|n| ring.hold(lock(n), false));
        assert!(!ring.has_taken_last(lock(MOST_HELD + 2)), "it is not known");
        assert_eq!(ring.held_count.load(Relaxed) as usize, MOST_HELD + 3);
        // One that is known: its place is unknown from now on.
        ring.release(lock(1));
        assert_eq!(ring.held_count.load(Relaxed) as usize, MOST_HELD + 2);
        assert_eq!(ring.held[1].load(Relaxed), lock(2));
        assert_eq!(ring.held[MOST_HELD - 1].load(Relaxed), 0);
        ring.hold_once(lock(99));
        assert_eq!(ring.held_count.load(Relaxed) as usize, MOST_HELD + 2);
        // Those that are not.
        (MOST_HELD..MOST_HELD + 3).for_each(|n| assert!(ring.release(lock(n))));
        assert_eq!(ring.held_count.load(Relaxed) as usize, MOST_HELD - 1);
        // Nothing that it does not hold.
        ring.release(0x10);
        assert_eq!(ring.held_count.load(Relaxed) as usize, MOST_HELD - 1);
    }

    #[test]
    fn a_call_counts_if_it_was_seen_in_time() {
        let ring = ring();
        ring.call.store(36, Relaxed);
        ring.call_at.store(100, Relaxed);
        assert_eq!((ring.call_since(100), ring.call_since(101)), (36, 0));
        ring.call.store(u32::MAX, Relaxed);
        assert_eq!(ring.call_since(100), 0);
    }
}
