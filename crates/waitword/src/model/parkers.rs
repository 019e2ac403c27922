//! Parkers of one group, on one kernel word.

use super::*;
use crate::park::{Notice, Pool, WakeCalls};

/// A thread that sleeps until its notice is given, with a parker that other threads know.
fn spawn_sleeper(
    pool: &Arc<Pool>,
    notice: &Arc<Notice>,
) -> (crate::park::ParkerId, thread::JoinHandle<()>) {
    let (pool, notice) = (pool.clone(), notice.clone());
    let parker = pool.take(|_| {});
    let id = parker.id().unwrap();
    // The parker's place stays taken; the thread adopts it.
    core::mem::forget(parker);
    let sleeper = thread::spawn(move || pool.adopt(id).park_uninterrupted(&*notice));
    (id, sleeper)
}

#[test]
fn parkers_of_one_group_are_woken_in_a_batch() {
    check(3, || {
        let pool = Arc::new(Pool::new(|| ()));
        let notices = [(); 2].map(|()| Arc::new(Notice::new()));
        let sleepers = [0, 1].map(|index| spawn_sleeper(&pool, &notices[index]));
        let mut calls = WakeCalls::new(&pool);
        for ((id, _), notice) in sleepers.iter().zip(&notices) {
            calls.add(Some(*id), notice.give());
        }
        drop(calls);
        for (_, sleeper) in sleepers {
            sleeper.join().unwrap();
        }
    });
}

#[test]
fn two_wakers_of_one_group_do_not_disturb_each_other() {
    check(2, || {
        let pool = Arc::new(Pool::new(|| ()));
        let notices = [(); 2].map(|()| Arc::new(Notice::new()));
        let [(first, one), (second, other)] =
            [0, 1].map(|index| spawn_sleeper(&pool, &notices[index]));
        let waker = {
            let (pool, notice) = (pool.clone(), notices[0].clone());
            thread::spawn(move || pool.wake_one(Some(first), notice.give()))
        };
        pool.wake_one(Some(second), notices[1].give());
        for thread in [one, other, waker] {
            thread.join().unwrap();
        }
    });
}

#[test]
fn a_late_call_is_harmless_to_the_next_user() {
    check(3, || {
        let pool = Arc::new(Pool::new(|| ()));
        let notice = Arc::new(Notice::new());
        let (id, sleeper) = spawn_sleeper(&pool, &notice);
        let late = {
            let pool = pool.clone();
            // Meant for an earlier wait, whose waiter is gone.
            thread::spawn(move || pool.wake_one(Some(id), crate::park::Sleeps::InGroup))
        };
        pool.wake_one(Some(id), notice.give());
        late.join().unwrap();
        sleeper.join().unwrap();
    });
}
