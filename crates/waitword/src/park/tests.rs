use super::*;
use pool::GROUP;
use std::collections::HashSet;

#[test]
fn no_two_users_have_one_parker() {
    let pool = Pool::new();
    let parkers: Vec<_> = (0..500).map(|_| pool.take(|_| {})).collect();
    let ids: HashSet<_> = parkers
        .iter()
        .map(|parker| format!("{:?}", parker.id().unwrap()))
        .collect();
    assert_eq!(ids.len(), 500);
}

#[test]
fn the_pool_grows_with_those_who_wait_at_once_and_not_with_those_who_ever_did() {
    let pool = Pool::new();
    for _ in 0..10_000 {
        // A thread that never waited before, each time.
        std::thread::scope(|scope| scope.spawn(|| drop(pool.take(|_| {}))).join().unwrap());
        if pool.capacity() > GROUP {
            break;
        }
    }
    assert_eq!(pool.capacity(), GROUP);
}

#[test]
fn growth_is_reported_with_the_new_capacity() {
    let pool = Pool::new();
    let reported = std::cell::RefCell::new(Vec::new());
    let parkers: Vec<_> = (0..GROUP * 4)
        .map(|_| pool.take(|capacity| reported.borrow_mut().push(capacity)))
        .collect();
    assert_eq!(*reported.borrow(), [GROUP, GROUP * 3, GROUP * 7]);
    assert!(pool.mapped_bytes() <= parkers.len() * 140 + 4096 * 3);
}

#[test]
fn a_token_for_an_earlier_user_does_not_end_the_wait_of_the_next() {
    let pool = Pool::new();
    let parker = pool.take(|_| {});
    WakeCalls::new(&pool).add(parker.id());
    let soon = Deadline::after(core::time::Duration::from_millis(5));
    assert_eq!(parker.park(|| false, Some(&soon)), Err(Ended::TimedOut));
    assert!(soon.has_passed());
}

#[test]
fn without_a_parker_a_wait_polls() {
    let pool = Pool::new();
    let parker = Parker {
        pool: &pool,
        place: None,
    };
    let looks = core::cell::Cell::new(0);
    let third_time = || {
        looks.set(looks.get() + 1);
        looks.get() == 3
    };
    assert_eq!(parker.park(third_time, None), Ok(()));
    let soon = Deadline::after(core::time::Duration::from_millis(1));
    assert_eq!(parker.park(|| false, Some(&soon)), Err(Ended::TimedOut));
}

#[test]
fn one_batch_reaches_sleepers_of_many_groups() {
    use std::sync::atomic::AtomicBool;
    // Leaked: the pool's memory is never unmapped, so its address may as well stay.
    let pool: &'static Pool = Box::leak(Box::new(Pool::new()));
    const SLEEPERS: usize = GROUP * 20;
    let notified: &'static Vec<AtomicBool> = Box::leak(Box::new(
        (0..SLEEPERS).map(|_| AtomicBool::new(false)).collect(),
    ));
    let (send, receive) = std::sync::mpsc::channel();
    let sleepers: Vec<_> = (0..SLEEPERS)
        .map(|index| {
            let send = send.clone();
            std::thread::spawn(move || {
                let parker = pool.take(|_| {});
                send.send((index, parker.id().unwrap())).unwrap();
                parker.park_uninterrupted(|| notified[index].load(Ordering::Acquire));
            })
        })
        .collect();
    let ids: Vec<_> = (0..SLEEPERS).map(|_| receive.recv().unwrap()).collect();
    let mut calls = WakeCalls::new(pool);
    for (index, id) in ids {
        notified[index].store(true, Ordering::Release);
        calls.add(Some(id));
    }
    drop(calls);
    for sleeper in sleepers {
        sleeper.join().unwrap();
    }
}
