//! The mutex of every flavour: one holder at a time, no thread left asleep, and nothing left in
//! word or table.
//!
//! The policy runs as shipped, with a spin budget of zero: a waiter behaves as it would after
//! spinning in vain. Each model chooses whether waiters are old or young: its clock stands still,
//! or advances at each read by more than any patience limit. If it advances, a successor for which
//! the lock is reserved parks anyway, and other threads take the lock although it is reserved.

use super::*;
use crate::checker::cell::UnsafeCell;
use crate::park::spin::let_others_be_busy;
use crate::sys::cpu::run_all_on_one_cpu;
use crate::sys::gettime::let_time_pass;
use crate::sys::sched::{priority, set_priority, some_are_real_time};
use crate::{PosixFlavour, PosixMutexOptions, RawPosixMutex, Scope};
use core::time::Duration;

pub(super) const FLAVOURS: [PosixFlavour; 3] =
    [PosixFlavour::Adaptive, PosixFlavour::Throughput, PosixFlavour::WaitWake];
/// A flavour with a successor. These flavours differ only in what the spin remembers, which no
/// model sees.
pub(super) const SUCCESSOR: PosixFlavour = PosixFlavour::Throughput;

/// What time waiters see, and what the mutex remembers at the beginning.
#[derive(Clone, Copy, Debug)]
pub(super) enum Time {
    /// All have just come.
    Stands,
    /// All have waited long: they are impatient, and other threads back off for them.
    Passes,
    /// The same, and all last ran on the CPU that every thread is on.
    PassesOnOneCpu,
    /// The same for waiters that have waited for some milliseconds, so that they are still passed
    /// over for others. Every successor is late.
    PassesOnOneCpuSlowly,
    /// A thread that goes to sleep in a condvar wakes others besides the successor, until a signal
    /// or a wake-up in vain.
    ForExtras,
    /// Every successor is late, and unlocks wake other waiters besides it.
    SuccessorsAreLate,
    /// The mutex counts as monopolized at first: a thread that goes to sleep in a condvar wakes
    /// another past the successor, which naps.
    SuccessorsNap,
    /// Other processes compete for the CPUs: a signalled thread does not become the successor.
    OthersAreBusy,
}

impl Time {
    /// Call this at the start of each execution, with the mutex.
    pub(super) fn begin(self, mutex: &RawPosixMutex) {
        /// After this long the record of when the successor was appointed has wrapped
        /// (`policy/wakes.rs`), so that no successor counts as late.
        const LONG: Duration = Duration::from_millis(268);
        mutex.let_a_sample_be_recent();
        match self {
            Self::Stands => {}
            Self::Passes => let_time_pass(LONG),
            Self::PassesOnOneCpu => {
                let_time_pass(LONG);
                run_all_on_one_cpu();
            }
            Self::PassesOnOneCpuSlowly => {
                let_time_pass(Duration::from_millis(1));
                run_all_on_one_cpu();
            }
            Self::ForExtras => mutex.let_many_be_woken(),
            // Late, and not yet impatient.
            Self::SuccessorsAreLate => let_time_pass(Duration::from_micros(100)),
            Self::SuccessorsNap => mutex.let_it_be_monopolized(),
            Self::OthersAreBusy => let_others_be_busy(),
        }
    }
}

/// A mutex and the data that it protects.
pub(super) struct Guarded {
    mutex: RawPosixMutex,
    /// The number of turns taken; loom checks that two threads never access it at once.
    turns: UnsafeCell<u32>,
    /// The lowest priority that the next holder may have.
    next: UnsafeCell<u8>,
}

impl Guarded {
    pub(super) fn new(flavour: PosixFlavour, time: Time) -> Arc<Self> {
        Self::with_scope(flavour, time, Scope::Private)
    }

    pub(super) fn with_scope(flavour: PosixFlavour, time: Time, scope: Scope) -> Arc<Self> {
        let options = PosixMutexOptions::new().flavour(flavour).scope(scope);
        let mutex = options.build_model();
        time.begin(&mutex);
        Arc::new(Self { mutex, turns: UnsafeCell::new(0), next: UnsafeCell::new(0) })
    }

    /// With the mutex held: changes the protected data; returns the number of this turn.
    fn take_turn(&self) -> u32 {
        if some_are_real_time() {
            self.check_priority();
        }
        // SAFETY: the mutex is held. loom complains if another thread is here, or could be.
        self.turns.with_mut(|turns| unsafe {
            *turns += 1;
            *turns
        })
    }

    /// With the mutex held: checks that the last unlock passed over no waiter of a higher priority.
    /// A parked waiter of a higher priority than the caller's must be next.
    fn check_priority(&self) {
        let (mine, highest) = (priority(), self.mutex.highest_parked());
        let next = if highest > mine { highest } else { 0 };
        // SAFETY: as in `take_turn`.
        let least = self.next.with_mut(|least| unsafe { least.replace(next) });
        assert!(least <= mine, "one of priority {least} was passed over");
    }

    pub(super) fn turn(&self) {
        self.mutex.lock();
        self.take_turn();
        // SAFETY: locked above.
        unsafe { self.mutex.unlock() };
    }

    pub(super) fn fair_turn(&self) {
        self.mutex.lock();
        self.take_turn();
        // SAFETY: locked above.
        unsafe { self.mutex.unlock_fair() };
    }

    /// A turn if the lock is available at once; returns whether it was.
    pub(super) fn brief_turn(&self) -> bool {
        let had = self.mutex.lock_until(passed()).is_ok();
        if had {
            self.take_turn();
            // SAFETY: locked above.
            unsafe { self.mutex.unlock() };
        }
        had
    }

    pub(super) fn try_turn(&self) -> bool {
        let had = self.mutex.try_lock();
        if had {
            self.take_turn();
            // SAFETY: locked above.
            unsafe { self.mutex.unlock() };
        }
        had
    }

    /// When all threads have ended: this many turns were taken, and nothing is left.
    pub(super) fn over(&self, turns: u32) {
        assert_eq!(self.take_turn(), turns + 1);
        // A process-shared mutex may still be reserved for a waiter that has given up.
        self.turn();
        self.mutex.assert_forgotten();
    }
}

/// A turn as a thread of this priority.
fn turn_at(at: u8) -> impl FnOnce(&Guarded) {
    move |guarded| {
        set_priority(at);
        guarded.turn();
    }
}

fn two_take_turns(flavour: PosixFlavour, time: Time, turn: fn(&Guarded), preemptions: usize) {
    check(preemptions, move || {
        let guarded = Guarded::new(flavour, time);
        let other = spawn(&guarded, move |guarded| (0..2).for_each(|_| turn(guarded)));
        (0..2).for_each(|_| turn(&guarded));
        other.join().unwrap();
        guarded.over(4);
    });
}

fn three_take_turns(flavour: PosixFlavour, time: Time, turn: fn(&Guarded), preemptions: usize) {
    check(preemptions, move || {
        let guarded = Guarded::new(flavour, time);
        let others = [(); 2].map(|()| spawn(&guarded, turn));
        turn(&guarded);
        for other in others {
            other.join().unwrap();
        }
        guarded.over(3);
    });
}

/// Two threads, each with its own kind of turn; checks how many turns were taken.
fn one_against(
    flavour: PosixFlavour,
    time: Time,
    preemptions: usize,
    turn: fn(&Guarded),
    other_turn: fn(&Guarded) -> bool,
) {
    check(preemptions, move || {
        let guarded = Guarded::new(flavour, time);
        let other = spawn(&guarded, other_turn);
        turn(&guarded);
        guarded.over(1 + u32::from(other.join().unwrap()));
    });
}

#[test]
fn two_threads_take_turns() {
    for flavour in FLAVOURS {
        two_take_turns(flavour, Time::Stands, Guarded::turn, 3);
    }
}

#[test]
fn two_impatient_threads_take_turns() {
    two_take_turns(SUCCESSOR, Time::Passes, Guarded::turn, 3);
    two_take_turns(SUCCESSOR, Time::PassesOnOneCpu, Guarded::turn, 3);
}

#[test]
fn two_threads_take_fair_turns() {
    two_take_turns(SUCCESSOR, Time::Stands, Guarded::fair_turn, 3);
    two_take_turns(PosixFlavour::WaitWake, Time::Stands, Guarded::fair_turn, 4);
}

#[test]
fn three_threads_take_a_turn_each() {
    three_take_turns(SUCCESSOR, Time::Stands, Guarded::turn, 2);
    three_take_turns(PosixFlavour::WaitWake, Time::Stands, Guarded::turn, 2);
}

/// One thread parks behind the successor; later arrivals back off for the successor, or the lock is
/// handed to it.
#[test]
fn three_impatient_threads_take_a_turn_each() {
    three_take_turns(SUCCESSOR, Time::Passes, Guarded::turn, 2);
    three_take_turns(SUCCESSOR, Time::PassesOnOneCpu, Guarded::turn, 2);
}

/// One thread parks behind the successor, and an unlock wakes it in addition to the successor.
#[test]
fn three_threads_take_a_turn_each_past_late_successors() {
    two_take_turns(SUCCESSOR, Time::SuccessorsAreLate, Guarded::turn, 3);
    three_take_turns(SUCCESSOR, Time::SuccessorsAreLate, Guarded::turn, 2);
}

#[test]
fn three_threads_take_a_fair_turn_each() {
    three_take_turns(SUCCESSOR, Time::Stands, Guarded::fair_turn, 2);
    three_take_turns(SUCCESSOR, Time::Passes, Guarded::fair_turn, 2);
}

/// Threads of these priorities and an ordinary one take a turn each: none of a lower priority goes
/// first.
fn by_priority(flavour: PosixFlavour, time: Time, priorities: [u8; 2], preemptions: usize) {
    check(preemptions, move || {
        let guarded = Guarded::new(flavour, time);
        let others = priorities.map(|priority| spawn(&guarded, turn_at(priority)));
        guarded.turn();
        for other in others {
            other.join().unwrap();
        }
        guarded.over(3);
    });
}

#[test]
fn a_real_time_thread_goes_before_a_successor() {
    for time in [Time::Stands, Time::Passes] {
        by_priority(SUCCESSOR, time, [0, 1], 2);
    }
}

#[test]
fn a_real_time_thread_goes_before_another() {
    by_priority(SUCCESSOR, Time::Stands, [1, 2], 2);
    by_priority(SUCCESSOR, Time::PassesOnOneCpu, [1, 2], 2);
}

#[test]
fn a_real_time_thread_goes_before_all_in_wait_wake() {
    by_priority(PosixFlavour::WaitWake, Time::Stands, [0, 1], 2);
    by_priority(PosixFlavour::WaitWake, Time::Stands, [1, 2], 2);
}

/// The real-time thread takes the place of a successor that gives up, or gives up itself.
#[test]
fn a_real_time_thread_meets_a_timeout() {
    for (brief, patient) in [(0, 1), (1, 0), (1, 1)] {
        check(2, move || {
            let guarded = Guarded::new(SUCCESSOR, Time::Stands);
            let patient = spawn(&guarded, move |guarded| {
                set_priority(patient);
                // A thread that gives up may leave the mutex to one of a lower priority.
                guarded.mutex.lock();
                // SAFETY: locked just above.
                unsafe { guarded.mutex.unlock() };
            });
            let brief = spawn(&guarded, move |guarded| {
                set_priority(brief);
                if guarded.mutex.lock_until(passed()).is_ok() {
                    // SAFETY: locked just above.
                    unsafe { guarded.mutex.unlock() };
                }
            });
            guarded.mutex.lock();
            // SAFETY: locked just above.
            unsafe { guarded.mutex.unlock() };
            patient.join().unwrap();
            brief.join().unwrap();
            guarded.over(0);
        });
    }
}

/// The waiter's deadline passes as it is woken, receives the lock or becomes the successor; or it
/// gets the lock.
#[test]
fn a_timeout_meets_an_unlock() {
    for flavour in FLAVOURS {
        for turn in [Guarded::turn, Guarded::fair_turn] {
            one_against(flavour, Time::Stands, 4, turn, Guarded::brief_turn);
            one_against(flavour, Time::Passes, 4, turn, Guarded::brief_turn);
        }
    }
}

#[test]
fn a_try_meets_an_unlock() {
    for flavour in FLAVOURS {
        for turn in [Guarded::turn, Guarded::fair_turn] {
            one_against(flavour, Time::Stands, 4, turn, Guarded::try_turn);
        }
    }
}

/// The thread that times out is the successor, or has consumed a wake-up: another thread must
/// become the successor, or wake.
fn one_gives_up_among_three(flavour: PosixFlavour, time: Time, turn: fn(&Guarded)) {
    check(2, move || {
        let guarded = Guarded::new(flavour, time);
        let patient = spawn(&guarded, turn);
        let brief = spawn(&guarded, Guarded::brief_turn);
        turn(&guarded);
        patient.join().unwrap();
        guarded.over(2 + u32::from(brief.join().unwrap()));
    });
}

#[test]
fn a_successor_resigns() {
    one_gives_up_among_three(SUCCESSOR, Time::Stands, Guarded::turn);
    one_gives_up_among_three(SUCCESSOR, Time::Passes, Guarded::turn);
}

#[test]
fn a_successor_resigns_where_the_lock_is_handed_on() {
    one_gives_up_among_three(SUCCESSOR, Time::Stands, Guarded::fair_turn);
    one_gives_up_among_three(SUCCESSOR, Time::PassesOnOneCpu, Guarded::fair_turn);
}

#[test]
fn a_timeout_takes_no_wake_up_with_it() {
    one_gives_up_among_three(PosixFlavour::WaitWake, Time::Stands, Guarded::turn);
    one_gives_up_among_three(PosixFlavour::WaitWake, Time::Stands, Guarded::fair_turn);
}

#[test]
fn two_give_up() {
    check(3, || {
        let guarded = Guarded::new(SUCCESSOR, Time::Passes);
        let brief = [(); 2].map(|()| spawn(&guarded, Guarded::brief_turn));
        guarded.turn();
        let had = brief.map(|brief| u32::from(brief.join().unwrap()));
        guarded.over(1 + had[0] + had[1]);
    });
}

/// The last holder frees the mutex's memory while earlier holders may still be unlocking (glibc bug
/// 13690).
fn the_last_frees_it(
    flavour: PosixFlavour,
    time: Time,
    threads: u32,
    fair: bool,
    preemptions: usize,
) {
    check(preemptions, move || {
        let guarded = Guarded::new(flavour, time);
        let turn = move |guarded: &Guarded| {
            guarded.mutex.lock();
            let is_last = guarded.take_turn() == threads;
            // SAFETY: locked above.
            unsafe {
                match fair {
                    false => guarded.mutex.unlock(),
                    true => guarded.mutex.unlock_fair(),
                }
            }
            if is_last {
                guarded.mutex.pretend_to_free();
            }
        };
        let others: Vec<_> = (1..threads).map(|_| spawn(&guarded, turn)).collect();
        turn(&guarded);
        for other in others {
            other.join().unwrap();
        }
    });
}

#[test]
fn the_last_of_two_frees_it() {
    for flavour in FLAVOURS {
        for fair in [false, true] {
            the_last_frees_it(flavour, Time::Stands, 2, fair, 3);
            the_last_frees_it(flavour, Time::PassesOnOneCpu, 2, fair, 3);
        }
    }
}

#[test]
fn the_last_of_two_real_time_threads_frees_it() {
    for flavour in [SUCCESSOR, PosixFlavour::WaitWake] {
        check(3, move || {
            let guarded = Guarded::new(flavour, Time::Stands);
            let turn = |priority| {
                move |guarded: &Guarded| {
                    set_priority(priority);
                    guarded.mutex.lock();
                    let is_last = guarded.take_turn() == 2;
                    // SAFETY: locked above.
                    unsafe { guarded.mutex.unlock() };
                    if is_last {
                        guarded.mutex.pretend_to_free();
                    }
                }
            };
            let other = spawn(&guarded, turn(2));
            turn(1)(&guarded);
            other.join().unwrap();
        });
    }
}

#[test]
fn the_last_of_three_frees_it() {
    the_last_frees_it(SUCCESSOR, Time::Passes, 3, false, 2);
    the_last_frees_it(SUCCESSOR, Time::Stands, 3, true, 2);
    the_last_frees_it(PosixFlavour::WaitWake, Time::Stands, 3, false, 2);
}
