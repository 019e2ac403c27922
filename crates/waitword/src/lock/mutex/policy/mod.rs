//! The policy of the throughput and the adaptive flavour. Everything that the protocol
//! (`private.rs`, `unlock.rs`) decides by measured times or counts is decided here:
//!
//! | decision | where |
//! |---|---|
//! | stay awake, become the successor, reserve the lock, park | [`Policy`], below |
//! | hand the lock off; yield a place; which waiter to wake | below |
//! | nap instead of competing for the lock | [`Monopoly`], `monopoly.rs` |
//! | how many to wake; whether the successor is late | [`WakeRecord`], `wakes.rs` |
//!
//! How long a waiter stays awake, and what it does meanwhile, is the policy of all locks
//! ([`SpinPolicy`]). This file adds which waiter is served:
//!
//! * A waiter becomes the successor, if there is none, after [`ANONYMOUS`] yields, or at once if
//!   other threads are parked: then no unlock wakes one of them while this waiter is awake. Before
//!   that, the waiter leaves no trace in the word, and the holder's fast paths are the uncontended
//!   ones.
//! * A successor that has spent its budget reserves the lock, if the lock was taken past it
//!   meanwhile: the next unlock leaves the lock to the successor. If no thread took it, the holder
//!   keeps the lock for long, and the successor parks.
//! * If a reserved lock stays free for longer than [`SUCCESSOR_RUNS_WITHIN`], its successor does
//!   not run, and any thread may take the lock.
//! * Every [`ROTATE_EVERY`], a waiter that would become the successor parks in the place of the one
//!   that has waited longest.
//!
//! Nothing in this folder knows a mutex or reads a clock: the tests run the whole policy on
//! simulated time.

mod monopoly;
mod wakes;

pub(super) use monopoly::{
    ENOUGH_TURNS, LOOK_EVERY, LOOKS_AFTER_NAP, MOST_LOOKS, MOST_LOOKS_AT_ONE, Monopoly, SAMPLE,
    SAMPLE_EVERY, Sample, Use,
};
pub(super) use wakes::WakeRecord;

use crate::park::spin::{LONGEST_STAY, SpinPolicy};

/// The number of yields before a waiter becomes the successor: some 3 µs if no other thread runs.
/// Tried: 3, 15 and 30, within the noise.
const ANONYMOUS: u32 = 7;
/// How long a free lock is left to its successor, in nanoseconds: longer than a yield, after which
/// the successor looks again.
const SUCCESSOR_RUNS_WITHIN: u64 = 2_000;
/// How long a successor stays awake for a lock that is reserved for it.
const RESERVED_FOR: u64 = LONGEST_STAY / 2;
/// How often, at most, a waiter that has just come parks in the place of one that has waited for
/// long, in nanoseconds. Waking that one takes some 10 µs of CPU: 2 % of the time. Tried: 50, 100,
/// 150 and 1000 µs, within the noise.
pub(super) const ROTATE_EVERY: u64 = 500_000;
/// A waiter that has not got the lock this many nanoseconds after it first became the successor is
/// handed the lock. (The time does not start at its arrival. With many waiters all have waited
/// long, and if each were handed the lock, no thread would use it twice.) A real-time thread: this
/// long after its arrival, once it has parked.
pub(super) const IMPATIENT_AFTER: u64 = 1_000_000;
/// A waiter that has waited this many microseconds may take the place of a newer one.
const STEP_ASIDE_AFTER: u64 = 30;
/// A waiter that has waited for this many microseconds is not passed over for a better match.
pub(super) const PASSED_OVER_FOR: u64 = 20_000;
/// How many waiters a waker examines to find a suitable one.
pub(super) const LOOK_THROUGH: usize = 16;

/// Whether a parked waiter, which has waited for `waited` microseconds, gets the place of a newer
/// one that would become the successor but parks instead. `None`: neither it nor any waiter behind
/// it. Prefers a waiter that last ran on the CPU of the newer one, which is about to become free.
pub(super) fn takes_place(waited: u64, ran_here: bool) -> Option<bool> {
    match waited {
        ..STEP_ASIDE_AFTER => None,
        waited => Some(ran_here || waited >= PASSED_OVER_FOR),
    }
}

/// What a waiter sees of the lock.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    /// The lock is free, but left to the successor.
    pub(super) is_reserved: bool,
    pub(super) has_successor: bool,
    pub(super) has_parked: bool,
    pub(super) is_monopolized: bool,
    /// It is time for the successor to count turns.
    pub(super) is_sample_due: bool,
}

/// The next step of a waiter that is not the successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Newcomer {
    Linger,
    /// Takes the lock past its successor.
    TakeReserved,
    BecomeSuccessor,
    Park,
}

/// The next step of the successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Successor {
    Linger,
    /// Reserves the lock, and continues to linger.
    Reserve,
    Park,
}

/// The policy of one waiter, from when it begins to linger until it parks or has the lock. Times
/// are in nanoseconds.
#[derive(Clone, Copy)]
pub(super) struct Policy {
    spin: SpinPolicy,
    /// When the lock was first seen free and left to its successor.
    seen_reserved: Option<u64>,
    /// When the lock was reserved for this waiter.
    reserved: Option<u64>,
}

impl Policy {
    pub(super) fn begin(spin: SpinPolicy) -> Self {
        Self { spin, seen_reserved: None, reserved: None }
    }

    pub(super) fn spin(&self) -> &SpinPolicy {
        &self.spin
    }

    pub(super) fn is_reserved(&self) -> bool {
        self.reserved.is_some()
    }

    /// Stays awake for a moment longer.
    pub(super) fn linger(&mut self, linger: impl FnOnce(&mut SpinPolicy) -> bool) {
        if linger(&mut self.spin) {
            // Other threads ran, perhaps the successor. What is reserved now may be another
            // reservation.
            self.seen_reserved = None;
        }
    }

    pub(super) fn newcomer(&mut self, now: u64, seen: Seen) -> Newcomer {
        if seen.is_reserved {
            let since = *self.seen_reserved.get_or_insert(now);
            return match now.wrapping_sub(since) > SUCCESSOR_RUNS_WITHIN {
                true => Newcomer::TakeReserved,
                false => Newcomer::Linger,
            };
        }
        self.seen_reserved = None;
        let is_over = self.spin.is_over(now) || seen.is_monopolized;
        match seen {
            Seen { has_successor: true, .. } if is_over => Newcomer::Park,
            Seen { has_successor: true, .. } => Newcomer::Linger,
            _ if is_over || seen.has_parked || seen.is_sample_due => Newcomer::BecomeSuccessor,
            _ if self.spin.yields() >= ANONYMOUS => Newcomer::BecomeSuccessor,
            _ => Newcomer::Linger,
        }
    }

    /// Records, for a successor that has napped, that the lock is reserved for it.
    pub(super) fn reserve(&mut self, now: u64) {
        self.reserved = Some(now);
    }

    /// Returns the successor's next step. `was_taken`: other threads have taken the lock since this
    /// one became the successor.
    pub(super) fn successor(&mut self, now: u64, was_taken: bool) -> Successor {
        match self.reserved {
            Some(since) if now.wrapping_sub(since) > RESERVED_FOR => Successor::Park,
            None if self.spin.is_over(now) => match was_taken {
                true => {
                    self.reserved = Some(now);
                    Successor::Reserve
                }
                false => Successor::Park,
            },
            _ => Successor::Linger,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::park::spin::BETWEEN_YIELDS;

    const HELD: Seen = Seen {
        is_reserved: false,
        has_successor: false,
        has_parked: false,
        is_monopolized: false,
        is_sample_due: false,
    };
    const WITH_SUCCESSOR: Seen = Seen { has_successor: true, ..HELD };
    const RESERVED: Seen = Seen { is_reserved: true, ..WITH_SUCCESSOR };

    /// A simulated clock that advances with the load.
    struct Load {
        stay: Policy,
        now: u64,
    }

    impl Load {
        fn begin(budget: u64) -> Self {
            let now = 1_000_000;
            let stay = Policy::begin(SpinPolicy::begin(now, budget));
            Self { stay, now }
        }

        /// One yield that takes this many nanoseconds, and the pause before it.
        fn yields(&mut self, took: u64) {
            self.stay.linger(|spin| {
                if spin.pauses() {
                    self.now += BETWEEN_YIELDS.as_nanos() as u64;
                }
                let from = self.now;
                self.now += took;
                spin.yielded(from, self.now)
            });
        }

        fn newcomer(&mut self, seen: Seen) -> Newcomer {
            self.stay.newcomer(self.now, seen)
        }
    }

    #[test]
    fn alone_it_lingers_without_a_trace_and_then_becomes_the_successor() {
        let mut load = Load::begin(LONGEST_STAY);
        for _ in 0..ANONYMOUS {
            assert_eq!(load.newcomer(HELD), Newcomer::Linger);
            load.yields(400);
        }
        assert_eq!(load.newcomer(HELD), Newcomer::BecomeSuccessor);
        // At once if other threads are parked, one of which the next unlock would wake.
        let seen = Seen { has_parked: true, ..HELD };
        assert_eq!(Load::begin(LONGEST_STAY).newcomer(seen), Newcomer::BecomeSuccessor);
    }

    #[test]
    fn behind_a_successor_it_parks_when_it_has_spent_its_budget() {
        let mut load = Load::begin(10_000);
        let mut yields = 0;
        while load.newcomer(WITH_SUCCESSOR) == Newcomer::Linger {
            load.yields(400);
            yields += 1;
        }
        assert_eq!(load.newcomer(WITH_SUCCESSOR), Newcomer::Park);
        assert_eq!(yields, 10_000 / 500);
    }

    #[test]
    fn a_yield_that_switched_counts_as_much_however_long_it_took() {
        for took in [2_000, 3_000_000] {
            let mut load = Load::begin(LONGEST_STAY);
            let mut yields = 0;
            while load.newcomer(WITH_SUCCESSOR) == Newcomer::Linger {
                load.yields(took);
                yields += 1;
            }
            assert_eq!(yields, 8);
        }
    }

    #[test]
    fn a_reserved_lock_is_left_to_its_successor_for_a_moment_only() {
        // The time that it has spent before makes no difference.
        for spent in [0, LONGEST_STAY] {
            let mut load = Load::begin(LONGEST_STAY);
            load.now += spent;
            assert_eq!(load.newcomer(RESERVED), Newcomer::Linger);
            load.now += SUCCESSOR_RUNS_WITHIN;
            assert_eq!(load.newcomer(RESERVED), Newcomer::Linger);
            load.now += 1;
            assert_eq!(load.newcomer(RESERVED), Newcomer::TakeReserved);
        }
    }

    #[test]
    fn a_reservation_that_ends_or_may_have_ended_is_not_held_against_the_next_successor() {
        let mut load = Load::begin(LONGEST_STAY);
        assert_eq!(load.newcomer(RESERVED), Newcomer::Linger);
        load.now += SUCCESSOR_RUNS_WITHIN;
        assert_eq!(load.newcomer(WITH_SUCCESSOR), Newcomer::Linger);
        load.now += 1;
        assert_eq!(load.newcomer(RESERVED), Newcomer::Linger);
        // Other threads ran on this CPU, perhaps the successor.
        load.yields(SUCCESSOR_RUNS_WITHIN + 1);
        assert_eq!(load.newcomer(RESERVED), Newcomer::Linger);
    }

    #[test]
    fn a_successor_has_the_lock_reserved_if_it_was_taken_past_it() {
        let mut load = Load::begin(5_000);
        assert_eq!(load.stay.successor(load.now, true), Successor::Linger);
        load.now += 5_000;
        assert_eq!(load.stay.successor(load.now, true), Successor::Reserve);
        assert!(load.stay.is_reserved());
        assert_eq!(load.stay.successor(load.now, true), Successor::Linger);
        load.now += RESERVED_FOR + 1;
        assert_eq!(load.stay.successor(load.now, true), Successor::Park);
    }

    #[test]
    fn at_a_monopolized_lock_no_waiter_lingers() {
        let monopolized = |seen| Seen { is_monopolized: true, ..seen };
        let come = |seen| Load::begin(LONGEST_STAY).newcomer(seen);
        assert_eq!(come(monopolized(HELD)), Newcomer::BecomeSuccessor);
        assert_eq!(come(monopolized(WITH_SUCCESSOR)), Newcomer::Park);
        assert_eq!(come(monopolized(RESERVED)), Newcomer::Linger);
        let due = Seen { is_sample_due: true, ..HELD };
        assert_eq!(come(due), Newcomer::BecomeSuccessor);
    }

    #[test]
    fn a_successor_that_has_napped_does_not_wait_for_long() {
        let mut load = Load::begin(LONGEST_STAY);
        load.stay.reserve(load.now);
        assert_eq!(load.stay.successor(load.now, false), Successor::Linger);
        load.now += RESERVED_FOR + 1;
        assert_eq!(load.stay.successor(load.now, false), Successor::Park);
    }

    #[test]
    fn a_successor_whose_holder_keeps_the_lock_parks() {
        let mut load = Load::begin(5_000);
        load.now += 5_000;
        assert_eq!(load.stay.successor(load.now, false), Successor::Park);
    }
}
