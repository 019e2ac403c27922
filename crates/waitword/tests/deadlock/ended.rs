//! Holders that have ended, and children of `fork`.

use super::{HEAP_LOCKS, alone, leaked, until_reported};
use std::cell::RefCell;
use std::mem::forget;
use std::sync::Barrier;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;
use waitword::deadlock::check_deadlock;
use waitword::{Mutex, MutexGuard};
use waitword_testkit::{Way, in_child, until_waiting};

#[test]
fn a_thread_that_waits_for_an_ended_thread() {
    alone(|| {
        let mutex = leaked(Mutex::new(()));
        let leaker = thread::Builder::new().name("leaker".to_owned());
        let leaker = leaker.spawn(|| forget(mutex.lock())).unwrap();
        leaker.join().unwrap();
        assert!(check_deadlock().is_empty());
        thread::spawn(|| drop(mutex.lock()));
        let found = until_reported();
        assert_eq!(found.len(), 1);
        assert!(found[0].holder_has_ended());
        assert_eq!(found[0].holder_name(), Some("leaker"));
        assert_eq!(found[0].thread_name(), None);
        let text = found[0].to_string();
        assert!(text.starts_with("unnamed thread ("), "{text}");
        assert!(text.ends_with(" and not unlocked before it ended"), "{text}");
        assert!(check_deadlock().is_empty());
    });
}

#[test]
fn a_guard_that_is_dropped_as_its_thread_ends_is_not_left_behind() {
    thread_local! {
        // First used before the thread's first lock, so dropped after what this crate drops.
        static LAST: RefCell<Option<MutexGuard<'static, ()>>> = const { RefCell::new(None) };
    }
    alone(|| {
        // Otherwise a thread's first lock would be the allocator's.
        HEAP_LOCKS.store(false, SeqCst);
        let mutex = leaked(Mutex::new(()));
        // Several threads, so that a record is reused.
        for _ in 0..3 {
            let keep = || LAST.with(|last| *last.borrow_mut() = Some(mutex.lock()));
            thread::spawn(keep).join().unwrap();
            assert!(!mutex.is_locked());
            thread::scope(|scope| {
                let held = mutex.lock();
                let waiter = scope.spawn(|| drop(mutex.lock()));
                for _ in 0..20 {
                    assert!(check_deadlock().is_empty());
                    thread::sleep(Duration::from_millis(1));
                }
                drop(held);
                waiter.join().unwrap();
            });
        }
    });
}

#[test]
fn a_child_has_no_part_in_its_parent_s_deadlocks() {
    alone(|| {
        let (a, b, c) = (leaked(Mutex::new(())), leaked(Mutex::new(())), leaked(Mutex::new(())));
        let held = c.lock();
        let barrier = leaked(Barrier::new(2));
        for (first, second) in [(a, b), (b, a)] {
            thread::spawn(move || {
                let _first = first.lock();
                barrier.wait();
                let _second = second.lock();
            });
        }
        for mutex in [a, b] {
            // SAFETY: it is not locked or unlocked through this reference.
            until_waiting(unsafe { mutex.raw() }, 1);
        }
        in_child(Way::Fork, || {
            let found = check_deadlock();
            drop(held);
            let twice = [c.try_lock(), c.try_lock()].map(|guard| guard.is_some());
            found.is_empty() && twice == [true, false]
        });
        assert_eq!(until_reported().len(), 2);
    });
}
