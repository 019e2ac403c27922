//! 8 and 16-bit words side by side in the same 32 bits: whatever the neighbours do, no wake is
//! lost, and none goes to the wrong word.

use crate::{SharedFile, answer_of, cannot_wait_for_many, waited};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU64};
use std::time::Duration;
use waitword::{Deadline, Error, Futex, Mask, WaitOptions, wait_any};
use waitword_testkit::{Atomic, watch};

/// The 32 bits that the words share.
const CELL: usize = 64;
/// The offset of the tallies.
const TALLIES: usize = 1024;
const ROUNDS: u64 = 1500;

#[test]
fn each_word_hears_its_own_wakes() {
    let _watchdog = watch();
    each_word_hears_its_own_wakes_at::<AtomicU8>();
    each_word_hears_its_own_wakes_at::<AtomicU16>();
}

fn each_word_hears_its_own_wakes_at<A: Atomic>() {
    let shared = SharedFile::new();
    let lanes = 4 / size_of::<A>();
    let offset = |lane| CELL + lane * size_of::<A>();
    let wait_in_other_process = |lane| {
        let child = shared.other_process(|there| {
            waited(Futex::shared(there.word::<A>(offset(lane))).wait(A::value(lane as u64)))
        });
        child.until_asleep();
        child
    };
    for lane in 0..lanes {
        shared.word::<A>(offset(lane)).set(lane as u64);
    }
    // Two waiters on each word, taking the words in turn.
    let first: Vec<_> = (0..lanes).map(wait_in_other_process).collect();
    let second: Vec<_> = (0..lanes).map(wait_in_other_process).collect();
    for (lane, (first, second)) in first.into_iter().zip(second).enumerate() {
        let futex = Futex::shared(shared.word::<A>(offset(lane)));
        // A neighbour changes; the waiters stay queued.
        shared.word::<A>(offset((lane + 1) % lanes)).add(1);
        assert_eq!(futex.wake(1), Ok(1));
        assert_eq!(answer_of(first), Ok(0));
        assert_eq!(futex.wake(usize::MAX), Ok(1));
        assert_eq!(answer_of(second), Ok(0));
        assert_eq!(futex.wake(usize::MAX), Ok(0));
    }
}

#[test]
fn masks_of_neighbours_do_not_mix() {
    let _watchdog = watch();
    let shared = SharedFile::new();
    let mask = |bits| WaitOptions::new().mask(Mask::<u8>::new(bits).unwrap());
    // The lowest bit of one word lies next to the highest bit of the word before it.
    let [low, high] = [(CELL + 1, 1), (CELL, 0x80)].map(|(offset, bits)| {
        let child = shared.other_process(|there| {
            waited(Futex::shared(there.word::<AtomicU8>(offset)).wait_with(0, mask(bits)))
        });
        child.until_asleep();
        child
    });
    let futex = |offset| Futex::shared(shared.word::<AtomicU8>(offset));
    assert_eq!(futex(CELL).wake_mask(usize::MAX, Mask::new(0x7f).unwrap()), Ok(0));
    assert_eq!(futex(CELL + 1).wake_mask(usize::MAX, Mask::new(0xfe).unwrap()), Ok(0));
    assert_eq!(futex(CELL).wake_mask(usize::MAX, Mask::new(0x80).unwrap()), Ok(1));
    assert_eq!(answer_of(high), Ok(0));
    assert_eq!(futex(CELL + 1).wake_mask(usize::MAX, Mask::new(1).unwrap()), Ok(1));
    assert_eq!(answer_of(low), Ok(0));
}

#[test]
fn a_neighbours_change_is_no_mismatch() {
    let _watchdog = watch();
    a_neighbours_change_is_no_mismatch_at::<AtomicU8>();
    a_neighbours_change_is_no_mismatch_at::<AtomicU16>();
}

/// Between our read of the 32 bits and the kernel's, another process changes them again and again.
/// So the kernel's comparison hardly ever succeeds, and the kernel does not check the time. The
/// wait must end in time nevertheless.
fn a_neighbours_change_is_no_mismatch_at<A: Atomic>() {
    const WAITS: usize = 3_000;
    let shared = SharedFile::new();
    let beside = CELL + size_of::<A>();
    let hammer = shared.other_process(|there| {
        loop {
            there.word::<A>(beside).add(1);
        }
    });
    let futex = Futex::shared(shared.word::<A>(CELL));
    let past = Deadline::after(Duration::ZERO);
    while shared.word::<A>(beside).get() == 0 {
        std::thread::yield_now();
    }
    for _ in 0..WAITS {
        assert_eq!(futex.wait_until(A::value(0), past), Err(Error::TimedOut));
        let words = [futex.expecting(A::value(0))];
        let expected = match cannot_wait_for_many() {
            true => Error::Unsupported,
            false => Error::TimedOut,
        };
        assert_eq!(wait_any(&words, Some(past)), Err(expected));
    }
    // It ends by being killed.
    drop(hammer);
}

#[test]
fn hammering_neighbours_lose_nothing() {
    let _watchdog = watch();
    hammering_neighbours_lose_nothing_at::<AtomicU8>();
    hammering_neighbours_lose_nothing_at::<AtomicU16>();
}

/// On every word a thread here and a process elsewhere take turns, by the word's lowest bit. Each
/// change disturbs all neighbours. A lost wake hangs. At the end, every wake that found a waiter
/// has ended one wait, and no wait has ended without one.
fn hammering_neighbours_lose_nothing_at<A: Atomic>() {
    let shared = SharedFile::new();
    let lanes = 4 / size_of::<A>();
    let word = |lane| CELL + lane * size_of::<A>();
    let tally = |lane: usize, side: usize| TALLIES + (2 * lane + side) * size_of::<Tally>();
    let others: Vec<_> = (0..lanes)
        .map(|lane| {
            shared.other_process(|there| {
                take_turns::<A>(there.word(word(lane)), 1, there.get(tally(lane, 1)));
                Ok(0)
            })
        })
        .collect();
    std::thread::scope(|scope| {
        for lane in 0..lanes {
            let (word, tally) = (shared.word::<A>(word(lane)), shared.get(tally(lane, 0)));
            scope.spawn(move || take_turns(word, 0, tally));
        }
    });
    for (lane, other) in others.into_iter().enumerate() {
        assert_eq!(answer_of(other), Ok(0));
        let [here, there] = [0, 1].map(|side| shared.get::<Tally>(tally(lane, side)));
        assert_eq!(here.found.get(), there.ended.get(), "word {lane}: wakes from here");
        assert_eq!(there.found.get(), here.ended.get(), "word {lane}: wakes from there");
    }
}

/// What one side of a word has seen.
#[repr(C)]
struct Tally {
    /// Wakes that found a waiter.
    found: AtomicU64,
    /// Waits ended by a wake.
    ended: AtomicU64,
}

fn take_turns<A: Atomic>(word: &A, turn: u64, tally: &Tally) {
    let futex = Futex::shared(word);
    for _ in 0..ROUNDS {
        loop {
            let value = word.get();
            if value % 2 == turn {
                break;
            }
            match futex.wait(A::value(value)) {
                Ok(()) => tally.ended.add(1),
                Err(error) => {
                    assert_eq!(error, Error::Mismatch);
                    0
                }
            };
        }
        word.add(1);
        tally.found.add(futex.wake(1).unwrap() as u64);
    }
}
