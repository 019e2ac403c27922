//! The events and the latch.

use super::*;
use crate::checker::cell::UnsafeCell;
use crate::{AutoEvent, Event, Latch, Scope};

#[test]
fn a_set_releases_all() {
    check(2, || {
        let event = Arc::new(Event::new());
        let waiters = [(); 2].map(|()| spawn(&event, Event::wait));
        event.set();
        join(waiters);
    });
}

/// A reset right after a set does not hold back threads that were already waiting. The second set
/// is for a waiter that came too late.
#[test]
fn a_set_and_a_reset_at_once_release_a_waiter() {
    check(3, || {
        let event = Arc::new(Event::new());
        let waiter = spawn(&event, Event::wait);
        let may_sleep = event.may_have_sleepers();
        event.set();
        event.reset();
        if !may_sleep {
            event.set();
        }
        join([waiter]);
    });
}

/// A producer publishes work and sets the event, which is set already, while the consumer looks for
/// work as `consume` does: it sees the work or the set.
fn no_set_is_lost<E: 'static>(event: fn() -> E, set: fn(&E), consume: fn(&E, &dyn Fn() -> bool)) {
    check(3, move || {
        let shared = Arc::new((event(), AtomicU32::new(0)));
        let producer = spawn(&shared, move |(event, work)| {
            work.store(1, Ordering::Relaxed);
            set(event);
        });
        let (event, work) = &*shared;
        consume(event, &|| work.load(Ordering::Relaxed) == 1);
        join([producer]);
    });
}

#[test]
fn a_set_that_changes_nothing_is_not_lost() {
    let event = || Event::with_scope(true, Scope::Private);
    no_set_is_lost(event, Event::set, |event, has_work| {
        event.reset();
        if !has_work() {
            event.wait();
            assert!(has_work());
        }
    });
}

#[test]
fn an_auto_event_loses_no_set_either() {
    let event = || AutoEvent::with_scope(true, Scope::Private);
    no_set_is_lost(event, AutoEvent::set, |event, has_work| {
        event.wait();
        if !has_work() {
            event.wait();
            assert!(has_work());
        }
    });
}

fn wait_briefly(event: &AutoEvent) -> bool {
    event.wait_until(passed())
}

/// Exactly one further thread can pass.
fn is_set_once(event: &AutoEvent) {
    assert!(event.try_wait());
    assert!(!event.try_wait());
}

#[test]
fn a_set_lets_exactly_one_pass() {
    check(2, || {
        let event = Arc::new(AutoEvent::new());
        let waiters = [(); 2].map(|()| spawn(&event, wait_briefly));
        event.set();
        let passed: usize = join(waiters).into_iter().map(usize::from).sum();
        assert_eq!(passed + usize::from(event.is_set()), 1);
    });
}

/// Two sets in a row while one thread waits: the first belongs to the waiter, however late it
/// returns, and the second is kept.
#[test]
fn each_set_lets_one_pass() {
    check(2, || {
        let event = Arc::new(AutoEvent::new());
        let waiter = spawn(&event, AutoEvent::wait);
        while event.waiters() == 0 {
            thread::yield_now();
        }
        event.set();
        event.set();
        join([waiter]);
        is_set_once(&event);
    });
}

/// A waiter that gives up consumes a set that was meant for it, if there is one: no more than one
/// set is left.
#[test]
fn a_waiter_that_gives_up_leaves_no_more_than_one_set() {
    check(3, || {
        let event = Arc::new(AutoEvent::new());
        let waiter = spawn(&event, wait_briefly);
        event.set();
        event.set();
        let passed = join([waiter])[0];
        assert!(event.try_wait() || passed);
        assert!(!event.try_wait());
    });
}

#[test]
fn a_set_without_a_waiter_is_kept_once() {
    check(3, || {
        let event = Arc::new(AutoEvent::new());
        let other = spawn(&event, AutoEvent::set);
        event.set();
        join([other]);
        is_set_once(&event);
    });
}

#[test]
fn the_last_count_opens_the_latch() {
    type Shared = (Latch, [UnsafeCell<u32>; 2]);
    check(1, || {
        let shared: Arc<Shared> = Arc::new((Latch::new(2), [(); 2].map(|()| UnsafeCell::new(0))));
        // SAFETY: written by one thread, before it counts down.
        let write = |(_, data): &Shared, which: usize| {
            data[which].with_mut(|data| unsafe { *data = 7 });
        };
        let sees_all = |(_, data): &Shared| {
            for data in data {
                // SAFETY: all threads have counted down; loom checks that this orders their writes.
                assert_eq!(data.with(|data| unsafe { *data }), 7);
            }
        };
        let other = spawn(&shared, move |shared| {
            write(shared, 0);
            shared.0.count_down(1).unwrap();
        });
        let waiter = spawn(&shared, move |shared| {
            shared.0.wait();
            sees_all(shared);
        });
        write(&shared, 1);
        shared.0.arrive_and_wait().unwrap();
        sees_all(&shared);
        join([other, waiter]);
    });
}
