//! The priority-inheritance word: its two fast paths alongside the kernel's queue, and
//! condition-variable waits with such a mutex.

use super::*;
use crate::checker::cell::UnsafeCell;
use crate::futex::Scope;
use crate::lock::condvar::counted::{Sleep, signal};
use crate::lock::interrupter::Interrupter;
use crate::lock::kernel_wait::Slept;
use crate::lock::pi::{self, Acquired, PiError};
use crate::sys::futex::signal as send_signal;

struct Play {
    mutex: AtomicU32,
    condition: AtomicU32,
    turns: UnsafeCell<u32>,
    /// The condition that waiters wait for, protected by the mutex.
    changed: UnsafeCell<bool>,
}

impl Play {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            mutex: AtomicU32::new(pi::FREE),
            condition: AtomicU32::new(0),
            turns: UnsafeCell::new(0),
            changed: UnsafeCell::new(false),
        })
    }

    fn lock(&self) {
        let locked = pi::lock(&self.mutex, Scope::Private);
        assert_eq!(locked, Ok(Acquired::Clean));
    }

    fn unlock(&self) {
        assert_eq!(pi::unlock(&self.mutex, Scope::Private), Ok(()));
    }

    /// The caller holds the mutex.
    fn count(&self) {
        self.turns.with_mut(|turns| {
            // SAFETY: we hold the mutex.
            unsafe { *turns += 1 };
        });
    }

    fn change(&self) {
        // SAFETY: we hold the mutex.
        self.changed.with_mut(|changed| unsafe { *changed = true });
    }

    fn is_changed(&self) -> bool {
        // SAFETY: we hold the mutex.
        self.changed.with(|changed| unsafe { *changed })
    }

    /// One wait for a signal. The caller holds the mutex.
    fn wait(&self, by: Option<&Interrupter>) -> Slept {
        let sleep = Sleep::begin(&self.condition);
        self.unlock();
        let slept = sleep.sleep(None, by);
        self.lock();
        slept
    }

    /// Waits for the change, and leaves with the mutex held.
    fn wait_for_change(&self) {
        self.lock();
        while !self.is_changed() {
            assert_eq!(self.wait(None), Slept::Woken);
        }
    }

    /// Makes the change and signals it.
    fn change_and_signal(&self) {
        self.lock();
        self.change();
        signal(&self.condition, 1);
        self.unlock();
    }

    fn turn(&self) {
        self.lock();
        self.count();
        self.unlock();
    }
}

#[test]
fn one_at_a_time_and_no_thread_sleeps_forever() {
    check(3, || {
        let play = Play::new();
        let others = [spawn(&play, Play::turn), spawn(&play, Play::turn)];
        play.turn();
        join(others);
        assert_eq!(play.mutex.load(Ordering::Relaxed), pi::FREE);
    });
}

#[test]
fn a_try_takes_it_or_finds_it_busy() {
    check(3, || {
        let play = Play::new();
        let tries = spawn(&play, |play| match pi::try_lock(&play.mutex, Scope::Private) {
            Ok(_) => {
                play.count();
                play.unlock();
            }
            Err(error) => assert_eq!(error, PiError::Busy),
        });
        let locks = spawn(&play, Play::turn);
        play.turn();
        join([tries, locks]);
    });
}

/// Two threads wait for a change, which is signalled with the mutex held or after the unlock.
fn a_broadcast_loses_no_waiter(before_the_unlock: bool) {
    check(2, move || {
        let play = Play::new();
        let waiter = |play: &Play| {
            play.wait_for_change();
            play.count();
            play.unlock();
        };
        let others = [spawn(&play, waiter), spawn(&play, waiter)];
        play.lock();
        play.change();
        if before_the_unlock {
            assert!(signal(&play.condition, usize::MAX) <= 2);
        }
        play.unlock();
        if !before_the_unlock {
            assert!(signal(&play.condition, usize::MAX) <= 2);
        }
        join(others);
        assert_eq!(play.mutex.load(Ordering::Relaxed), pi::FREE);
    });
}

#[test]
fn a_broadcast_with_the_mutex_loses_no_waiter() {
    a_broadcast_loses_no_waiter(true);
}

#[test]
fn a_broadcast_after_the_mutex_loses_no_waiter() {
    a_broadcast_loses_no_waiter(false);
}

/// An interrupter comes at any point of a wait.
#[test]
fn an_interrupted_waiter_does_not_sleep() {
    check(4, || {
        let play = Play::new();
        let by = Arc::new(Interrupter::signalled());
        let waiter = {
            let by = by.clone();
            spawn(&play, move |play| {
                let slept = Sleep::begin(&play.condition).sleep(None, Some(&by));
                assert_eq!(slept, Slept::Interrupted);
            })
        };
        by.interrupt_with(send_signal);
        join([waiter]);
    });
}

/// A late interrupter does not end a later wait.
#[test]
fn a_late_interrupter_does_not_end_a_later_wait() {
    check(3, || {
        let play = Play::new();
        let by = Arc::new(Interrupter::signalled());
        let waiter = {
            let by = by.clone();
            spawn(&play, move |play| {
                // A request from before.
                by.clear();
                play.lock();
                while !play.is_changed() {
                    let sleep = Sleep::begin(&play.condition);
                    play.unlock();
                    match sleep.sleep(None, Some(&by)) {
                        Slept::Woken => {}
                        // The request came after it was cleared.
                        Slept::Interrupted => return assert!(by.is_interrupted()),
                        other => panic!("{other:?}"),
                    }
                    play.lock();
                }
                play.unlock();
            })
        };
        by.interrupt_with(send_signal);
        play.change_and_signal();
        join([waiter]);
    });
}

/// Two threads wait, one of them may be interrupted, and there is one signal. If the signal was
/// spent on the interrupted thread, that thread does not return as interrupted.
#[test]
fn no_signal_goes_to_an_interrupted_waiter() {
    check(2, || {
        let play = Play::new();
        let by = Arc::new(Interrupter::signalled());
        let stopped = {
            let by = by.clone();
            spawn(&play, move |play| {
                play.lock();
                let mut interrupted = false;
                while !play.is_changed() && !interrupted {
                    interrupted = play.wait(Some(&by)) == Slept::Interrupted;
                }
                if !interrupted {
                    // It was woken, perhaps by the one signal, and forwards it.
                    signal(&play.condition, 1);
                }
                play.unlock();
            })
        };
        let other = spawn(&play, |play| {
            play.wait_for_change();
            play.unlock();
        });
        by.interrupt_with(send_signal);
        play.change_and_signal();
        join([stopped, other]);
    });
}
