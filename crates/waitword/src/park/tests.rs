use super::*;
use pool::GROUP;
use std::collections::HashSet;

#[test]
fn no_two_users_have_one_parker() {
    let pool = Pool::new(|| ());
    let parkers: Vec<_> = (0..500).map(|_| pool.take(|_| {})).collect();
    let ids: HashSet<_> =
        parkers.iter().map(|parker| format!("{:?}", parker.id().unwrap())).collect();
    assert_eq!(ids.len(), 500);
}

#[test]
fn the_pool_grows_with_the_threads_that_wait_at_once_and_not_with_all_that_ever_did() {
    let pool = Pool::new(|| ());
    for _ in 0..10_000 {
        // Each time a thread that has never waited before.
        std::thread::scope(|scope| scope.spawn(|| drop(pool.take(|_| {}))).join().unwrap());
        if pool.capacity() > GROUP {
            break;
        }
    }
    assert_eq!(pool.capacity(), GROUP);
}

#[test]
fn growth_is_reported_with_the_new_capacity() {
    let pool = Pool::new(|| ());
    let reported = std::cell::RefCell::new(Vec::new());
    let parkers: Vec<_> = (0..GROUP * 4)
        .map(|_| pool.take(|capacity| reported.borrow_mut().push(capacity)))
        .collect();
    assert_eq!(*reported.borrow(), [GROUP, GROUP * 3, GROUP * 7]);
    assert!(pool.mapped_bytes() <= parkers.len() * 140 + 4096 * 3);
}

#[test]
fn a_late_call_does_not_end_the_wait_of_the_next_user() {
    let pool = Pool::new(|| ());
    let (parker, notice) = (pool.take(|_| {}), Notice::new());
    let soon = Deadline::after(core::time::Duration::from_millis(5));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !soon.has_passed() {
                pool.wake_one(parker.id(), Sleeps::InGroup);
                pool.wake_one(parker.id(), Sleeps::Alone);
            }
        });
        assert_eq!(parker.park(&notice, Some(&soon)), Err(Ended::TimedOut));
        assert!(soon.has_passed());
    });
}

#[test]
fn the_giver_learns_whether_a_call_is_needed() {
    let given_after = |sleeps| {
        let notice = Notice::new();
        assert!(notice.announce(sleeps));
        let answer = notice.give();
        assert!(notice.any_given() && !notice.announce(sleeps));
        answer
    };
    for sleeps in [Sleeps::Not, Sleeps::InGroup, Sleeps::Alone] {
        assert_eq!(given_after(sleeps), sleeps);
    }
}

#[test]
fn without_a_parker_a_wait_polls() {
    let parker = Parker { place: None };
    let notice = Notice::new();
    let soon = Deadline::after(core::time::Duration::from_millis(1));
    assert_eq!(parker.park(&notice, Some(&soon)), Err(Ended::TimedOut));
    std::thread::scope(|scope| {
        scope.spawn(|| parker.park_uninterrupted(&notice));
        assert_eq!(notice.give(), Sleeps::Not);
    });
}

#[test]
fn one_batch_reaches_sleepers_of_many_groups() {
    const SLEEPERS: usize = GROUP * 20;
    let pool = Pool::new(|| ());
    let notices: Vec<_> = (0..SLEEPERS).map(|_| Notice::new()).collect();
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        for notice in &notices {
            let (pool, send) = (&pool, send.clone());
            scope.spawn(move || {
                let parker = pool.take(|_| {});
                send.send((notice, parker.id())).unwrap();
                parker.park_uninterrupted(notice);
            });
        }
        let sleepers: Vec<_> = receive.iter().take(SLEEPERS).collect();
        let mut calls = WakeCalls::new(&pool);
        for (notice, id) in sleepers {
            calls.add(id, notice.give());
        }
    });
}

/// A group's count of calls wraps around while all its parkers sleep, past a value that must not be
/// zero (`batch.rs`). This must work however they are woken: one by one, or two whole groups by one
/// call.
#[test]
fn sleepers_are_woken_while_calls_pass_their_end() {
    const GROUPS: usize = 3;
    const SLEEPERS: usize = GROUP * GROUPS;
    let pool = Pool::new(|| ());
    let all: Vec<_> = (0..SLEEPERS).map(|_| pool.take(|_| {})).collect();
    drop(all);
    for singly in [0, 1, 5] {
        for group in 0..GROUPS {
            // Odd, as `begin` makes it, and two calls before the wrap.
            pool.group(group).calls.store(u32::MAX - 4, Ordering::Relaxed);
        }
        let notices: Vec<_> = (0..SLEEPERS).map(|_| Notice::new()).collect();
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            for notice in &notices {
                let (pool, send) = (&pool, send.clone());
                scope.spawn(move || {
                    let parker = pool.take(|_| {});
                    send.send((notice, parker.id().unwrap())).unwrap();
                    parker.park_uninterrupted(notice);
                });
            }
            let sleepers: Vec<_> = receive.iter().take(SLEEPERS).collect();
            std::thread::sleep(core::time::Duration::from_millis(20));
            let mut calls = WakeCalls::new(&pool);
            for (n, (notice, id)) in sleepers.into_iter().enumerate() {
                if n < singly * GROUPS {
                    pool.wake_one(Some(id), notice.give());
                } else {
                    calls.add(Some(id), notice.give());
                }
            }
        });
        for group in 0..GROUPS {
            let calls = pool.group(group).calls.load(Ordering::Relaxed);
            assert_eq!(calls % 2, 1, "{calls}");
        }
    }
}
