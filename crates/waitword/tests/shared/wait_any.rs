//! Waiting for many words: every width, shared and private words mixed.

use crate::{Elsewhere, SharedFile, answer_of, cannot_wait_for_many, counted, waited};
use libc::{EAGAIN, ETIMEDOUT};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};
use std::time::Duration;
use waitword::{Deadline, Error, Expecting, Futex, wait_any};
use waitword_testkit::{Answer, Atomic, Crew, watch};

const AT_8: usize = 64;
const AT_16: usize = 128;
const AT_32: usize = 192;
const AT_64: usize = 256;

/// Words of every width in both scopes.
struct Mixed {
    shared: SharedFile,
    byte: AtomicU8,
    wide: AtomicU64,
}

/// How many of them are private.
const PRIVATE: usize = 2;
const WORDS: usize = 6;

impl Mixed {
    fn new() -> Arc<Self> {
        waitword::spin::set_budget(Duration::ZERO);
        let (byte, wide) = (AtomicU8::new(1), AtomicU64::new(1 << 63));
        let shared = SharedFile::new();
        shared.word::<AtomicU8>(AT_8).set(0x80);
        shared.word::<AtomicU16>(AT_16).set(0x8001);
        shared.word::<AtomicU32>(AT_32).set(0x8000_0001);
        shared.word::<AtomicU64>(AT_64).set(0x8000_0001 << 32 | 3);
        Arc::new(Self { shared, byte, wide })
    }

    fn words(&self) -> [Expecting<'_>; WORDS] {
        let shared = &self.shared;
        [
            Futex::private(&self.byte).expecting(1),
            Futex::shared(shared.word::<AtomicU8>(AT_8)).expecting(0x80),
            Futex::shared(shared.word::<AtomicU64>(AT_64)).expecting(0x8000_0001 << 32 | 3),
            Futex::private(&self.wide).expecting(1 << 63),
            Futex::shared(shared.word::<AtomicU32>(AT_32)).expecting(0x8000_0001),
            Futex::shared(shared.word::<AtomicU16>(AT_16)).expecting(0x8001),
        ]
    }

    fn wait(&self, deadline: Option<Deadline>) -> Answer {
        counted(wait_any(&self.words(), deadline))
    }

    /// Wakes one waiter of a word: for a private word here, for a shared one from another process.
    fn wake(&self, index: usize) -> Answer {
        match index {
            0 => counted(Futex::private(&self.byte).wake(1)),
            3 => counted(Futex::private(&self.wide).wake(1)),
            _ => answer_of(self.shared.other_process(|there| counted(wake_there(there, index)))),
        }
    }

    /// Changes a word.
    fn change(&self, index: usize) {
        let shared = &self.shared;
        match index {
            0 => self.byte.add(1),
            1 => shared.word::<AtomicU8>(AT_8).add(0x80),
            2 => shared.word::<AtomicU64>(AT_64).add(1 << 63),
            3 => self.wide.add(1),
            4 => shared.word::<AtomicU32>(AT_32).add(1 << 31),
            _ => shared.word::<AtomicU16>(AT_16).add(1 << 15),
        };
    }
}

fn wake_there(there: &Elsewhere, index: usize) -> Result<usize, Error> {
    match index {
        1 => Futex::shared(there.word::<AtomicU8>(AT_8)).wake(1),
        2 => Futex::shared(there.word::<AtomicU64>(AT_64)).wake(1),
        4 => Futex::shared(there.word::<AtomicU32>(AT_32)).wake(1),
        _ => Futex::shared(there.word::<AtomicU16>(AT_16)).wake(1),
    }
}

#[test]
fn each_of_mixed_words_wakes() {
    if cannot_wait_for_many() {
        return;
    }
    let mixed = Mixed::new();
    let mut crew = Crew::new(1);
    for index in 0..WORDS {
        let waiting = mixed.clone();
        crew.order(0, PRIVATE, move || waiting.wait(None));
        assert_eq!(crew.settle(), []);
        assert_eq!(mixed.wake(index), Ok(1));
        assert_eq!(crew.settle_with(0), [(0, Ok(index))]);
        // It has left all the others.
        for index in 0..WORDS {
            assert_eq!(mixed.wake(index), Ok(0), "word {index}");
        }
    }
}

#[test]
fn each_of_mixed_words_is_compared() {
    let _watchdog = watch();
    if cannot_wait_for_many() {
        return;
    }
    for index in 0..WORDS {
        let mixed = Mixed::new();
        let past = Deadline::after(Duration::ZERO);
        assert_eq!(mixed.wait(Some(past)), Err(ETIMEDOUT));
        mixed.change(index);
        assert_eq!(mixed.wait(Some(past)), Err(EAGAIN), "word {index}");
        for index in 0..WORDS {
            assert_eq!(mixed.wake(index), Ok(0), "word {index}");
        }
    }
}

#[test]
fn a_mixed_wait_ends_in_time() {
    let _watchdog = watch();
    if cannot_wait_for_many() {
        return;
    }
    let mixed = Mixed::new();
    let deadline = Deadline::after(Duration::from_millis(3));
    assert_eq!(mixed.wait(Some(deadline)), Err(ETIMEDOUT));
    assert!(deadline.has_passed());
}

#[test]
fn a_mixed_wait_is_interrupted() {
    if cannot_wait_for_many() {
        return;
    }
    let mixed = Mixed::new();
    let mut crew = Crew::new(1);
    let waiting = mixed.clone();
    crew.order(0, PRIVATE, move || waiting.wait(None));
    assert_eq!(crew.settle(), []);
    crew.interrupt(0);
    assert_eq!(crew.settle_with(0), [(0, Err(libc::EINTR))]);
    for index in 0..WORDS {
        assert_eq!(mixed.wake(index), Ok(0), "word {index}");
    }
}

#[test]
fn neighbours_changes_do_not_end_a_wait() {
    if cannot_wait_for_many() {
        return;
    }
    let mixed = Mixed::new();
    let mut crew = Crew::new(1);
    let waiting = mixed.clone();
    crew.order(0, PRIVATE, move || waiting.wait(None));
    assert_eq!(crew.settle(), []);
    let beside = mixed.shared.word::<AtomicU8>(AT_8 + 1);
    beside.add(1);
    assert_eq!(crew.settle(), []);
    assert_eq!(mixed.wake(1), Ok(1));
    assert_eq!(crew.settle_with(0), [(0, Ok(1))]);
}

#[test]
fn a_neighbours_wake_is_passed_on() {
    let _watchdog = watch();
    if cannot_wait_for_many() {
        return;
    }
    let shared = SharedFile::new();
    // First in the kernel's queue, and without a mask there.
    let of_many = shared.other_process(|there| {
        let words = [AT_8, AT_32].map(|offset| there.word::<AtomicU8>(offset));
        counted(wait_any(&words.map(|word| Futex::shared(word).expecting(0)), None))
    });
    of_many.until_asleep();
    let neighbour = shared
        .other_process(|there| waited(Futex::shared(there.word::<AtomicU8>(AT_8 + 1)).wait(0)));
    neighbour.until_asleep();
    // The wake is meant for the neighbour, and must reach it.
    assert_eq!(Futex::shared(shared.word::<AtomicU8>(AT_8 + 1)).wake(1), Ok(1));
    assert_eq!(answer_of(neighbour), Ok(0));
    assert_eq!(answer_of(of_many), Ok(0));
}

#[test]
fn the_kernels_limit_counts_halves() {
    let _watchdog = watch();
    if cannot_wait_for_many() {
        return;
    }
    let past = || Some(Deadline::after(Duration::ZERO));
    let (wide, byte, private) = (AtomicU64::new(0), AtomicU8::new(0), AtomicU8::new(0));
    let wide = Futex::shared(&wide).expecting(0);
    let byte = Futex::shared(&byte).expecting(0);
    let private = Futex::private(&private).expecting(0);
    assert_eq!(wait_any(&[wide; 64], past()), Err(Error::TimedOut));
    assert_eq!(wait_any(&[wide; 65], past()), Err(Error::TooManyWords));
    assert_eq!(wait_any(&[byte; 128], past()), Err(Error::TimedOut));
    assert_eq!(wait_any(&[byte; 129], past()), Err(Error::TooManyWords));
    assert_eq!(wait_any(&[], past()), Err(Error::NoWords));
    // With private words, their single entry takes a place.
    let mut mixed = vec![wide; 63];
    mixed.extend([private; 65]);
    assert_eq!(wait_any(&mixed, past()), Err(Error::TimedOut));
    mixed[63] = byte;
    assert_eq!(wait_any(&mixed, past()), Err(Error::TimedOut));
    mixed[64] = byte;
    assert_eq!(wait_any(&mixed, past()), Err(Error::TooManyWords));
}
