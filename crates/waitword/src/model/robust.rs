//! Robust mutexes whose holders, waiters and wakers die, one or two of them, at every step.
//!
//! A death is an unwinding out of the lock or unlock. After it, the model's kernel does what the
//! real one does with the list of a thread that has ended. A stranded sleeper shows as a deadlock,
//! and two simultaneous holders as a data race.

use super::*;
use crate::checker::cell::UnsafeCell;
use crate::lock::robust::list::thread_ends;
use crate::lock::robust::step::{self, Step};
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
        Self::that_tidies_after(1)
    }

    /// `takes`: which untidy take of the mutex looks for sleepers. (Of each few takes, one does.)
    fn that_tidies_after(takes: u32) -> Arc<Self> {
        let mutex = RawRobustMutex::new(RobustKind::ErrorChecking, RobustProtocol::None);
        mutex.tidy_after(takes);
        Arc::new(Self {
            mutex,
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
        let (deaths, reports) =
            (self.deaths.load(Ordering::Relaxed), self.reports.load(Ordering::Relaxed));
        // A thread that dies before it learns of another's death leaves one report for both.
        assert!(
            reports <= deaths && (deaths == 0) == (reports == 0),
            "{deaths} deaths, {reports} reports"
        );
        assert!(deaths > 1 || reports == deaths);
    }
}

/// What a thread does: a turn, or one in which it dies if it reaches that step.
#[derive(Clone, Copy)]
enum Act {
    Turn,
    Die(Step),
}

impl Act {
    fn play(self, play: &Play) {
        match self {
            Self::Turn => play.turn(),
            Self::Die(step) => play.turn_and_die(step),
        }
    }
}

/// Explores two threads that act, while this one takes some turns.
fn others_act(preemptions: usize, turns: usize, acts: [Act; 2]) {
    for takes in [1, 2] {
        check(preemptions, move || {
            let play = Play::that_tidies_after(takes);
            let others = acts.map(|act| spawn(&play, move |play| act.play(play)));
            (0..turns).for_each(|_| play.turn());
            join(others);
            play.finish();
        });
    }
}

#[test]
fn one_at_a_time_and_no_thread_sleeps_forever() {
    others_act(2, 1, [Act::Turn; 2]);
}

#[test]
fn one_dies_at_each_step() {
    for step in Step::ALL {
        others_act(2, 1, [Act::Die(step), Act::Turn]);
    }
}

/// Some steps are reached only by a thread that slept, or found the word untidy: this takes more
/// turns for the same number of threads.
#[test]
fn one_dies_at_each_step_among_passers_by() {
    for step in Step::ALL {
        others_act(2, 2, [Act::Die(step), Act::Turn]);
    }
}

#[test]
fn two_die_at_every_two_steps() {
    for first in Step::ALL {
        for second in Step::ALL {
            others_act(1, 2, [Act::Die(first), Act::Die(second)]);
        }
    }
}

#[test]
fn a_waiter_that_gives_up_takes_nothing_along() {
    check(2, || {
        let play = Play::new();
        let impatient = spawn(&play, |play| {
            // SAFETY: the mutex exists as long as any thread uses it.
            match unsafe { play.mutex.lock_until(passed()) } {
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
fn a_holder_that_does_not_repair_it_ends_it_for_all() {
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
        let others = [spawn(&play, |play| play.turn_and_die(Step::Locked)), spawn(&play, hears)];
        hears(&play);
        join(others);
        hears(&play);
        assert_eq!(play.reports.load(Ordering::Relaxed), 1);
        // SAFETY: as above.
        let locked = unsafe { play.mutex.lock() };
        assert_eq!(locked, Err(RobustError::NotRecoverable));
    });
}
