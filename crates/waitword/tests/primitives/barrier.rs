//! The barrier by itself.

use crate::{SCOPES, answer, entries, soon};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use waitword::{Barrier, CountError, Scope};
use waitword_testkit::{Crew, watch};

#[test]
fn counts_that_cannot_be() {
    for scope in SCOPES {
        for count in [0, Barrier::MAX_COUNT + 1, u32::MAX] {
            let refused = Barrier::try_with_scope(count, scope);
            assert_eq!(refused.map(drop), Err(CountError::Invalid));
        }
        let alone = Barrier::with_scope(1, scope);
        assert_eq!(alone.count(), 1);
        for _ in 0..3 {
            assert!(alone.wait().is_leader());
        }
        assert!(alone.destroy());
        assert!(Barrier::try_with_scope(Barrier::MAX_COUNT, scope).is_ok());
    }
}

/// Rounds that follow each other at once. In each, no thread passes before all have come, and one
/// leads.
fn rounds(scope: Scope, count: u32, rounds: u32) {
    let barrier = Barrier::with_scope(count, scope);
    let (came, led) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|threads| {
        for _ in 0..count {
            threads.spawn(|| {
                for round in 1..=rounds {
                    came.fetch_add(1, SeqCst);
                    let result = barrier.wait();
                    assert!(came.load(SeqCst) >= round * count, "passed too early");
                    led.fetch_add(result.is_leader().into(), SeqCst);
                }
            });
        }
    });
    assert_eq!(led.load(SeqCst), rounds);
    assert!(barrier.destroy());
}

#[test]
fn many_rounds_of_some_and_some_of_many() {
    let _watchdog = watch();
    for scope in SCOPES {
        rounds(scope, 2, 3000);
        rounds(scope, 3, 1000);
        rounds(scope, 17, 200);
        rounds(scope, 64, 50);
    }
}

/// More threads than the barrier is for: always its number of threads pass together, and one of
/// them leads. Rounds follow each other at once: a thread that is just waking up from one must not
/// fall asleep in the next.
fn more_threads(scope: Scope, count: u32, threads: usize, rounds: usize) {
    let barrier = Barrier::with_scope(count, scope);
    let (passed, led) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while led.load(SeqCst) < rounds {
                    // In the end there may be too few left.
                    if let Some(result) = barrier.wait_for(Duration::from_millis(20)) {
                        passed.fetch_add(1, SeqCst);
                        led.fetch_add(result.is_leader().into(), SeqCst);
                    }
                }
            });
        }
    });
    assert_eq!(passed.load(SeqCst), count as usize * led.load(SeqCst));
    assert!(barrier.destroy());
}

#[test]
fn more_threads_than_it_is_for() {
    let _watchdog = watch();
    for scope in SCOPES {
        more_threads(scope, 3, 7, 800);
        (0..50).for_each(|_| more_threads(scope, 2, 4, 40));
    }
}

#[test]
fn a_timeout_takes_the_arrival_back() {
    let mut crew = Crew::new(1);
    for scope in SCOPES {
        let barrier = Arc::new(Barrier::with_scope(2, scope));
        let deadline = soon();
        assert_eq!(barrier.wait_until(deadline), None);
        assert!(deadline.has_passed(), "woken early");
        assert_eq!(barrier.wait_for(Duration::ZERO), None);
        assert!(barrier.destroy(), "no thread has arrived");
        let other = barrier.clone();
        crew.order(0, entries(scope), move || answer(other.wait().is_leader()));
        assert_eq!(crew.settle(), []);
        assert!(!barrier.destroy(), "a thread waits");
        assert!(barrier.wait().is_leader());
        assert_eq!(crew.settle_with(0), [(0, Ok(0))]);
    }
}

/// Impatient threads come and go. A thread that passes does so together with another.
#[test]
fn impatient_crowd() {
    let _watchdog = watch();
    for scope in SCOPES {
        let barrier = Barrier::with_scope(2, scope);
        let (led, followed) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|threads| {
            for thread in 0..6 {
                let (barrier, led, followed) = (&barrier, &led, &followed);
                threads.spawn(move || {
                    for turn in 0..1500 {
                        let patience = Duration::from_micros((turn * 7 + thread) % 50);
                        match barrier.wait_for(patience) {
                            Some(result) if result.is_leader() => led.fetch_add(1, SeqCst),
                            Some(_) => followed.fetch_add(1, SeqCst),
                            None => 0,
                        };
                    }
                });
            }
        });
        assert_eq!(led.load(SeqCst), followed.load(SeqCst));
        assert!(barrier.destroy());
    }
}
