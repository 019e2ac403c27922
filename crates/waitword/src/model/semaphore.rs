//! The semaphore: no thread sleeps while a token is available, and no token appears without a post.

use super::*;
use crate::Semaphore;
use crate::checker::cell::UnsafeCell;

fn semaphore(value: u32) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(value))
}

fn waiter(semaphore: &Arc<Semaphore>) -> thread::JoinHandle<()> {
    spawn(semaphore, Semaphore::wait)
}

#[test]
fn a_post_reaches_the_waiter_with_what_was_done_before() {
    check(3, || {
        let shared = Arc::new((Semaphore::new(0), UnsafeCell::new(0)));
        let waiter = spawn(&shared, |(semaphore, data)| {
            semaphore.wait();
            // SAFETY: the post orders the write before this; loom checks exactly that.
            assert_eq!(data.with(|data| unsafe { *data }), 7);
        });
        let (semaphore, data) = &*shared;
        // SAFETY: written once, before the post.
        data.with_mut(|data| unsafe { *data = 7 });
        semaphore.post().unwrap();
        join([waiter]);
        assert_eq!(semaphore.value(), 0);
    });
}

/// GCC 98033, llvm #46357, #77659, #79265: the second post finds the first post's token still
/// unconsumed.
#[test]
fn two_posts_wake_two_sleepers() {
    check(2, || {
        let semaphore = semaphore(0);
        let waiters = [(); 2].map(|()| waiter(&semaphore));
        semaphore.post().unwrap();
        semaphore.post().unwrap();
        join(waiters);
        assert_eq!(semaphore.value(), 0);
    });
}

#[test]
fn one_post_of_two_wakes_two_sleepers() {
    check(2, || {
        let semaphore = semaphore(0);
        let waiters = [(); 2].map(|()| waiter(&semaphore));
        semaphore.post_many(2).unwrap();
        join(waiters);
        assert_eq!(semaphore.value(), 0);
    });
}

/// A wake-up meant for a waiter that gives up is not lost to the other waiter.
#[test]
fn a_timeout_takes_no_wake_up_with_it() {
    check(2, || {
        let semaphore = semaphore(0);
        let patient = waiter(&semaphore);
        let impatient = spawn(&semaphore, |semaphore| semaphore.wait_until(passed()));
        semaphore.post().unwrap();
        if impatient.join().unwrap() {
            semaphore.post().unwrap();
        }
        join([patient]);
        assert_eq!(semaphore.value(), 0);
    });
}

/// The semaphore as a mutex: each wait is followed by a post.
#[test]
fn two_threads_take_turns() {
    check(2, || {
        let shared = Arc::new((Semaphore::new(1), UnsafeCell::new(0)));
        let take_turn = |(semaphore, data): &(Semaphore, UnsafeCell<i32>)| {
            semaphore.wait();
            // SAFETY: the semaphore admits one thread at a time; loom checks it.
            data.with_mut(|data| unsafe { *data += 1 });
            semaphore.post().unwrap();
        };
        let other = spawn(&shared, take_turn);
        take_turn(&shared);
        let (semaphore, data) = &*shared;
        join([other]);
        // SAFETY: the other thread has ended.
        assert_eq!(data.with(|data| unsafe { *data }), 2);
        assert_eq!(semaphore.value(), 1);
    });
}

#[test]
fn a_thread_that_wants_two_is_woken_by_the_second_post() {
    check(3, || {
        let semaphore = semaphore(0);
        let taker = spawn(&semaphore, |semaphore| assert!(semaphore.wait_many(2, None)));
        semaphore.post().unwrap();
        semaphore.post().unwrap();
        join([taker]);
        assert_eq!(semaphore.value(), 0);
    });
}

/// A waiter that cannot use what was posted consumes no wake-up, neither when it keeps waiting nor
/// when it gives up.
#[test]
fn a_thread_that_wants_two_takes_no_wake_up_from_one_that_wants_one() {
    for gives_up in [false, true] {
        check(2, move || {
            let semaphore = semaphore(0);
            let deadline = gives_up.then(passed);
            let taker =
                spawn(&semaphore, move |semaphore| semaphore.wait_many(2, deadline.as_ref()));
            let waiter = waiter(&semaphore);
            semaphore.post().unwrap();
            join([waiter]);
            if !gives_up {
                semaphore.post_many(2).unwrap();
            }
            assert_eq!(taker.join().unwrap(), !gives_up);
            assert_eq!(semaphore.value(), 0);
        });
    }
}

/// Each thread takes both tokens or none, so neither waits for a token that the other holds.
#[test]
fn two_that_want_two_take_turns() {
    check(2, || {
        let semaphore = semaphore(2);
        let other = spawn(&semaphore, |semaphore| {
            assert!(semaphore.wait_many(2, None));
            semaphore.post_many(2).unwrap();
        });
        assert!(semaphore.wait_many(2, None));
        semaphore.post().unwrap();
        semaphore.post().unwrap();
        join([other]);
        assert_eq!(semaphore.value(), 2);
    });
}
