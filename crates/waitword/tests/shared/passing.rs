//! Waiters on many words forward wakes that may have been meant for a neighbouring word, but not
//! forever.
//!
//! Found by `waitword torture` (`wait_any`, seeds 8201 and 8202): a waiter woken by a forwarded
//! wake-up forwarded it again, at once. After one wake, waiters in loops woke each other as fast as
//! they could until they were stopped.

use crate::{SharedFile, answer_of, cannot_wait_for_many, counted, waited};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};
use std::time::{Duration, Instant};
use waitword::{Error, Futex, wait_any};
use waitword_testkit::{Atomic, Child, Crew, watch};

/// Four bytes, four more at another place, and a word.
const CELL: usize = 64;
const OTHER_CELL: usize = 128;
const WORD: usize = 192;
/// Counts how often each waiter's wait has ended.
const TALLIES: usize = 1024;
/// Waiters are queued in the kernel, and have no entry in the table.
const KERNEL: usize = 0;

type Get<'a> = &'a dyn Fn(usize) -> &'a AtomicU8;

/// Waits for a byte of each cell, again and again, until one of them changes.
fn wait_on_and_on(number: usize, byte: Get<'_>, word: &AtomicU32, ended: &AtomicU64) {
    let bytes = [CELL, OTHER_CELL].map(|cell| byte(cell + number % 4));
    loop {
        let [first, second] = bytes.map(|byte| Futex::shared(byte).expecting(0));
        match wait_any(&[first, Futex::shared(word).expecting(0), second], None) {
            Ok(_) => ended.add(1),
            Err(error) => return assert_eq!(error, Error::Mismatch),
        };
    }
}

fn wake_first(shared: &SharedFile) {
    let byte = shared.word::<AtomicU8>(CELL);
    Futex::shared(byte).wake(1).unwrap();
}

fn stop(shared: &SharedFile) {
    for offset in (0..4).flat_map(|lane| [CELL + lane, OTHER_CELL + lane]) {
        let byte = shared.word::<AtomicU8>(offset);
        byte.set(1);
        Futex::shared(byte).wake(usize::MAX).unwrap();
    }
}

fn ended(shared: &SharedFile, waiters: usize) -> u64 {
    let tally = |number| shared.get::<AtomicU64>(TALLIES + 8 * number).get();
    (0..waiters).map(tally).sum()
}

/// At full speed there were some 150 per millisecond.
fn is_at_a_pace(ended: u64, passed: Duration) -> bool {
    ended > 0 && ended < 1_000 + 20 * passed.as_millis() as u64
}

const AWHILE: Duration = Duration::from_millis(500);

#[test]
fn in_one_process_one_wake_does_not_keep_all_busy() {
    const WAITERS: usize = 16;
    let _watchdog = watch();
    if cannot_wait_for_many() {
        return;
    }
    let shared = SharedFile::new();
    let (ended, passed) = std::thread::scope(|scope| {
        for number in 0..WAITERS {
            let shared = &shared;
            scope.spawn(move || {
                let byte = |offset| shared.word(offset);
                let tally = shared.get(TALLIES + 8 * number);
                wait_on_and_on(number, &byte, shared.word(WORD), tally);
            });
        }
        std::thread::sleep(AWHILE / 5);
        let begun = Instant::now();
        wake_first(&shared);
        std::thread::sleep(AWHILE);
        let seen = (ended(&shared, WAITERS), begun.elapsed());
        stop(&shared);
        seen
    });
    assert!(is_at_a_pace(ended, passed), "{ended} waits have ended in {passed:?}");
}

#[test]
fn between_processes_one_wake_does_not_keep_all_busy() {
    const WAITERS: usize = 8;
    let _watchdog = watch();
    if cannot_wait_for_many() {
        return;
    }
    let shared = SharedFile::new();
    let wait = |number: usize| {
        shared.other_process(move |there| {
            let byte = |offset| there.word(offset);
            let tally = there.get(TALLIES + 8 * number);
            wait_on_and_on(number, &byte, there.word(WORD), tally);
            Ok(0)
        })
    };
    let processes: Vec<Child> = (0..WAITERS).map(wait).collect();
    processes.iter().for_each(Child::until_asleep);
    let begun = Instant::now();
    wake_first(&shared);
    std::thread::sleep(AWHILE);
    let (ended, passed) = (ended(&shared, WAITERS), begun.elapsed());
    stop(&shared);
    for process in processes {
        assert_eq!(answer_of(process), Ok(0));
    }
    assert!(is_at_a_pace(ended, passed), "{ended} waits have ended in {passed:?}");
}

/// A waiter forwards a wake-up at once, and wakes many waiters by that. So it delays forwarding the
/// next wake-up that it takes, but does not forget it.
#[test]
fn what_is_put_off_is_passed_on() {
    const BYSTANDER: usize = 0;
    const NEIGHBOUR: usize = 1;
    /// Enough for the longest delay.
    const CREW: usize = 202;
    if cannot_wait_for_many() {
        return;
    }
    let shared = Arc::new(SharedFile::new());
    let mut crew = Crew::new(CREW);
    let wake = || Futex::shared(shared.word::<AtomicU8>(CELL + 1)).wake(1);
    let [for_any, for_one] = [(); 2].map(|()| shared.clone());
    let wait_for_any = move || {
        let byte = Futex::shared(for_any.word::<AtomicU8>(CELL)).expecting(0);
        counted(wait_any(&[byte], None))
    };
    let wait_in = move |lane| {
        let byte = Futex::shared(for_one.word::<AtomicU8>(CELL + lane));
        waited(byte.wait(0))
    };
    crew.order(BYSTANDER, KERNEL, wait_for_any.clone());
    assert_eq!(crew.settle(), []);
    for other in NEIGHBOUR + 1..CREW {
        let wait_in = wait_in.clone();
        crew.order(other, KERNEL, move || wait_in(2));
    }
    assert_eq!(crew.settle(), []);
    assert_eq!(wake(), Ok(1));
    let ended = crew.settle_with(BYSTANDER);
    assert_eq!(ended.len(), CREW - 1);
    crew.order(BYSTANDER, KERNEL, wait_for_any);
    assert_eq!(crew.settle(), []);
    crew.order(NEIGHBOUR, KERNEL, move || wait_in(1));
    assert_eq!(crew.settle(), []);
    // The neighbour is queued behind the waiter that forwards.
    assert_eq!(wake(), Ok(1));
    let mut ended = crew.settle_with(NEIGHBOUR);
    if ended.len() == 1 {
        ended.extend(crew.settle_with(BYSTANDER));
    }
    ended.sort_unstable();
    assert_eq!(ended, [(BYSTANDER, Ok(0)), (NEIGHBOUR, Ok(0))]);
}
