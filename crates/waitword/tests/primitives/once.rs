//! Once by itself.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use waitword::{Once, OnceState};
use waitword_testkit::{Crew, watch};

/// Whether the call was left by unwinding.
fn unwinds(call: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(call)).is_err()
}

/// A panic without a message.
fn fail() {
    resume_unwind(Box::new(()));
}

#[test]
fn runs_once() {
    let (once, times) = (Once::new(), AtomicUsize::new(0));
    assert_eq!(once.state(), OnceState::New);
    for _ in 0..3 {
        once.call_once(|| {
            assert_eq!(once.state(), OnceState::InProgress);
            times.fetch_add(1, SeqCst);
        });
        once.call_once_force(|_| unreachable!());
        once.execute(|| unreachable!());
    }
    assert_eq!(times.load(SeqCst), 1);
    assert!(once.state().done());
}

/// Like `parking_lot::Once`.
#[test]
fn a_panic_poisons() {
    let once = Once::new();
    assert!(unwinds(|| once.call_once(fail)));
    assert!(once.state().poisoned());
    assert!(unwinds(|| once.call_once(|| unreachable!())));
    assert!(unwinds(|| once.call_once_force(|found| {
        assert!(found.poisoned());
        fail();
    })));
    assert!(once.state().poisoned());
    let mut ran = false;
    once.call_once_force(|found| ran = found.poisoned());
    assert!(ran);
    once.call_once(|| unreachable!());
    assert_eq!(once.state(), OnceState::Done);
}

/// Like `pthread_once`.
#[test]
fn an_execution_that_unwinds_has_not_begun() {
    let once = Once::new();
    assert!(unwinds(|| once.execute(fail)));
    assert_eq!(once.state(), OnceState::New);
    let mut ran = false;
    once.execute(|| ran = true);
    assert!(ran && once.state().done());
}

#[test]
fn all_wait_for_the_one() {
    let _watchdog = watch();
    for round in 0..200 {
        let (once, times, done) = (Once::new(), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|threads| {
            for _ in 0..8 {
                threads.spawn(|| {
                    once.call_once(|| {
                        times.fetch_add(1, SeqCst);
                        // Long enough for the other threads to sleep, sometimes.
                        if round % 20 == 0 {
                            std::thread::sleep(Duration::from_millis(2));
                        }
                        done.store(1, SeqCst);
                    });
                    assert_eq!(done.load(SeqCst), 1);
                });
            }
        });
        assert_eq!(times.load(SeqCst), 1);
    }
}

/// Each waiter tries in its turn.
#[test]
fn a_waiter_takes_over_from_a_run_that_unwinds() {
    let _watchdog = watch();
    for force in [false, true] {
        for _ in 0..50 {
            let (once, attempts) = (Once::new(), AtomicUsize::new(0));
            let attempt = || {
                let nth = attempts.fetch_add(1, SeqCst);
                std::thread::yield_now();
                if nth < 3 {
                    fail();
                }
            };
            std::thread::scope(|threads| {
                for _ in 0..6 {
                    threads.spawn(|| {
                        unwinds(|| match force {
                            true => once.call_once_force(|_| attempt()),
                            false => once.execute(attempt),
                        })
                    });
                }
            });
            assert_eq!(attempts.load(SeqCst), 4);
            assert!(once.state().done());
        }
    }
}

/// A thread that only waits may come before the thread that does it. Then it is the only sleeper.
#[test]
fn a_thread_that_only_waits_returns_when_it_has_been_done() {
    let mut crew = Crew::new(2);
    let ways: [fn(&Once); 2] = [|once| once.call_once(|| ()), |once| once.execute(|| ())];
    for does in ways {
        let once = Arc::new(Once::new());
        for (worker, wait) in [Once::wait, Once::wait_force].into_iter().enumerate() {
            let waits = once.clone();
            crew.order(worker, 1, move || {
                wait(&waits);
                Ok(0)
            });
            assert_eq!(crew.settle(), []);
            if worker == 0 {
                // Begun and left: it continues to wait.
                assert!(unwinds(|| once.execute(fail)));
                assert_eq!(crew.settle(), []);
                assert_eq!(once.state(), OnceState::New);
            }
        }
        does(&once);
        let mut answers = crew.settle();
        while answers.len() < 2 {
            answers.extend(crew.settle());
        }
        once.wait();
        once.wait_force();
    }
}

/// Like std.
#[test]
fn a_wait_for_what_is_poisoned_panics_unless_it_is_forced() {
    let mut crew = Crew::new(2);
    let once = Arc::new(Once::new());
    let [waits, waits_on] = [(); 2].map(|()| once.clone());
    crew.order(0, 1, move || Ok(unwinds(|| waits.wait()).into()));
    assert_eq!(crew.settle(), []);
    crew.order(1, 1, move || {
        waits_on.wait_force();
        Ok(0)
    });
    assert_eq!(crew.settle(), []);
    assert!(unwinds(|| once.call_once(fail)));
    assert_eq!(crew.settle_with(0), [(0, Ok(1))]);
    assert!(unwinds(|| once.wait()) && once.state().poisoned());
    once.call_once_force(|_| ());
    assert_eq!(crew.settle_with(1), [(1, Ok(0))]);
}
