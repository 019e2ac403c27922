//! Events and latches by themselves.

use crate::{SCOPES, answer, entries, far, soon};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use waitword::{AutoEvent, CountError, Event, Latch, Scope};
use waitword_testkit::{Crew, watch};

#[test]
fn an_event_stays_set() {
    let _watchdog = watch();
    for scope in SCOPES {
        let event = Event::with_scope(false, scope);
        assert!(!event.is_set());
        assert!(!event.wait_until(soon()));
        event.set();
        event.set();
        assert!(event.is_set());
        event.wait();
        assert!(event.wait_until(soon()));
        assert!(event.wait_for(Duration::ZERO));
        event.reset();
        event.reset();
        assert!(!event.wait_for(Duration::ZERO));
        assert!(Event::with_scope(true, scope).is_set());
    }
}

/// The "pulse" of manual-reset events (Windows' `PulseEvent`, and `SetEvent` then `ResetEvent` in
/// emulations by a bit and a condition variable): a thread that was just waking up found the event
/// reset.
#[test]
fn a_set_releases_all_though_a_reset_follows_at_once() {
    let mut crew = Crew::new(5);
    for scope in SCOPES {
        let event = Arc::new(Event::with_scope(false, scope));
        for _ in 0..50 {
            crew.order_each(0..5, entries(scope), &event, move |event| {
                answer(event.wait_until(far()))
            });
            assert_eq!(crew.settle(), []);
            event.set();
            event.reset();
            let back: Vec<_> = (0..5).map(|worker| (worker, Ok(1))).collect();
            assert_eq!(crew.settle(), back);
            assert!(!event.is_set());
        }
    }
}

#[test]
fn an_auto_event_lets_one_pass_a_set() {
    let mut crew = Crew::new(4);
    for scope in SCOPES {
        let event = Arc::new(AutoEvent::with_scope(false, scope));
        assert!(!event.try_wait());
        assert!(!event.wait_until(soon()));
        // No thread waits: set stays set.
        event.set();
        event.set();
        assert!(event.is_set());
        event.wait();
        assert!(!event.wait_for(Duration::ZERO));
        event.set();
        event.reset();
        assert!(!event.try_wait());
        // Four threads wait.
        crew.line_up(0..4, entries(scope), &event, move |event| answer(event.wait_until(far())));
        event.set();
        assert_eq!(crew.settle(), [(0, Ok(1))]);
        // Three sets in a row release three threads, not one, and a reset does not hold them back.
        event.set();
        event.set();
        event.reset();
        event.set();
        assert_eq!(crew.settle(), [(1, Ok(1)), (2, Ok(1)), (3, Ok(1))]);
        assert!(!event.is_set());
    }
}

/// As many passes as sets that were made while a thread waited for each.
#[test]
fn an_auto_event_in_a_crowd() {
    let _watchdog = watch();
    const THREADS: usize = 6;
    const EACH: usize = 500;
    for scope in SCOPES {
        let event = AutoEvent::with_scope(false, scope);
        let passed = AtomicUsize::new(0);
        std::thread::scope(|threads| {
            for _ in 0..THREADS {
                threads.spawn(|| {
                    for _ in 0..EACH {
                        event.wait();
                        passed.fetch_add(1, SeqCst);
                    }
                });
            }
            for set in 1..=THREADS * EACH {
                event.set();
                // Exactly one pass per set.
                while passed.load(SeqCst) < set {
                    std::thread::yield_now();
                }
                assert_eq!(passed.load(SeqCst), set);
            }
        });
        assert!(!event.is_set());
    }
}

/// Sets announce work, and may coincide. No work is forgotten.
#[test]
fn no_work_is_forgotten() {
    let _watchdog = watch();
    const WORK: usize = 20_000;
    for scope in SCOPES {
        let (auto, manual) = (AutoEvent::with_scope(false, scope), Event::with_scope(false, scope));
        let (to_do, to_do_manual) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|threads| {
            threads.spawn(|| {
                let mut done = 0;
                while done < WORK {
                    auto.wait();
                    done += to_do.swap(0, SeqCst);
                }
            });
            threads.spawn(|| {
                let mut done = 0;
                while done < WORK {
                    manual.wait();
                    manual.reset();
                    done += to_do_manual.swap(0, SeqCst);
                }
            });
            for _ in 0..WORK {
                to_do.fetch_add(1, SeqCst);
                auto.set();
                to_do_manual.fetch_add(1, SeqCst);
                manual.set();
            }
        });
    }
}

#[test]
fn a_latch_opens_once() {
    let mut crew = Crew::new(3);
    for scope in SCOPES {
        let latch = Arc::new(Latch::with_scope(5, scope));
        crew.order_each(0..2, entries(scope), &latch, move |latch| answer(latch.wait_until(far())));
        let arriving = latch.clone();
        crew.order(2, entries(scope), move || answer(arriving.arrive_and_wait().is_ok()));
        assert_eq!(crew.settle(), []);
        assert_eq!(latch.count_down(5), Err(CountError::Underflow));
        assert_eq!(latch.count_down(u32::MAX), Err(CountError::Underflow));
        latch.count_down(3).unwrap();
        assert!(!latch.try_wait());
        assert!(!latch.wait_until(soon()));
        assert!(!latch.wait_for(Duration::ZERO));
        assert_eq!(crew.settle(), []);
        latch.count_down(1).unwrap();
        assert_eq!(crew.settle(), [(0, Ok(1)), (1, Ok(1)), (2, Ok(1))]);
        assert!(latch.try_wait());
        latch.wait();
        latch.count_down(0).unwrap();
        assert_eq!(latch.count_down(1), Err(CountError::Underflow));
        assert_eq!(latch.arrive_and_wait(), Err(CountError::Underflow));
        assert!(Latch::with_scope(0, scope).try_wait());
        let refused = Latch::try_with_scope(Latch::MAX_COUNT + 1, scope);
        assert_eq!(refused.map(drop), Err(CountError::Invalid));
    }
}

#[test]
fn latches_in_a_crowd() {
    let _watchdog = watch();
    for scope in SCOPES {
        for _ in 0..100 {
            crowd_at_a_latch(scope);
        }
    }
}

fn crowd_at_a_latch(scope: Scope) {
    let latch = Latch::with_scope(9, scope);
    let counted = AtomicUsize::new(0);
    std::thread::scope(|threads| {
        for thread in 0..8 {
            let (latch, counted) = (&latch, &counted);
            threads.spawn(move || {
                counted.fetch_add(1, SeqCst);
                match thread % 2 {
                    0 => latch.arrive_and_wait().unwrap(),
                    _ => {
                        latch.count_down(1).unwrap();
                        latch.wait();
                    }
                }
                assert_eq!(counted.load(SeqCst), 9);
            });
        }
        counted.fetch_add(1, SeqCst);
        latch.arrive_and_wait().unwrap();
    });
}
