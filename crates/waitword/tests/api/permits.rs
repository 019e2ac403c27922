//! Permits: released when they are dropped, however the scope ends; several at once, or none.

use crate::{all_answers, fail, unwinds};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant, SystemTime};
use waitword::{Deadline, Scope, Semaphore};
use waitword_testkit::{Crew, watch};

const SCOPES: [Scope; 2] = [Scope::Private, Scope::Shared];
const LONG: Duration = Duration::from_secs(3600);
const SHORT: Duration = Duration::from_millis(2);

/// Entries in our table of a waiting thread.
fn entries(scope: Scope) -> usize {
    usize::from(scope == Scope::Private)
}

#[test]
fn a_permit_is_given_back_when_it_is_dropped() {
    for scope in SCOPES {
        let semaphore = Semaphore::with_scope(4, scope);
        let one = semaphore.acquire();
        let three = semaphore.acquire_many(3);
        assert_eq!((one.num_permits(), three.num_permits(), semaphore.value()), (1, 3, 0));
        assert!(semaphore.try_acquire().is_none());
        drop(three);
        assert_eq!(semaphore.value(), 3);
        let ways = [
            semaphore.try_acquire(),
            semaphore.acquire_until(Instant::now()),
            semaphore.acquire_for(Duration::ZERO),
        ];
        assert_eq!(semaphore.value(), 0);
        drop(ways.map(Option::unwrap));
        let ways = [
            semaphore.try_acquire_many(1),
            semaphore.acquire_many_until(0, Deadline::at_system_time(SystemTime::now())),
            semaphore.acquire_many_for(2, Duration::ZERO),
        ];
        assert_eq!(semaphore.value(), 0);
        drop(ways.map(Option::unwrap));
        drop(one);
        assert_eq!(semaphore.value(), 4);
        assert!(semaphore.try_acquire_many(5).is_none());
        assert_eq!(semaphore.acquire_many(0).num_permits(), 0);
    }
}

#[test]
fn a_panic_gives_it_back() {
    let semaphore = Semaphore::new(3);
    assert!(unwinds(|| {
        let _permits = semaphore.acquire_many(2);
        let _one = semaphore.acquire();
        fail()
    }));
    assert_eq!(semaphore.value(), 3);
}

#[test]
fn forgotten_permits_stay_taken() {
    let semaphore = Semaphore::new(6);
    semaphore.acquire_many(2).forget();
    std::mem::forget(semaphore.acquire());
    assert_eq!(semaphore.value(), 3);
    // Another thread may release it.
    let permit = semaphore.acquire();
    std::thread::scope(|scope| scope.spawn(|| drop(permit)).join().unwrap());
    assert_eq!(semaphore.value(), 3);
}

#[test]
fn more_than_there_can_be_is_refused() {
    let semaphore = Semaphore::new(Semaphore::MAX_VALUE);
    assert!(unwinds(|| _ = semaphore.acquire_many(Semaphore::MAX_VALUE + 1)));
    assert!(semaphore.try_acquire_many(u32::MAX).is_none());
    assert!(semaphore.acquire_many_for(u32::MAX, SHORT).is_none());
    // The permit finds no room: more was posted meanwhile than was taken.
    let all = semaphore.acquire_many(Semaphore::MAX_VALUE);
    semaphore.post().unwrap();
    drop(all);
    assert_eq!(semaphore.value(), 1);
}

#[test]
fn a_deadline_passes() {
    let _watchdog = watch();
    for scope in SCOPES {
        let semaphore = Semaphore::with_scope(1, scope);
        for count in [2, 3] {
            let before = Instant::now();
            assert!(semaphore.acquire_many_for(count, SHORT).is_none());
            assert!(semaphore.acquire_many_until(count, Instant::now() + SHORT).is_none());
            assert!(before.elapsed() >= 2 * SHORT, "woken early");
        }
        let _one = semaphore.acquire();
        assert!(semaphore.acquire_for(SHORT).is_none());
        assert!(semaphore.acquire_until(Instant::now() + SHORT).is_none());
        assert_eq!(semaphore.value(), 0);
    }
}

/// Threads that want three, two and one. A post reaches each waiter for which it is enough, and no
/// other thread takes the wake-up.
#[test]
fn a_post_wakes_the_waiters_that_it_is_enough_for() {
    let mut crew = Crew::new(4);
    for scope in SCOPES {
        let semaphore = Arc::new(Semaphore::with_scope(0, scope));
        for (worker, count) in [3, 2, 1, 3].into_iter().enumerate() {
            let semaphore = semaphore.clone();
            crew.order(worker, entries(scope), move || {
                let permits = match worker {
                    3 => semaphore.acquire_many_for(count, LONG).unwrap(),
                    _ => semaphore.acquire_many(count),
                };
                let taken = permits.num_permits() as usize;
                permits.forget();
                Ok(taken)
            });
            assert_eq!(crew.settle(), []);
        }
        semaphore.post().unwrap();
        assert_eq!(crew.settle_with(2), [(2, Ok(1))]);
        semaphore.post().unwrap();
        assert_eq!(crew.settle(), []);
        assert_eq!(semaphore.value(), 1);
        semaphore.post().unwrap();
        assert_eq!(crew.settle_with(1), [(1, Ok(2))]);
        semaphore.post_many(6).unwrap();
        assert_eq!(all_answers(&crew, 2), [(0, Ok(3)), (3, Ok(3))]);
        assert_eq!(semaphore.value(), 0);
    }
}

/// As many threads inside as there are permits, by ones, twos and threes, with waits that end
/// early.
#[test]
fn at_most_as_many_threads_inside_as_permits() {
    let _watchdog = watch();
    for scope in SCOPES {
        let (semaphore, inside) = (Semaphore::with_scope(3, scope), AtomicU32::new(0));
        std::thread::scope(|threads| {
            for thread in 0..6_u32 {
                let (semaphore, inside) = (&semaphore, &inside);
                threads.spawn(move || {
                    for turn in 0..800_u32 {
                        let count = 1 + (thread + turn) % 3;
                        let permits = match turn % 5 {
                            0 => semaphore.acquire_many_for(count, Duration::from_micros(30)),
                            1 => semaphore.try_acquire_many(count),
                            _ => Some(semaphore.acquire_many(count)),
                        };
                        if permits.is_none() {
                            continue;
                        }
                        assert!(inside.fetch_add(count, SeqCst) + count <= 3);
                        if turn % 32 == 0 {
                            std::thread::yield_now();
                        }
                        inside.fetch_sub(count, SeqCst);
                    }
                });
            }
        });
        assert_eq!(semaphore.value(), 3);
    }
}
