//! The priority-inheritance word: its two fast paths beside the kernel's queue, and the hand-over across a condition
//! variable's word.

use super::*;
use crate::checker::cell::UnsafeCell;
use crate::futex::Scope;
use crate::lock::Interrupter;
use crate::lock::pi::{self, Acquired, CondWait, PiError};
use crate::sys::futex_pi::signal;

struct Play {
    mutex: AtomicU32,
    condition: AtomicU32,
    turns: UnsafeCell<u32>,
}

impl Play {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            mutex: AtomicU32::new(pi::FREE),
            condition: AtomicU32::new(0),
            turns: UnsafeCell::new(0),
        })
    }

    fn lock(&self) {
        let locked = pi::lock(&self.mutex, Scope::Private);
        assert_eq!(locked, Ok(Acquired::Clean));
    }

    fn unlock(&self) {
        assert_eq!(pi::unlock(&self.mutex, Scope::Private), Ok(()));
    }

    /// Whoever holds the mutex may do this.
    fn count(&self) {
        self.turns.with_mut(|turns| {
            // SAFETY: we hold the mutex.
            unsafe { *turns += 1 };
        });
    }

    /// Waits for the condition to be signalled, or to be interrupted.
    fn wait(&self, by: &Interrupter) -> CondWait {
        let scope = Scope::Private;
        pi::wait_requeue_pi(&self.condition, 0, None, Some(by), &self.mutex, scope)
    }

    fn turn(&self) {
        self.lock();
        self.count();
        self.unlock();
    }
}

fn spawn(play: &Arc<Play>, act: impl FnOnce(&Play) + 'static) -> thread::JoinHandle<()> {
    let play = play.clone();
    thread::spawn(move || act(&play))
}

#[test]
fn one_at_a_time_and_nobody_sleeps_for_ever() {
    check(3, || {
        let play = Play::new();
        let others = [spawn(&play, Play::turn), spawn(&play, Play::turn)];
        play.turn();
        for thread in others {
            thread.join().unwrap();
        }
        assert_eq!(play.mutex.load(Ordering::Relaxed), pi::FREE);
    });
}

#[test]
fn who_tries_has_it_or_is_told() {
    check(3, || {
        let play = Play::new();
        let tries = spawn(&play, |play| {
            match pi::try_lock(&play.mutex, Scope::Private) {
                Ok(_) => {
                    play.count();
                    play.unlock();
                }
                Err(error) => assert_eq!(error, PiError::Busy),
            }
        });
        let locks = spawn(&play, Play::turn);
        play.turn();
        tries.join().unwrap();
        locks.join().unwrap();
    });
}

#[test]
fn a_signalled_waiter_wakes_as_the_owner() {
    check(2, || {
        let play = Play::new();
        let waiter = |play: &Play| {
            play.lock();
            let expected = play.condition.load(Ordering::Relaxed);
            if expected == 0 {
                play.unlock();
                let scope = Scope::Private;
                match pi::wait_requeue_pi(&play.condition, expected, None, None, &play.mutex, scope)
                {
                    CondWait::Locked(Acquired::Clean) => {}
                    CondWait::Changed => play.lock(),
                    other => panic!("{other:?}"),
                }
            }
            play.count();
            play.unlock();
        };
        let others = [spawn(&play, waiter), spawn(&play, waiter)];
        play.lock();
        play.count();
        play.condition.store(1, Ordering::Relaxed);
        let signalled = pi::requeue_pi(&play.condition, 1, &play.mutex, 5, Scope::Private);
        assert!(signalled.unwrap() <= 2);
        play.unlock();
        for thread in others {
            thread.join().unwrap();
        }
        assert_eq!(play.mutex.load(Ordering::Relaxed), pi::FREE);
    });
}

/// An interrupter comes at any moment of a wait, and so does a signal to the condition, whose word is not used any more then.
#[test]
fn an_interrupted_waiter_does_not_sleep() {
    check(4, || {
        let play = Play::new();
        let by = Arc::new(Interrupter::signalled());
        let waiter = {
            let by = by.clone();
            spawn(&play, move |play| {
                let waited = play.wait(&by);
                assert_eq!(waited, CondWait::Interrupted);
            })
        };
        by.interrupt_with(signal);
        waiter.join().unwrap();
    });
}

/// What an interrupter does late ends no later wait.
#[test]
fn a_late_interrupter_does_not_end_a_later_wait() {
    check(3, || {
        let play = Play::new();
        let by = Arc::new(Interrupter::signalled());
        let waiter = {
            let by = by.clone();
            spawn(&play, move |play| {
                // A request that it has heard already.
                by.clear();
                let waited = play.wait(&by);
                match waited {
                    CondWait::Locked(Acquired::Clean) => play.unlock(),
                    CondWait::Changed => {}
                    // The request came after it was cleared.
                    CondWait::Interrupted => assert!(by.is_interrupted()),
                    other => panic!("{other:?}"),
                }
            })
        };
        by.interrupt_with(signal);
        play.condition.store(1, Ordering::Relaxed);
        let signalled = pi::requeue_pi(&play.condition, 1, &play.mutex, 0, Scope::Private);
        assert!(signalled.unwrap() <= 1);
        waiter.join().unwrap();
    });
}
