//! Bugs of other semaphores, barriers, events and the like, each as a test. (The models have some
//! of them too, with every interleaving: `model/semaphore.rs`.)

use crate::{SCOPES, answer, entries, far};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use waitword::{AutoEvent, Barrier, Once, Scope, Semaphore};
use waitword_testkit::{Crew, watch};

/// Threads that wait on the semaphore, asleep.
fn sleepers(crew: &mut Crew, count: usize, semaphore: &Arc<Semaphore>, scope: Scope) {
    crew.order_each(0..count, entries(scope), semaphore, move |semaphore| {
        answer(semaphore.wait_until(far()))
    });
    assert_eq!(crew.settle(), []);
}

fn all_are_back(crew: &Crew, count: usize) {
    let back: Vec<_> = (0..count).map(|worker| (worker, Ok(1))).collect();
    assert_eq!(crew.settle(), back);
}

/// llvm #46357, #77659: `release` notified only when the count rose from 0, so that of several
/// posts in a row only the first woke a thread.
#[test]
fn llvm_46357_only_the_first_of_several_posts_wakes() {
    let mut crew = Crew::new(6);
    for scope in SCOPES {
        let semaphore = Arc::new(Semaphore::with_scope(0, scope));
        for _ in 0..30 {
            sleepers(&mut crew, 6, &semaphore, scope);
            for _ in 0..6 {
                semaphore.post().unwrap();
            }
            all_are_back(&crew, 6);
            assert_eq!(semaphore.value(), 0);
        }
    }
}

/// llvm #79265: `release(n)` woke one thread.
#[test]
fn llvm_79265_a_post_of_many_wakes_one() {
    let mut crew = Crew::new(6);
    for scope in SCOPES {
        let semaphore = Arc::new(Semaphore::with_scope(0, scope));
        for _ in 0..30 {
            sleepers(&mut crew, 6, &semaphore, scope);
            semaphore.post_many(6).unwrap();
            all_are_back(&crew, 6);
            // More than there are waiters: kept.
            sleepers(&mut crew, 2, &semaphore, scope);
            semaphore.post_many(5).unwrap();
            all_are_back(&crew, 2);
            for _ in 0..3 {
                assert!(semaphore.try_wait());
            }
        }
    }
}

/// PyTorch #177884, GCC 98033: a pool's workers sleep on a semaphore while another thread posts and
/// takes at once. With a notification only on 0 → 1, one worker slept on although there was a
/// token.
#[test]
fn gcc_98033_a_worker_sleeps_beside_its_token() {
    let _watchdog = watch();
    const WORKERS: usize = 4;
    const TASKS: usize = 4000;
    for scope in SCOPES {
        let (tasks, results) = (Semaphore::with_scope(0, scope), Semaphore::with_scope(0, scope));
        let taken = AtomicUsize::new(0);
        std::thread::scope(|threads| {
            for _ in 0..WORKERS {
                threads.spawn(|| {
                    loop {
                        tasks.wait();
                        if taken.fetch_add(1, SeqCst) >= TASKS {
                            break;
                        }
                        results.post().unwrap();
                    }
                });
            }
            for task in 0..TASKS {
                tasks.post().unwrap();
                // A burst of a few at a time, each awaited: a sleeper beside a token would stop
                // everything.
                if task % WORKERS == WORKERS - 1 {
                    for _ in 0..WORKERS {
                        results.wait();
                    }
                }
            }
            tasks.post_many(WORKERS as u32).unwrap();
        });
    }
}

/// glibc 12674: the poster accessed the semaphore after it had let the waiter go, which had freed
/// it. Here the memory becomes another semaphore at once; `freed.rs` unmaps it.
#[test]
fn glibc_12674_a_post_to_a_semaphore_that_is_gone() {
    let _watchdog = watch();
    for scope in SCOPES {
        let start = Arc::new(Semaphore::with_scope(0, scope));
        for _ in 0..2000 {
            let semaphore = Arc::new(Semaphore::with_scope(0, scope));
            let poster = {
                let (start, semaphore) = (start.clone(), Arc::as_ptr(&semaphore) as usize);
                std::thread::spawn(move || {
                    start.wait();
                    // SAFETY: freed only by the thread that has taken this post.
                    unsafe { &*(semaphore as *const Semaphore) }.post().unwrap();
                })
            };
            start.post().unwrap();
            semaphore.wait();
            drop(semaphore);
            let _in_its_place = Arc::new(Semaphore::with_scope(0, scope));
            poster.join().unwrap();
            assert_eq!(_in_its_place.value(), 0);
        }
    }
}

/// glibc 13065: the first thread through a barrier destroyed it, as POSIX allows, while the others
/// still had to check whether they were through. Here it makes another barrier in its place, which
/// late checkers would take for theirs. (`freed.rs` unmaps the memory.)
#[test]
fn glibc_13065_a_barrier_destroyed_by_the_first_through() {
    let _watchdog = watch();
    for scope in SCOPES {
        for _ in 0..500 {
            let mut place = Barrier::with_scope(3, scope);
            let (place, through) = (&raw mut place as usize, AtomicUsize::new(0));
            std::thread::scope(|threads| {
                for _ in 0..3 {
                    threads.spawn(|| {
                        let place = place as *mut Barrier;
                        // SAFETY: this is what is tested: a thread that is not through no longer
                        // accesses it.
                        unsafe {
                            (*place).wait();
                            if through.fetch_add(1, SeqCst) == 0 {
                                assert!((*place).destroy());
                                place.write(Barrier::with_scope(2, scope));
                            }
                        }
                    });
                }
            });
        }
    }
}

/// .NET's `AutoResetEvent`: "if two calls are too close together only one thread is released".
#[test]
fn dotnet_two_sets_too_close_together_release_one() {
    let mut crew = Crew::new(5);
    for scope in SCOPES {
        let event = Arc::new(AutoEvent::with_scope(false, scope));
        for _ in 0..50 {
            crew.order_each(0..5, entries(scope), &event, move |event| {
                answer(event.wait_until(far()))
            });
            assert_eq!(crew.settle(), []);
            for _ in 0..5 {
                event.set();
            }
            all_are_back(&crew, 5);
            assert!(!event.is_set());
        }
    }
}

/// glibc 18435: an exception out of `pthread_once`'s function left it in progress, and the next
/// call waited forever.
#[test]
fn glibc_18435_an_exception_leaves_once_in_progress() {
    let once = Arc::new(Once::new());
    let mut crew = Crew::new(1);
    let (begun, go_on) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let thrower = {
        let (once, begun, go_on) = (once.clone(), begun.clone(), go_on.clone());
        std::thread::spawn(move || {
            once.execute(|| {
                begun.post().unwrap();
                go_on.wait();
                std::panic::resume_unwind(Box::new(()));
            });
        })
    };
    begun.wait();
    let other = once.clone();
    crew.order(0, 1, move || {
        let mut ran = false;
        other.execute(|| ran = true);
        answer(ran)
    });
    assert_eq!(crew.settle(), []);
    go_on.post().unwrap();
    assert!(thrower.join().is_err());
    assert_eq!(crew.settle_with(0), [(0, Ok(1))]);
}

/// Deadlines that have passed, and distant ones: musl and others took both for "no deadline".
#[test]
fn deadlines_at_the_ends_of_time() {
    let _watchdog = watch();
    use waitword::{Clock, Deadline};
    for scope in SCOPES {
        let semaphore = Semaphore::with_scope(0, scope);
        for clock in [Clock::Monotonic, Clock::Realtime] {
            assert!(!semaphore.wait_until(Deadline::at(clock, Duration::ZERO)));
            std::thread::scope(|threads| {
                let far = Deadline::at(clock, Duration::MAX);
                let semaphore = &semaphore;
                let waiter = threads.spawn(move || semaphore.wait_until(far));
                semaphore.post().unwrap();
                assert!(waiter.join().unwrap());
            });
        }
    }
}
