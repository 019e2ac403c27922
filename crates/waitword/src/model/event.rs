//! The events and the latch.

use super::*;
use crate::{AutoEvent, Clock, Deadline, Event, Latch};

/// In a model every deadline has passed.
fn deadline() -> Deadline {
    Deadline::at(Clock::Monotonic, core::time::Duration::ZERO)
}

#[test]
fn a_set_releases_all() {
    check(2, || {
        let event = Arc::new(Event::new());
        let waiters = [(); 2].map(|()| {
            let event = event.clone();
            thread::spawn(move || event.wait())
        });
        event.set();
        for waiter in waiters {
            waiter.join().unwrap();
        }
    });
}

/// A reset right after a set does not hold back threads that were already waiting. The second set
/// is for a waiter that came too late.
#[test]
fn set_and_reset_at_once_release_who_waits() {
    check(3, || {
        let event = Arc::new(Event::new());
        let waiter = {
            let event = event.clone();
            thread::spawn(move || event.wait())
        };
        let may_sleep = event.may_have_sleepers();
        event.set();
        event.reset();
        if !may_sleep {
            event.set();
        }
        waiter.join().unwrap();
    });
}

/// A set of an event that is already set, while the consumer resets it and looks for work: the
/// consumer sees the work or the set.
#[test]
fn a_set_that_changes_nothing_is_not_lost() {
    check(3, || {
        let event = Arc::new(Event::with_scope(true, crate::Scope::Private));
        let work = Arc::new(AtomicU32::new(0));
        let producer = {
            let (event, work) = (event.clone(), work.clone());
            thread::spawn(move || {
                work.store(1, Ordering::Relaxed);
                event.set();
            })
        };
        event.reset();
        if work.load(Ordering::Relaxed) == 0 {
            event.wait();
            assert_eq!(work.load(Ordering::Relaxed), 1);
        }
        producer.join().unwrap();
    });
}

#[test]
fn a_set_lets_exactly_one_pass() {
    check(2, || {
        let event = Arc::new(AutoEvent::new());
        let waiters = [(); 2].map(|()| {
            let event = event.clone();
            thread::spawn(move || event.wait_until(deadline()))
        });
        event.set();
        let passed: usize = waiters
            .map(|waiter| usize::from(waiter.join().unwrap()))
            .iter()
            .sum();
        assert_eq!(passed + usize::from(event.is_set()), 1);
    });
}

/// Two sets in a row while one thread waits: the first belongs to the waiter, however late it
/// returns, and the second is kept.
#[test]
fn each_set_lets_one_pass() {
    check(2, || {
        let event = Arc::new(AutoEvent::new());
        let waiter = {
            let event = event.clone();
            thread::spawn(move || event.wait())
        };
        while event.waiters() == 0 {
            thread::yield_now();
        }
        event.set();
        event.set();
        waiter.join().unwrap();
        assert!(event.try_wait());
        assert!(!event.try_wait());
    });
}

/// A waiter that gives up consumes a set that was meant for it, if there is one: no more than one
/// set is left.
#[test]
fn who_gives_up_leaves_no_more_than_one() {
    check(3, || {
        let event = Arc::new(AutoEvent::new());
        let waiter = {
            let event = event.clone();
            thread::spawn(move || event.wait_until(deadline()))
        };
        event.set();
        event.set();
        let passed = waiter.join().unwrap();
        assert!(event.try_wait() || passed);
        assert!(!event.try_wait());
    });
}

#[test]
fn a_set_of_nobody_waiting_is_kept_once() {
    check(3, || {
        let event = Arc::new(AutoEvent::new());
        let other = {
            let event = event.clone();
            thread::spawn(move || event.set())
        };
        event.set();
        other.join().unwrap();
        assert!(event.try_wait());
        assert!(!event.try_wait());
    });
}

/// As for the event: a set that changes nothing, the reset, and the work.
#[test]
fn an_auto_event_loses_no_set_either() {
    check(3, || {
        let event = Arc::new(AutoEvent::with_scope(true, crate::Scope::Private));
        let work = Arc::new(AtomicU32::new(0));
        let producer = {
            let (event, work) = (event.clone(), work.clone());
            thread::spawn(move || {
                work.store(1, Ordering::Relaxed);
                event.set();
            })
        };
        event.wait();
        if work.load(Ordering::Relaxed) == 0 {
            event.wait();
            assert_eq!(work.load(Ordering::Relaxed), 1);
        }
        producer.join().unwrap();
    });
}

#[test]
fn the_last_count_opens_the_latch() {
    check(1, || {
        let latch = Arc::new(Latch::new(2));
        let data = Arc::new([(); 2].map(|()| crate::checker::cell::UnsafeCell::new(0)));
        let other = {
            let (latch, data) = (latch.clone(), data.clone());
            thread::spawn(move || {
                // SAFETY: written before its writer counts down.
                data[0].with_mut(|data| unsafe { *data = 7 });
                latch.count_down(1).unwrap();
            })
        };
        let waiter = {
            let (latch, data) = (latch.clone(), data.clone());
            thread::spawn(move || {
                latch.wait();
                for data in &*data {
                    // SAFETY: all threads have counted down; loom checks that this orders their
                    // writes.
                    assert_eq!(data.with(|data| unsafe { *data }), 7);
                }
            })
        };
        // SAFETY: as above.
        data[1].with_mut(|data| unsafe { *data = 7 });
        latch.arrive_and_wait().unwrap();
        for data in &*data {
            // SAFETY: as above.
            assert_eq!(data.with(|data| unsafe { *data }), 7);
        }
        other.join().unwrap();
        waiter.join().unwrap();
    });
}
