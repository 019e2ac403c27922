//! Parkers of one group, on one kernel word.

use super::*;
use crate::park::{Pool, WakeCalls};

#[test]
fn parkers_of_one_group_are_woken_in_a_batch() {
    check(3, || {
        let pool = Arc::new(Pool::new());
        let notified = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let (ids, sleepers): (Vec<_>, Vec<_>) = (0..2)
            .map(|index| {
                let (pool, notified) = (pool.clone(), notified.clone());
                let parker = pool.take(|_| {});
                let id = parker.id().unwrap();
                core::mem::forget(parker);
                let sleeper = thread::spawn(move || {
                    let parker = pool.adopt(id);
                    parker.park_uninterrupted(|| notified[index].load(Ordering::Acquire) == 1);
                });
                (id, sleeper)
            })
            .unzip();
        let mut calls = WakeCalls::new(&pool);
        for (index, id) in ids.into_iter().enumerate() {
            notified[index].store(1, Ordering::Release);
            calls.add(Some(id));
        }
        drop(calls);
        sleepers
            .into_iter()
            .for_each(|sleeper| sleeper.join().unwrap());
    });
}

/// A token that is already there must not keep a waker from leaving its own: the sleeper would take the old
/// one without seeing why the waker came.
#[test]
fn a_late_unpark_is_harmless_to_the_next_user() {
    check(3, || {
        let pool = Arc::new(Pool::new());
        let notified = Arc::new(AtomicU32::new(0));
        let id = pool.take(|_| {}).id().unwrap();
        let late = {
            let pool = pool.clone();
            // Meant for the wait that ended above.
            thread::spawn(move || WakeCalls::new(&pool).add(Some(id)))
        };
        let parker = pool.take_this(id).unwrap();
        let waker = {
            let (pool, notified) = (pool.clone(), notified.clone());
            thread::spawn(move || {
                notified.store(1, Ordering::Release);
                WakeCalls::new(&pool).add(Some(id));
            })
        };
        parker.park_uninterrupted(|| notified.load(Ordering::Acquire) == 1);
        late.join().unwrap();
        waker.join().unwrap();
    });
}
