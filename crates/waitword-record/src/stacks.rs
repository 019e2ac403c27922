//! The numbers of stacks. A stack is written once, and referred to by its number after that.

use crate::format::MOST_FRAMES;
use core::sync::atomic::{AtomicU64, Ordering};

/// 512 KiB. The number of a stack is its place, counted from 1.
const PLACES: usize = 1 << 16;
/// How many places are looked at for one stack.
const LOOKS: usize = 32;

static HASHES: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];

/// A stack's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// The stack has been written before, or another thread is about to write it.
    Before(u32),
    /// The caller must write the stack.
    New(u32),
    /// There are too many stacks.
    Full,
}

/// The number of the stack with this hash. Stacks with the same hash (64 bits) count as the same.
pub(crate) fn number(hash: u64) -> Known {
    // An empty place is 0.
    let hash = hash.max(1);
    for look in 0..LOOKS {
        let place = (hash as usize).wrapping_add(look) % PLACES;
        let number = place as u32 + 1;
        // Relaxed: a place has no other data. Who finds the hash only refers to the number.
        let found = HASHES[place].load(Ordering::Relaxed);
        if found == hash {
            return Known::Before(number);
        }
        if found == 0 {
            let exchanged =
                HASHES[place].compare_exchange(0, hash, Ordering::Relaxed, Ordering::Relaxed);
            match exchanged {
                Ok(_) => return Known::New(number),
                Err(found) if found == hash => return Known::Before(number),
                Err(_) => {}
            }
        }
    }
    Known::Full
}

/// Forgets all stacks: for a forked child, whose recording is another one.
pub(crate) fn forget() {
    HASHES.iter().for_each(|hash| hash.store(0, Ordering::Relaxed));
}

/// The hash of return addresses.
pub(crate) fn hash(frames: &[u64]) -> u64 {
    debug_assert!(frames.len() <= MOST_FRAMES);
    let mixed = frames.iter().fold(frames.len() as u64, |hash, frame| {
        (hash.rotate_left(23) ^ frame).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    });
    // The lower bits of a product depend on few bits.
    mixed ^ mixed >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_new_once() {
        let hash = hash(&[0x1234, 0x5678]);
        let Known::New(number) = number(hash) else {
            panic!("not new");
        };
        assert_eq!(super::number(hash), Known::Before(number));
        assert_ne!(super::hash(&[0x5678, 0x1234]), hash);
        assert_ne!(super::hash(&[0x1234]), hash);
    }

    #[test]
    fn neighbours_in_the_table_are_told_apart_until_there_is_no_place() {
        // The same place for all.
        let all: Vec<u64> = (1..=LOOKS as u64 + 1).map(|n| 4000 | n << 32).collect();
        let mut numbers: Vec<u32> = all
            .iter()
            .filter_map(|&hash| match number(hash) {
                Known::New(number) => Some(number),
                _ => None,
            })
            .collect();
        assert_eq!(number(all[LOOKS]), Known::Full);
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), LOOKS);
    }
}
