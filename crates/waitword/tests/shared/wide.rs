//! 64-bit words, which the kernel compares half by half.

use crate::{SharedFile, answer_of, cannot_wait, waited};
use std::sync::atomic::AtomicU64;
use waitword::{Error, Futex};
use waitword_testkit::{Atomic, watch};

const WORD: usize = 64;
const LOW: u64 = 1;
const HIGH: u64 = 1 << 32;

#[test]
fn a_change_in_either_half_is_seen() {
    let _watchdog = watch();
    if cannot_wait::<AtomicU64>() {
        return;
    }
    let word = AtomicU64::new(5 * HIGH + 7);
    let futex = Futex::shared(&word);
    for expected in [5 * HIGH + 6, 4 * HIGH + 7, 7 * HIGH + 5, 7, 5 * HIGH] {
        assert_eq!(futex.wait(expected), Err(Error::Mismatch), "{expected:#x}");
    }
}

#[test]
fn a_change_in_either_half_wakes() {
    let _watchdog = watch();
    if cannot_wait::<AtomicU64>() {
        return;
    }
    let shared = SharedFile::new();
    let word = shared.word::<AtomicU64>(WORD);
    for change in [LOW, HIGH, LOW + HIGH] {
        let before = word.get();
        let child = shared.other_process(|there| {
            waited(Futex::shared(there.word::<AtomicU64>(WORD)).wait(before))
        });
        child.until_asleep();
        word.add(change);
        assert_eq!(Futex::shared(word).wake(1), Ok(1));
        assert_eq!(answer_of(child), Ok(0));
    }
}

#[test]
fn taking_turns_by_either_half() {
    let _watchdog = watch();
    if cannot_wait::<AtomicU64>() {
        return;
    }
    for change in [LOW, HIGH, LOW + HIGH] {
        taking_turns_by(change);
    }
}

/// Two processes take turns, and each turn changes the word by `change`: a lost wake hangs.
fn taking_turns_by(change: u64) {
    const ROUNDS: u64 = 2000;
    let shared = SharedFile::new();
    let take_turns = |word: &AtomicU64, turn: u64| {
        for round in 0..ROUNDS {
            let mine = (2 * round + turn).wrapping_mul(change);
            while word.get() != mine {
                let before = mine.wrapping_sub(change);
                match Futex::shared(word).wait(before) {
                    Ok(()) | Err(Error::Mismatch) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            word.add(change);
            Futex::shared(word).wake(1).unwrap();
        }
    };
    let child = shared.other_process(|there| {
        take_turns(there.word(WORD), 1);
        Ok(0)
    });
    take_turns(shared.word(WORD), 0);
    assert_eq!(answer_of(child), Ok(0));
}
