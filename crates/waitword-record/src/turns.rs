//! How often a thread takes a lock that threads wait for.
//!
//! A lock that is taken without a wait leaves no record. But whether a lock is fair shows only if
//! the turns of all its threads are known. So a thread counts them for a few locks: the first ones
//! that it takes, and later those that make it wait, or that it releases to a waiter. Counting is a
//! comparison with each of them, when a lock is taken.

use crate::files::time;
use crate::format::{IS_CONTENDED, Ring, Turns};
use core::sync::atomic::Ordering::{Relaxed, Release};

/// With fewer turns, a lock makes room for a contended one.
const FEW: u64 = 16;

impl Ring {
    /// The thread has taken this lock.
    #[inline]
    pub(crate) fn count_turn(&self, address: u64) {
        for counted in &self.turns {
            // Relaxed: only this thread writes these fields.
            match counted.address.load(Relaxed) {
                known if known == address => {
                    counted.count.store(counted.count.load(Relaxed).wrapping_add(1), Relaxed);
                    return;
                }
                0 => {
                    counted.count.store(1, Relaxed);
                    counted.since.store(time(libc::CLOCK_MONOTONIC) & !IS_CONTENDED, Relaxed);
                    // Release: a reader that finds the address finds the rest.
                    counted.address.store(address, Release);
                    return;
                }
                _ => {}
            }
        }
    }

    /// Another thread wants this lock, or had it: its turns are counted if there is room.
    pub(crate) fn count_turns_at(&self, address: u64, now: u64) {
        // Relaxed: only this thread writes these fields.
        let known = self.turns.iter().find(|it| it.address.load(Relaxed) == address);
        if let Some(known) = known {
            known.since.store(known.since.load(Relaxed) | IS_CONTENDED, Relaxed);
            return;
        }
        let worth = |counted: &&crate::format::CountedTurns| match counted.since.load(Relaxed)
            & IS_CONTENDED
        {
            0 => 0,
            _ => counted.count.load(Relaxed).max(1),
        };
        let least = self.turns.iter().min_by_key(worth).filter(|least| worth(least) < FEW);
        if let Some(least) = least {
            least.count.store(0, Relaxed);
            least.since.store(now | IS_CONTENDED, Relaxed);
            // Release: a reader that finds the address finds the rest, or fewer turns.
            least.address.store(address, Release);
        }
    }

    /// The turns that have been counted at contended locks. They are not any more.
    pub(crate) fn take_turns(&self) -> impl Iterator<Item = Turns> {
        self.turns.iter().filter_map(|counted| {
            // Relaxed: the ring's thread has ended, and the caller alone writes it.
            let address = counted.address.load(Relaxed);
            counted.address.store(0, Relaxed);
            Turns::counted(address, counted.count.load(Relaxed), counted.since.load(Relaxed))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring() -> Box<Ring> {
        // SAFETY: a ring consists of atomic integers.
        unsafe { Box::new(core::mem::zeroed()) }
    }

    #[test]
    fn turns_are_counted_and_shown_if_a_lock_is_contended() {
        let ring = ring();
        (0..3).for_each(|_| ring.count_turn(0x10));
        ring.count_turn(0x20);
        ring.count_turns_at(0x10, u64::MAX);
        let shown: Vec<Turns> = ring.take_turns().collect();
        assert!(matches!(shown[..], [Turns { address: 0x10, count: 3, since: 1.., .. }]));
        assert!(shown[0].since < u64::MAX - 1, "when it was first taken: {shown:?}");
        assert_eq!(ring.take_turns().count(), 0);
    }

    #[test]
    fn contended_locks_with_many_turns_stay() {
        let ring = ring();
        let room = ring.turns.len() as u64;
        for lock in 1..=room + 1 {
            (0..FEW).for_each(|_| ring.count_turn(lock));
        }
        // Those from 2 on are contended, and one more, in place of the first.
        (2..=room).for_each(|lock| ring.count_turns_at(lock, 0));
        ring.count_turns_at(99, 10);
        ring.count_turn(99);
        let few = |turns: &Turns| (turns.address, turns.count);
        // It has few turns, so it makes room in turn; then there is none.
        ring.count_turns_at(98, 12);
        (0..FEW).for_each(|_| ring.count_turn(98));
        ring.count_turns_at(97, 14);
        let mut shown: Vec<_> = ring.take_turns().map(|turns| few(&turns)).collect();
        shown.sort_unstable();
        let stayed: Vec<_> = (2..=room).chain([98]).map(|lock| (lock, FEW)).collect();
        assert_eq!(shown, stayed);
    }
}
