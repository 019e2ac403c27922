//! Robust mutexes whose holders, waiters and wakers die, one or two of them, at every step.
//!
//! A death is an unwinding out of the lock or unlock. After it, the model's kernel does what the
//! real one does with the list of a thread that has ended. A stranded sleeper shows as a deadlock,
//! and two simultaneous holders as a data race.

use super::*;
use crate::checker::cell::UnsafeCell;
use crate::lock::robust::list::thread_ends;
use crate::lock::robust::step::{self, Step};
use crate::{Clock, Deadline};
use crate::{RawRobustMutex, RobustError, RobustKind, RobustLocked, RobustProtocol};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicU32 as Count;

/// A mutex, the data that it protects, and the counts. (The counts are not loom's: they are not
/// part of the protocol.)
pub(super) struct Play {
    mutex: RawRobustMutex,
    turns: UnsafeCell<u32>,
    /// Deaths of threads that held the mutex.
    deaths: Count,
    /// How often a thread lived to see `OwnerDied`.
    reports: Count,
}

/// The unwinding payload of a thread that dies.
struct Death;

impl Play {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            mutex: RawRobustMutex::new(RobustKind::ErrorChecking, RobustProtocol::None),
            turns: UnsafeCell::new(0),
            deaths: Count::new(0),
            reports: Count::new(0),
        })
    }

    /// Locks, changes the protected data, unlocks.
    pub(super) fn turn(&self) {
        // SAFETY: the mutex exists as long as any thread uses it.
        match unsafe { self.mutex.lock() } {
            Ok(RobustLocked::Clean) => {}
            Ok(RobustLocked::OwnerDied) => self.recover(),
            Err(error) => panic!("{error:?}"),
        }
        self.turns.with_mut(|turns| {
            // SAFETY: we hold the mutex.
            unsafe { *turns += 1 };
        });
        self.unlock();
    }

    fn unlock(&self) {
        // SAFETY: the caller holds it.
        unsafe { self.mutex.unlock() }.unwrap();
    }

    fn recover(&self) {
        self.reports.fetch_add(1, Ordering::Relaxed);
        self.mutex.mark_consistent().unwrap();
    }

    /// [`turn`](Self::turn), with a death if it reaches that step.
    pub(super) fn turn_and_die(&self, at: Step) {
        step::at(at, 0, || resume_unwind(Box::new(Death)));
        let Err(reason) = catch_unwind(AssertUnwindSafe(|| self.turn())) else {
            return;
        };
        if !reason.is::<Death>() {
            resume_unwind(reason);
        }
        if self.mutex.is_mine() {
            self.deaths.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the mutex is still there.
        unsafe { thread_ends() };
    }

    /// Called when no other thread uses the mutex.
    pub(super) fn finish(&self) {
        self.turn();
        assert!(!self.mutex.is_locked());
        let (deaths, reports) = (
            self.deaths.load(Ordering::Relaxed),
            self.reports.load(Ordering::Relaxed),
        );
        // A thread that dies before it learns of another's death leaves one report for both.
        assert!(
            reports <= deaths && (deaths == 0) == (reports == 0),
            "{deaths} deaths, {reports} reports"
        );
        assert!(deaths > 1 || reports == deaths);
    }
}

pub(super) fn spawn(play: &Arc<Play>, act: impl FnOnce(&Play) + 'static) -> thread::JoinHandle<()> {
    let play = play.clone();
    thread::spawn(move || act(&play))
}

pub(super) fn join(threads: impl IntoIterator<Item = thread::JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn one_at_a_time_and_nobody_sleeps_for_ever() {
    check(2, || {
        let play = Play::new();
        let others = [spawn(&play, Play::turn), spawn(&play, Play::turn)];
        play.turn();
        join(others);
        play.finish();
    });
}

#[test]
fn one_dies_at_each_step() {
    for step in Step::ALL {
        check(2, move || {
            let play = Play::new();
            let others = [
                spawn(&play, move |play| play.turn_and_die(step)),
                spawn(&play, Play::turn),
            ];
            play.turn();
            join(others);
            play.finish();
        });
    }
}

/// Some steps are reached only by a thread that slept, or found the word untidy: this takes more
/// turns for the same number of threads.
#[test]
fn one_dies_at_each_step_among_passers_by() {
    for step in Step::ALL {
        check(2, move || {
            let play = Play::new();
            let others = [
                spawn(&play, move |play| play.turn_and_die(step)),
                spawn(&play, Play::turn),
            ];
            play.turn();
            play.turn();
            join(others);
            play.finish();
        });
    }
}

#[test]
fn two_die_at_every_two_steps() {
    for first in Step::ALL {
        for second in Step::ALL {
            check(1, move || {
                let play = Play::new();
                let others = [
                    spawn(&play, move |play| play.turn_and_die(first)),
                    spawn(&play, move |play| play.turn_and_die(second)),
                ];
                play.turn();
                play.turn();
                join(others);
                play.finish();
            });
        }
    }
}

#[test]
fn a_waiter_that_gives_up_takes_nothing_along() {
    check(2, || {
        let play = Play::new();
        let impatient = spawn(&play, |play| {
            let past = Deadline::at(Clock::Monotonic, core::time::Duration::ZERO);
            // SAFETY: the mutex exists as long as any thread uses it.
            match unsafe { play.mutex.lock_until(past) } {
                Ok(_) => play.unlock(),
                Err(error) => assert_eq!(error, RobustError::TimedOut),
            }
        });
        let other = spawn(&play, Play::turn);
        play.turn();
        join([impatient, other]);
        play.finish();
    });
}

#[test]
fn who_does_not_recover_it_ends_it_for_all() {
    check(2, || {
        let play = Play::new();
        let hears = |play: &Play| {
            // SAFETY: the mutex exists as long as any thread uses it.
            match unsafe { play.mutex.lock() } {
                Ok(locked) => {
                    if locked == RobustLocked::OwnerDied {
                        play.reports.fetch_add(1, Ordering::Relaxed);
                    }
                    // Not marked consistent.
                    play.unlock();
                }
                Err(error) => assert_eq!(error, RobustError::NotRecoverable),
            }
        };
        let others = [
            spawn(&play, |play| play.turn_and_die(Step::Locked)),
            spawn(&play, hears),
        ];
        hears(&play);
        join(others);
        hears(&play);
        assert_eq!(play.reports.load(Ordering::Relaxed), 1);
        // SAFETY: as above.
        let locked = unsafe { play.mutex.lock() };
        assert_eq!(locked, Err(RobustError::NotRecoverable));
    });
}
