//! Semaphore, barrier, events, latch and once, with six threads each.

use super::*;
use crate::{AutoEvent, Barrier, Event, Latch, Once, OnceState, Scope, Semaphore};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicU32 as Count;

/// The scene with a private primitive and with a process-shared one.
fn in_both_scopes(scene: impl Fn(Scope) + Copy + Send + Sync + 'static) {
    for scope in [Scope::Private, Scope::Shared] {
        // Shown if the test fails.
        println!("{scope:?}");
        stress(move || scene(scope));
    }
}

/// Three patient waiters, one with a deadline, two posters: each post is taken once.
#[test]
fn each_post_of_a_semaphore_is_taken_once() {
    in_both_scopes(|scope| {
        let semaphore = Arc::new(Semaphore::with_scope(0, scope));
        let patient =
            [(); 3].map(|()| spawn(&semaphore, |semaphore| (0..2).for_each(|_| semaphore.wait())));
        let hasty = spawn(&semaphore, |semaphore| {
            let taken = (0..3).map(|_| u32::from(semaphore.wait_until(passed())));
            taken.sum::<u32>()
        });
        let posters = [(); 2].map(|()| {
            spawn(&semaphore, |semaphore| {
                semaphore.post().unwrap();
                semaphore.post_many(2).unwrap();
            })
        });
        join(posters);
        let taken = join([hasty])[0];
        if taken > 0 {
            semaphore.post_many(taken).unwrap();
        }
        join(patient);
        assert_eq!(semaphore.value(), 0);
    });
}

/// Six threads meet three times. Now and then one gives up first, and comes again.
#[test]
fn no_thread_passes_a_barrier_before_all_have_come() {
    const MEMBERS: u32 = 6;
    in_both_scopes(|scope| {
        let meeting = Arc::new((Barrier::with_scope(MEMBERS, scope), Count::new(0), Count::new(0)));
        let attend = |(barrier, came, led): &(Barrier, Count, Count)| {
            for round in 1..=3 {
                came.fetch_add(1, Ordering::Relaxed);
                let briefly = (dice(3) == 0).then(|| barrier.wait_until(passed()));
                let result = briefly.flatten().unwrap_or_else(|| barrier.wait());
                assert!(came.load(Ordering::Relaxed) >= MEMBERS * round, "too early");
                led.fetch_add(result.is_leader().into(), Ordering::Relaxed);
            }
        };
        let others: Vec<_> = (1..MEMBERS).map(|_| spawn(&meeting, attend)).collect();
        attend(&meeting);
        join(others);
        assert_eq!(meeting.2.load(Ordering::Relaxed), 3);
        assert!(meeting.0.destroy());
    });
}

/// Four threads wait, one of them with a deadline; two set and reset. The last set releases all.
#[test]
fn the_last_set_of_an_event_releases_all() {
    in_both_scopes(|scope| {
        let event = Arc::new(Event::with_scope(false, scope));
        let patient = [(); 3].map(|()| spawn(&event, Event::wait));
        let hasty = spawn(&event, |event| drop(event.wait_until(passed())));
        let setters = [(); 2].map(|()| {
            spawn(&event, |event| {
                event.set();
                event.reset();
                event.set();
            })
        });
        join(setters);
        join(patient);
        join([hasty]);
        assert!(event.is_set());
    });
}

/// Each set lets exactly one of the four threads pass.
#[test]
fn each_set_of_an_auto_event_lets_one_pass() {
    in_both_scopes(|scope| {
        let event = Arc::new((AutoEvent::with_scope(false, scope), Count::new(0)));
        let patient = [(); 3].map(|()| {
            spawn(&event, |(event, passed)| {
                for _ in 0..2 {
                    event.wait();
                    passed.fetch_add(1, Ordering::Relaxed);
                }
            })
        });
        let hasty = spawn(&event, |(event, _)| {
            let had = (0..2).map(|_| usize::from(event.wait_until(passed())));
            had.sum::<usize>()
        });
        let mut sets = 0;
        while event.1.load(Ordering::Relaxed) < 6 {
            if !event.0.is_set() {
                event.0.set();
                sets += 1;
            }
            thread::yield_now();
        }
        join(patient);
        let had = join([hasty])[0];
        assert_eq!(6 + had + usize::from(event.0.is_set()), sets);
    });
}

#[test]
fn the_last_count_opens_a_latch() {
    in_both_scopes(|scope| {
        let latch = Arc::new((Latch::with_scope(5, scope), Count::new(0)));
        let sees_all = |counted: &Count| assert_eq!(counted.load(Ordering::Relaxed), 5);
        let counters = [1, 1, 2].map(|count| {
            spawn(&latch, move |(latch, counted)| {
                counted.fetch_add(count, Ordering::Relaxed);
                latch.count_down(count).unwrap();
            })
        });
        let waiters = [(); 2].map(|()| {
            spawn(&latch, move |(latch, counted)| {
                if dice(2) == 0 || !latch.wait_until(passed()) {
                    latch.wait();
                }
                sees_all(counted);
            })
        });
        latch.1.fetch_add(1, Ordering::Relaxed);
        latch.0.arrive_and_wait().unwrap();
        sees_all(&latch.1);
        join(counters);
        join(waiters);
    });
}

/// Six threads call it, and the first one or two unwind: the work is done once, and no call returns
/// before.
#[test]
fn a_once_is_done_once_after_unwindings() {
    stress(|| {
        let task = Arc::new((Once::new(), Count::new(0), Count::new(0)));
        let fail = dice(3) as u32;
        let call = move |(once, begun, done): &(Once, Count, Count)| {
            let work = || {
                if begun.fetch_add(1, Ordering::Relaxed) < fail {
                    resume_unwind(Box::new(()));
                }
                thread::yield_now();
                done.fetch_add(1, Ordering::Relaxed);
            };
            while catch_unwind(AssertUnwindSafe(|| once.execute(work))).is_err() {}
            assert_eq!(done.load(Ordering::Relaxed), 1);
            assert_eq!(once.state(), OnceState::Done);
        };
        let others = [(); 5].map(|()| spawn(&task, call));
        call(&task);
        join(others);
        assert_eq!(task.1.load(Ordering::Relaxed), fail + 1);
    });
}
