//! The priority-inheritance word: its two fast paths alongside the kernel's queue, and
//! condition-variable waits with such a mutex.

use super::*;
use crate::checker::cell::UnsafeCell;
use crate::futex::Scope;
use crate::lock::condvar::counted::{Sleep, Slept, signal};
use crate::lock::interrupter::Interrupter;
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

/// Two threads wait for a change, which is signalled with the mutex held or after the unlock.
fn a_broadcast_loses_nobody(before_the_unlock: bool) {
    check(2, move || {
        let play = Play::new();
        let waiter = |play: &Play| {
            play.lock();
            while !play.is_changed() {
                let sleep = Sleep::begin(&play.condition);
                play.unlock();
                assert_eq!(sleep.sleep(None, None), Slept::Woken);
                play.lock();
            }
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
        for thread in others {
            thread.join().unwrap();
        }
        assert_eq!(play.mutex.load(Ordering::Relaxed), pi::FREE);
    });
}

#[test]
fn a_broadcast_with_the_mutex_loses_nobody() {
    a_broadcast_loses_nobody(true);
}

#[test]
fn a_broadcast_after_the_mutex_loses_nobody() {
    a_broadcast_loses_nobody(false);
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
        waiter.join().unwrap();
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
        play.lock();
        play.change();
        signal(&play.condition, 1);
        play.unlock();
        waiter.join().unwrap();
    });
}

/// Two threads wait, one of them may be interrupted, and there is one signal. If the signal was
/// spent on the interrupted thread, that thread does not return as interrupted.
#[test]
fn no_signal_goes_to_the_interrupted() {
    check(2, || {
        let play = Play::new();
        let by = Arc::new(Interrupter::signalled());
        let stopped = {
            let by = by.clone();
            spawn(&play, move |play| {
                play.lock();
                let mut interrupted = false;
                while !play.is_changed() && !interrupted {
                    let sleep = Sleep::begin(&play.condition);
                    play.unlock();
                    interrupted = sleep.sleep(None, Some(&by)) == Slept::Interrupted;
                    play.lock();
                }
                if !interrupted {
                    // It was woken, perhaps by the one signal, and forwards it.
                    signal(&play.condition, 1);
                }
                play.unlock();
            })
        };
        let other = spawn(&play, |play| {
            play.lock();
            while !play.is_changed() {
                let sleep = Sleep::begin(&play.condition);
                play.unlock();
                assert_eq!(sleep.sleep(None, None), Slept::Woken);
                play.lock();
            }
            play.unlock();
        });
        by.interrupt_with(send_signal);
        play.lock();
        play.change();
        signal(&play.condition, 1);
        play.unlock();
        stopped.join().unwrap();
        other.join().unwrap();
    });
}
