//! How often a thread takes a lock that threads wait for.
//!
//! A lock that is taken without a wait leaves no record. But whether a lock is fair shows only if
//! the turns of all its threads are known. So a thread counts them for a few locks. A turn counts
//! if the thread has waited for it, or if other threads wait when it begins or ends.

use crate::format::{CountedTurns, Ring, Turns};
use core::sync::atomic::Ordering::{Relaxed, Release};

/// With fewer turns, a lock makes room for another one.
const FEW: u64 = 16;

impl Ring {
    /// The thread has a turn at this lock, if there is room to count it.
    pub(crate) fn count_turn(&self, address: u64, now: u64) {
        // Relaxed: only this thread writes these fields.
        let known = self.turns.iter().find(|it| it.address.load(Relaxed) == address);
        if let Some(known) = known {
            known.count.store(known.count.load(Relaxed).wrapping_add(1), Relaxed);
            return;
        }
        let count = |counted: &&CountedTurns| match counted.address.load(Relaxed) {
            0 => 0,
            _ => counted.count.load(Relaxed).max(1),
        };
        let least = self.turns.iter().min_by_key(count).filter(|least| count(least) < FEW);
        if let Some(least) = least {
            least.count.store(1, Relaxed);
            least.since.store(now, Relaxed);
            // Release: a reader that finds the address finds the rest, or fewer turns.
            least.address.store(address, Release);
        }
    }

    /// The turns that have been counted. They are not any more.
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
    fn turns_are_counted_from_the_first_one() {
        let ring = ring();
        (0..3).for_each(|n| ring.count_turn(0x10, 70 + n));
        let shown: Vec<Turns> = ring.take_turns().collect();
        assert_eq!(shown, [Turns::new(0x10, 3, 70)]);
        assert_eq!(ring.take_turns().count(), 0);
    }

    #[test]
    fn locks_with_many_turns_stay() {
        let ring = ring();
        let room = ring.turns.len() as u64;
        ring.count_turn(1, 0);
        for lock in 2..=room {
            (0..FEW).for_each(|_| ring.count_turn(lock, 0));
        }
        // In place of the first one, which has few turns.
        (0..FEW).for_each(|_| ring.count_turn(98, 12));
        // There is no room.
        ring.count_turn(97, 14);
        let mut shown: Vec<_> =
            ring.take_turns().map(|turns| (turns.address, turns.count)).collect();
        shown.sort_unstable();
        let stayed: Vec<_> = (2..=room).chain([98]).map(|lock| (lock, FEW)).collect();
        assert_eq!(shown, stayed);
    }
}
