//! fork: what a child may expect of a copy whose waiters stayed behind in the parent.

use crate::{answer, entries, far};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use waitword::{Barrier, Event, Once, OnceState, Scope, Semaphore};
use waitword_testkit::{BareThread, Child, Crew, Way, in_child, until, watch};

const WRONG: i32 = 11;

/// Like glibc's tst-once5: the thread that ran it does not exist in the child, which runs it again.
/// The parent's copy continues.
#[test]
fn an_interrupted_once_begins_again_in_the_child() {
    let (once, may_end) = (Arc::new(Once::new()), Arc::new(AtomicBool::new(false)));
    let runner = {
        let (once, may_end) = (once.clone(), may_end.clone());
        std::thread::spawn(move || once.call_once(|| until(|| may_end.load(SeqCst))))
    };
    until(|| once.state() == OnceState::InProgress);
    // One more thread that sleeps, so that the word has its bit.
    let mut crew = Crew::new(1);
    let other = once.clone();
    crew.order(0, 1, move || {
        other.call_once(|| unreachable!());
        Ok(0)
    });
    assert_eq!(crew.settle(), []);
    for way in [Way::Fork, Way::RawClone] {
        in_child(way, || {
            let mut ran = false;
            if once.state() != OnceState::New {
                return WRONG;
            }
            once.call_once(|| ran = true);
            once.call_once(|| unreachable!());
            i32::from(!ran)
        });
    }
    // A grandchild, from within the child's own run.
    in_child(Way::Fork, || {
        once.call_once(|| {
            in_child(Way::Fork, || {
                // The thread that runs it is this one, so another thread may begin, and ends it.
                let again = once.clone();
                let other = BareThread::start(move || {
                    let mut ran = false;
                    again.call_once(|| ran = true);
                    ran
                });
                other.join()
            });
        });
        once.state().done()
    });
    may_end.store(true, SeqCst);
    runner.join().unwrap();
    assert_eq!(crew.settle_with(0), [(0, Ok(0))]);
    assert!(once.state().done());
}

/// The thread that runs it forks, and continues in the child, where another thread has begun again
/// meanwhile. How the first run ends does not affect the second.
#[test]
fn a_run_that_has_forked_leaves_another_s_alone() {
    let _watchdog = watch();
    let (once, begun, go_on) = (Once::new(), Semaphore::new(0), Semaphore::new(0));
    let shared: &'static _ = Box::leak(Box::new((once, begun, go_on)));
    let (once, begun, go_on) = shared;
    let (mut child, mut other) = (0, None);
    let run = AssertUnwindSafe(|| {
        once.execute(|| {
            // SAFETY: the child continues below, and ends there.
            child = unsafe { libc::fork() };
            if child == 0 {
                other = Some(BareThread::start(move || {
                    let mut ran = false;
                    once.execute(|| {
                        begun.post().unwrap();
                        go_on.wait();
                        ran = true;
                    });
                    ran
                }));
                begun.wait();
                resume_unwind(Box::new(()));
            }
        });
    });
    let unwound = catch_unwind(run).is_err();
    if let Some(other) = other {
        let check = AssertUnwindSafe(|| {
            assert!(unwound);
            assert_eq!(once.state(), OnceState::InProgress);
            go_on.post().unwrap();
            assert_eq!(other.join(), 0);
            assert!(once.state().done());
        });
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(catch_unwind(check).is_err().into()) };
    }
    assert!(!unwound);
    Child::new(child).succeeds();
    assert!(once.state().done());
}

/// Two of the parent's threads have arrived. In the child two other threads are as many as before,
/// but not enough.
#[test]
fn arrivals_of_the_parent_do_not_count_in_the_child() {
    let mut crew = Crew::new(2);
    let barrier = Arc::new(Barrier::new(3));
    crew.order_each(0..2, 1, &barrier, move |barrier| answer(barrier.wait().is_leader()));
    assert_eq!(crew.settle(), []);
    in_child(Way::Fork, || {
        if barrier.wait_for(Duration::from_millis(1)).is_some() {
            return WRONG;
        }
        let (came, led) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (barrier, came, led) = (barrier.clone(), came.clone(), led.clone());
                BareThread::start(move || {
                    came.fetch_add(1, SeqCst);
                    led.fetch_add(barrier.wait().is_leader().into(), SeqCst);
                    i32::from(came.load(SeqCst) != 3)
                })
            })
            .collect();
        let complaints: i32 = threads.into_iter().map(BareThread::join).sum();
        complaints + i32::from(led.load(SeqCst) != 1)
    });
    assert!(barrier.wait().is_leader());
    assert_eq!(crew.settle(), [(0, Ok(0)), (1, Ok(0))]);
}

/// The waiters that the copy has counted cost no more than a check. Its value and its events work.
#[test]
fn waiters_of_the_parent_are_not_in_the_child() {
    let mut crew = Crew::new(2);
    let (semaphore, event) = (Arc::new(Semaphore::new(0)), Arc::new(Event::new()));
    let (a, b) = (semaphore.clone(), event.clone());
    crew.order(0, entries(Scope::Private), move || answer(a.wait_until(far())));
    crew.order(1, entries(Scope::Private), move || answer(b.wait_until(far())));
    assert_eq!(crew.settle(), []);
    for way in [Way::Fork, Way::RawClone] {
        in_child(way, || {
            if semaphore.wait_for(Duration::from_millis(1)) || event.is_set() {
                return WRONG;
            }
            semaphore.post_many(2).unwrap();
            semaphore.wait();
            event.set();
            event.wait();
            i32::from(semaphore.value() != 1)
        });
    }
    in_child(Way::Fork, || {
        let done = Arc::new(AtomicUsize::new(0));
        let (a, b, c) = (semaphore.clone(), event.clone(), done.clone());
        let other = BareThread::start(move || {
            a.wait();
            c.store(1, SeqCst);
            b.set();
        });
        semaphore.post().unwrap();
        event.wait();
        other.join() + i32::from(done.load(SeqCst) != 1)
    });
    semaphore.post().unwrap();
    event.set();
    assert_eq!(crew.settle(), [(0, Ok(1)), (1, Ok(1))]);
}
