//! Bugs of other futexes, each as a test: those that need a race. A lost wake-up hangs, and the
//! watchdog reports which threads wait.

use crate::{futex, scopes};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
use std::sync::atomic::{Ordering::Relaxed, Ordering::SeqCst};
use std::time::Duration;
use waitword::{Deadline, Error, Futex, Scope};
use waitword_testkit::{Atomic, Crew, for_every_width, watch};

/// LiteBox #1267: a waiter queued before its word was compared. It took a wake, found that the word
/// differed, and left, while a waiter that slept rightly was not woken.
#[test]
fn litebox_1267_an_unvalidated_waiter_takes_a_wake() {
    let _watchdog = watch();
    for_every_width!(only_sleepers_take_wakes());
}

fn only_sleepers_take_wakes<A: Atomic>() {
    waitword::spin::set_budget(Duration::ZERO);
    let mut crew = Crew::new(1);
    for scope in scopes::<A>() {
        let word = Arc::new(A::default());
        let stop = AtomicBool::new(false);
        std::thread::scope(|threads| {
            for _ in 0..2 {
                threads.spawn(|| {
                    while !stop.load(SeqCst) {
                        assert_eq!(futex(&*word, scope).wait(A::value(1)), Err(Error::Mismatch));
                    }
                });
            }
            for _ in 0..100 {
                let sleeper = word.clone();
                crew.order(0, usize::from(scope == Scope::Private), move || {
                    let waited = futex(&*sleeper, scope).wait(A::value(0));
                    waited.map(|()| 0).map_err(Error::raw_os_error)
                });
                assert_eq!(crew.settle(), []);
                assert_eq!(futex(&*word, scope).wake(1), Ok(1));
                assert_eq!(crew.settle_with(0), [(0, Ok(0))]);
            }
            stop.store(true, SeqCst);
        });
    }
}

/// libc++ #109290, LiteBox #820, folly #2649: the waker's read of the waiter count overtook its
/// change of the word, or the waiter's read of the word overtook its count. Also unikraft #1763 and
/// SerenityOS #4421, where the word was compared before the queue was locked. Two threads take
/// turns, and only the futex orders their relaxed accesses.
#[test]
fn libcxx_109290_a_wake_passes_a_waiter_by() {
    let _watchdog = watch();
    const ROUNDS: u32 = 4000;
    for scope in scopes::<AtomicU32>() {
        for spin in [Duration::ZERO, Duration::from_micros(20)] {
            waitword::spin::set_budget(spin);
            let word = AtomicU32::new(0);
            let take_turns = |turn: u32| {
                for round in 0..ROUNDS {
                    let mine = 2 * round + turn;
                    while word.load(Relaxed) != mine {
                        let _ = futex(&word, scope).wait(mine.wrapping_sub(1));
                    }
                    word.store(mine + 1, Relaxed);
                    futex(&word, scope).wake(1).unwrap();
                }
            };
            std::thread::scope(|threads| {
                threads.spawn(|| take_turns(0));
                threads.spawn(|| take_turns(1));
            });
            assert_eq!(word.load(Relaxed), 2 * ROUNDS);
        }
    }
}

/// LiteBox #1228, the same bug as a deliberate race: in each round both threads start together, one
/// to wait and one to change the word and wake, a little later from round to round.
#[test]
fn litebox_1228_store_buffering() {
    let _watchdog = watch();
    // Without the waker's fence, some hundred thousand rounds of optimized code are enough to hang
    // here.
    const ROUNDS: u32 = if cfg!(debug_assertions) { 20_000 } else { 200_000 };
    waitword::spin::set_budget(Duration::ZERO);
    let (word, start, done) = (AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0));
    let until = |counter: &AtomicU32, round: u32| {
        for turn in 0.. {
            if counter.load(SeqCst) >= round {
                return;
            }
            // On one CPU the other thread must get it.
            if turn % 1000 == 999 {
                std::thread::yield_now();
            }
        }
    };
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for round in 1..=ROUNDS {
                until(&start, round);
                while word.load(Relaxed) == round - 1 {
                    let _ = Futex::private(&word).wait(round - 1);
                }
                done.store(round, SeqCst);
            }
        });
        for round in 1..=ROUNDS {
            start.store(round, SeqCst);
            for _ in 0..round % 200 {
                std::hint::spin_loop();
            }
            word.store(round, Relaxed);
            Futex::private(&word).wake(1).unwrap();
            until(&done, round);
        }
    });
}

/// WebAssembly/threads #135: a 64-bit wait made of a read of 64 bits and a futex on the low 32
/// misses a change of the high half in between. Here only the high half changes, and each change
/// has one wake.
#[test]
fn wasm_threads_135_wait64_on_the_low_half() {
    let _watchdog = watch();
    const ROUNDS: u64 = 4000;
    const HIGH: u64 = 1 << 32;
    waitword::spin::set_budget(Duration::ZERO);
    for scope in scopes::<AtomicU64>() {
        let (word, seen) = (AtomicU64::new(7), AtomicU64::new(0));
        std::thread::scope(|threads| {
            threads.spawn(|| {
                for round in 0..ROUNDS {
                    let _ = futex(&word, scope).wait(round * HIGH + 7);
                    // A wake for the previous change may have come only now.
                    while word.load(SeqCst) == round * HIGH + 7 {
                        let _ = futex(&word, scope).wait(round * HIGH + 7);
                    }
                    seen.store(round + 1, SeqCst);
                }
            });
            for round in 0..ROUNDS {
                while seen.load(SeqCst) < round {
                    std::thread::yield_now();
                }
                // Hits the waiter on its way to sleep, each time a little later.
                for _ in 0..round % 97 {
                    std::hint::spin_loop();
                }
                word.fetch_add(HIGH, SeqCst);
                futex(&word, scope).wake(1).unwrap();
            }
        });
    }
}

/// Go's double wake-up, OSv #951: a wake and a timeout coincide. The wake is counted if and only if
/// the wait that it ended reports it, and the waker does not touch what the waiter has left.
#[test]
fn osv_951_a_timeout_meets_a_wake() {
    let _watchdog = watch();
    for_every_width!(a_timeout_meets_a_wake());
}

fn a_timeout_meets_a_wake<A: Atomic>() {
    const WAITS: usize = 300;
    waitword::spin::set_budget(Duration::ZERO);
    for scope in scopes::<A>() {
        let (word, other) = (A::default(), A::default());
        let (ended, found, left) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(4));
        std::thread::scope(|threads| {
            for thread in 0..4 {
                let (word, ended, left) = (&word, &ended, &left);
                threads.spawn(move || {
                    for wait in 0..WAITS {
                        let soon = Duration::from_micros((wait * 7 + thread * 13) as u64 % 60);
                        let deadline = Deadline::after(soon);
                        match futex(word, scope).wait_until(A::value(0), deadline) {
                            Ok(()) => drop(ended.fetch_add(1, SeqCst)),
                            Err(error) => {
                                assert_eq!(error, Error::TimedOut);
                                assert!(deadline.has_passed());
                            }
                        }
                    }
                    left.fetch_sub(1, SeqCst);
                });
            }
            while left.load(SeqCst) > 0 {
                let (word, other) = (futex(&word, scope), futex(&other, scope));
                // Narrow shared waiters are woken where others are moved, and already counted here.
                let moved = word.requeue(other, 0, 1).unwrap();
                let on_other = other.wake(1).unwrap();
                let were_woken = scope == Scope::Shared && A::BITS < 32;
                let instead = if were_woken { moved } else { 0 };
                let woken = word.wake(2).unwrap() + on_other + instead;
                found.fetch_add(woken, SeqCst);
            }
            // A waiter that was moved and not found since has timed out there.
        });
        assert_eq!(found.load(SeqCst), ended.load(SeqCst), "{} bits, {scope:?}", A::BITS);
        assert_eq!(futex(&other, scope).wake(usize::MAX), Ok(0));
    }
}
