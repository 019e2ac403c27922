//! Once: run by one thread, seen by all, and run again by another thread if it unwound.

use super::*;
use crate::{Once, OnceState};

struct Task {
    once: Once,
    times: AtomicU32,
    data: crate::checker::cell::UnsafeCell<u32>,
}

impl Task {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            once: Once::new(),
            times: AtomicU32::new(0),
            data: crate::checker::cell::UnsafeCell::new(0),
        })
    }

    fn work(&self) {
        self.times.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the once runs this in one thread at a time; loom checks it.
        self.data.with_mut(|data| unsafe { *data += 7 });
    }

    fn result(&self) -> u32 {
        // SAFETY: the work is done; loom checks that this orders it.
        self.data.with(|data| unsafe { *data })
    }

    fn is_done_once(&self) {
        assert_eq!(self.result(), 7);
        assert_eq!(self.times.load(Ordering::Relaxed), 1);
        assert_eq!(self.once.state(), OnceState::Done);
    }
}

#[test]
fn one_runs_and_all_see_it() {
    check(2, || {
        let task = Task::new();
        let call = |task: &Task| {
            task.once.call_once(|| task.work());
            task.is_done_once();
        };
        let others = [(); 2].map(|()| spawn(&task, call));
        call(&task);
        join(others);
    });
}

/// The waiter may sleep before the run begins; the run must then know of the waiter when it ends.
#[test]
fn a_thread_that_waits_before_it_has_begun_is_woken() {
    check(3, || {
        let task = Task::new();
        let waiter = spawn(&task, |task| {
            task.once.wait();
            task.is_done_once();
        });
        task.once.call_once(|| task.work());
        join([waiter]);
    });
}

/// Calls this with a function that unwinds.
fn unwind(call: impl FnOnce(fn())) {
    let call = || call(|| std::panic::resume_unwind(Box::new(())));
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call));
}

#[test]
fn after_an_unwinding_another_thread_begins_again() {
    check(3, || {
        let task = Task::new();
        let other = spawn(&task, |task| {
            task.once.execute(|| task.work());
            task.is_done_once();
        });
        unwind(|work| task.once.execute(work));
        join([other]);
        task.is_done_once();
    });
}

#[test]
fn poison_wakes_waiters() {
    check(3, || {
        let task = Task::new();
        let other = spawn(&task, |task| {
            task.once.call_once_force(|found| {
                assert!(matches!(found, OnceState::New | OnceState::Poisoned));
                task.work();
            });
            task.is_done_once();
        });
        unwind(|work| task.once.call_once(work));
        join([other]);
        task.is_done_once();
    });
}
