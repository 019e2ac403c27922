//! The bits of a private mutex's word, and the transitions between its values.
//!
//! | bits  | name      | meaning |
//! |-------|-----------|---------|
//! | 0     | LOCKED    | the mutex is held |
//! | 1     | PARKED    | a waiter is parked on the mutex |
//! | 2     | HANDOFF   | with a successor: once free, the mutex is reserved for it |
//! |       | URGENT    | without one: a real-time thread is parked (`real_time.rs`) |
//! | 3     | SPECIAL   | the mutex keeps an owner (`owner.rs`) |
//! | 4-7   | turn      | acquisitions past the successor, modulo 16 |
//! |       |           | SPECIAL: the permanent traits of the mutex |
//! | 8-15  | successor | 0: there is none; otherwise the fork generation of the successor |
//! | 16-31 | levels    | SPECIAL: additional recursive holds by the owner; otherwise 0 |
//!
//! Some bits may be stale:
//!
//! * PARKED and URGENT may be set with no such waiter parked, until the next unlock checks. PARKED
//!   is never clear while a waiter is parked.
//! * HANDOFF counts only together with the successor's number.
//! * A successor's number of another fork generation means that there is no successor.
//! * The turn is only a hint.
//!
//! A free mutex without waiters is 0 (or SPECIAL with its traits). One that was taken without
//! contention is LOCKED alone. The fast paths know only 0 and LOCKED.
//!
//! # Which thread changes them
//!
//! * LOCKED: set by a thread that takes the lock: any, or the successor if it is reserved. Cleared
//!   by the holder; it leaves it set for a waiter that it hands the lock to.
//! * PARKED: set by a waiter that parks, or a condvar that moves waiters here (1). Cleared by an
//!   unlock, or a waiter that gives up, that leaves no waiter parked (1).
//! * HANDOFF: set by the successor, once it has waited long enough, or a fair unlock. Cleared by
//!   the next thread that takes the lock, or the successor when it parks or resigns.
//! * URGENT: set by a real-time thread that parks, or a condvar that moves one here (1). Cleared
//!   as PARKED is, when no real-time thread is left (1).
//! * turn: set by a thread that takes the lock past the successor. Cleared by the successor, when
//!   it is no longer one.
//! * successor: set by a waiter that makes itself the successor, or an unlock for a waiter that
//!   it wakes (1). Cleared by the successor, when it takes the lock, parks (1) or resigns.
//!
//! 1. Under the bucket lock, in one step with the change of the queue.
//!
//! The holder changes SPECIAL's levels; its traits never change. A process-shared mutex has no
//! successor, and a waiter sets its HANDOFF (`shared.rs`).

use super::RawPosixMutex;
use crate::atomic::Ordering;
use crate::record;
use crate::sys::generation::generation;

pub(super) const LOCKED: u32 = 1;
pub(super) const PARKED: u32 = 1 << 1;
pub(super) const HANDOFF: u32 = 1 << 2;
const URGENT: u32 = HANDOFF;
pub(super) const SPECIAL: u32 = 1 << 3;
const ONE_TURN: u32 = 1 << 4;
const TURN: u32 = 0xf << 4;
const SUCCESSOR_SHIFT: u32 = 8;
const SUCCESSOR: u32 = 0xff << SUCCESSOR_SHIFT;
const LEVEL_SHIFT: u32 = 16;
/// SPECIAL: one level of recursion.
pub(super) const ONE_LEVEL: u32 = 1 << LEVEL_SHIFT;
/// SPECIAL: how many more times an owner can lock.
pub(super) const MOST_LEVELS: u32 = 0xffff;

/// A value of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State(pub(super) u32);

impl State {
    #[inline]
    pub(super) fn is_locked(self) -> bool {
        self.0 & LOCKED != 0
    }

    /// Whether it is locked and nothing else needs to be checked. (The owner of a SPECIAL mutex may
    /// be the caller, and the word of a priority-inheriting one does not show whether it is held.)
    #[inline]
    pub(super) fn is_plainly_locked(self) -> bool {
        self.0 & (LOCKED | SPECIAL) == LOCKED
    }

    #[inline]
    pub(super) fn is_special(self) -> bool {
        self.0 & SPECIAL != 0
    }

    /// SPECIAL: how many times the owner holds it beyond the first.
    #[inline]
    pub(super) fn levels(self) -> u32 {
        self.0 >> LEVEL_SHIFT
    }

    #[inline]
    pub(super) fn has_parked(self) -> bool {
        self.0 & PARKED != 0
    }

    /// Whether there is a successor: a waiter that is awake and will take the lock, or wake another
    /// waiter.
    #[inline(always)]
    pub(super) fn has_successor(self) -> bool {
        self.0 & SUCCESSOR != 0 && self.0 & SUCCESSOR == successor_now()
    }

    /// Whether a thread that is not the successor may take the lock: it is free and not reserved.
    #[inline(always)]
    pub(super) fn may_barge(self) -> bool {
        !self.is_locked() && (self.0 & HANDOFF == 0 || !self.has_successor())
    }

    /// Whether the lock is free, but reserved for the successor.
    #[inline]
    pub(super) fn is_reserved(self) -> bool {
        !self.is_locked() && !self.may_barge()
    }

    /// Whether a real-time thread is parked, so that there is no successor.
    #[inline]
    pub(super) fn is_urgent(self) -> bool {
        self.0 & (SUCCESSOR | URGENT) == URGENT
    }

    /// The count of acquisitions past the successor. It changes with each of them, and repeats
    /// after 16.
    #[inline]
    pub(super) fn turn(self) -> u32 {
        self.0 & self.turn_bits()
    }

    /// How many times the lock was taken past the successor since the `earlier` state, modulo 16.
    /// Always 0 for a SPECIAL mutex.
    pub(super) fn turns_since(self, earlier: Self) -> u32 {
        (self.turn().wrapping_sub(earlier.turn()) & TURN) / ONE_TURN
    }

    /// Whether there is a successor and the count of turns is about to wrap.
    #[inline(always)]
    pub(super) fn is_last_turn(self) -> bool {
        self.0 & TURN == TURN && self.has_successor()
    }

    /// The bits that count turns.
    #[inline]
    fn turn_bits(self) -> u32 {
        if self.is_special() { 0 } else { TURN }
    }

    /// Taken by the calling thread, which is not the successor.
    #[inline(always)]
    pub(super) fn taken(self) -> Self {
        if !self.has_successor() {
            // A number that is still set belongs to a successor in the process that this one was
            // forked from.
            return self.inherited();
        }
        let turn = self.turn_bits();
        let next_turn = self.0.wrapping_add(ONE_TURN) & turn;
        Self(self.0 & !turn | LOCKED | next_turn)
    }

    /// Taken by the calling thread without waiting; `None` if it must wait.
    #[inline]
    pub(super) fn taken_at_once(self) -> Option<Self> {
        self.may_barge().then(|| self.taken())
    }

    /// Taken by the calling thread, which is the successor and is no longer once it holds the lock.
    #[inline(always)]
    pub(super) fn inherited(self) -> Self {
        Self(self.without_successor().0 | LOCKED)
    }

    /// Released.
    #[inline(always)]
    pub(super) fn released(self) -> Self {
        let released = Self(self.0 & !LOCKED);
        if self.0 & SUCCESSOR != 0 && !self.has_successor() {
            return released.without_dead_successor();
        }
        released
    }

    /// Removes what is left of a successor in the process that this one was forked from.
    #[cold]
    #[inline(never)]
    fn without_dead_successor(self) -> Self {
        self.without_successor()
    }

    #[inline]
    pub(super) fn with_successor(self) -> Self {
        Self(self.0 & !(SUCCESSOR | HANDOFF) | successor_now())
    }

    #[inline]
    pub(super) fn without_successor(self) -> Self {
        let handoff = if self.is_urgent() { 0 } else { HANDOFF };
        Self(self.0 & !(SUCCESSOR | handoff | self.turn_bits()))
    }

    #[inline]
    pub(super) fn with_parked(self, parked: bool) -> Self {
        match parked {
            true => Self(self.0 | PARKED),
            false => self.with_ordinary_left(false),
        }
    }

    /// With a real-time thread parked.
    #[inline]
    pub(super) fn with_real_time_parked(self) -> Self {
        Self(self.without_successor().0 | PARKED | URGENT)
    }

    /// With no real-time thread parked; `parked` tells whether other threads are.
    #[inline]
    pub(super) fn with_ordinary_left(self, parked: bool) -> Self {
        let urgent = if self.is_urgent() { URGENT } else { 0 };
        let parked = if parked { PARKED } else { 0 };
        Self(self.0 & !(PARKED | urgent) | parked)
    }

    /// Taken past the successor that the lock is reserved for.
    #[inline]
    pub(super) fn taken_though_reserved(self) -> Self {
        Self(self.0 & !HANDOFF).taken()
    }

    /// Reserved for the successor, if there is one.
    #[inline]
    pub(super) fn with_handoff(self) -> Self {
        match self.has_successor() {
            true => Self(self.0 | HANDOFF),
            false => self,
        }
    }
}

/// The number of a live successor: the low byte of the fork generation, which is never 0. The byte
/// repeats after 255 nested forks. For a stale number to count, a mutex would have to keep the
/// successor of the first of these generations and never be unlocked in between. That is not worth
/// a wider field.
#[inline(always)]
fn successor_now() -> u32 {
    generation() << SUCCESSOR_SHIFT & SUCCESSOR
}

/// Access to the word.
impl RawPosixMutex {
    #[inline]
    pub(super) fn state(&self) -> State {
        // Acquire: an unlock that reads PARKED must find the table that the waiter is queued in.
        State(self.alive(self.word.load(Ordering::Acquire)))
    }

    /// Tries once to change the word.
    #[inline]
    pub(super) fn change(&self, from: State, to: State, success: Ordering) -> Result<(), State> {
        self.word
            .compare_exchange_weak(from.0, to.0, success, Ordering::Acquire)
            .map(drop)
            .map_err(|now| State(self.alive(now)))
    }

    /// In a model: checks that the value was not read from a mutex whose memory has been freed.
    #[inline(always)]
    pub(super) fn alive(&self, seen: u32) -> u32 {
        #[cfg(loom)]
        assert_ne!(seen, super::FREED, "a mutex is used after it was freed");
        seen
    }

    /// Changes the word without ordering anything.
    pub(super) fn set(&self, mut to: impl FnMut(State) -> State) {
        let mut state = self.state();
        while let Err(now) = self.change(state, to(state), Ordering::Relaxed) {
            state = now;
        }
    }

    /// Changes the word in a way that releases the mutex.
    pub(super) fn release(&self, to: impl Fn(State) -> State) {
        let mut state = self.state();
        while let Err(now) = self.change(state, to(state), Ordering::Release) {
            state = now;
        }
    }

    /// Under the bucket's lock: announces a waiter in the word, unless it need not wait. Returns
    /// whether it waits.
    pub(super) fn announce(&self, mut to: impl FnMut(State) -> Option<State>) -> bool {
        let mut state = self.state();
        while let Some(next) = to(state) {
            // Release: publishes the table that the waiter is about to be queued in.
            match self.change(state, next, Ordering::Release) {
                Ok(()) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    /// Whether a waiter that leaves without the mutex leaves PARKED set: others wait, or the holder
    /// may have set it (`sees_to_a_long_unlock`).
    #[inline]
    pub(super) fn stays_parked(others_wait: bool) -> bool {
        others_wait || record::is_on()
    }

    /// Under the bucket's lock: notes that a waiter has left.
    pub(super) fn note_parked(&self, others_wait: bool) {
        if !Self::stays_parked(others_wait) {
            self.set(|state| state.with_parked(false));
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_uncontended_lock_has_the_values_that_the_fast_paths_know() {
        let free = State(0);
        assert_eq!(free.taken().released().0, 0);
        assert_eq!(free.with_successor().inherited().released().0, 0);
        assert_eq!(free.with_successor().taken().without_successor().released().0, 0);
        let kinds = State(SPECIAL | TURN);
        assert_eq!(kinds.with_successor().taken().without_successor().released(), kinds);
        let special = State(SPECIAL);
        assert_eq!(special.taken().0, SPECIAL | LOCKED);
        assert_eq!(special.taken().released().0, SPECIAL);
    }

    #[test]
    fn a_successor_of_another_generation_is_none() {
        let here = State(LOCKED).with_parked(true).with_successor().with_handoff();
        assert!(here.has_successor());
        let elsewhere = State(here.0 ^ 0x80 << SUCCESSOR_SHIFT);
        assert!(!elsewhere.has_successor());
        assert!(elsewhere.released().may_barge());
        assert!(here.released().is_reserved());
        // The thread that takes it leaves nothing of the dead successor.
        assert_eq!(elsewhere.released().taken().released().0, State(0).with_parked(true).0);
    }

    #[test]
    fn a_real_time_thread_that_parks_takes_the_place_of_the_successor() {
        let held = State(LOCKED).with_successor().with_handoff();
        let urgent = held.with_real_time_parked();
        assert!(urgent.is_urgent() && urgent.has_parked() && !urgent.has_successor());
        // No change by another thread loses the waiter, or reserves the lock for it.
        let later = [
            urgent.with_handoff(),
            urgent.without_successor(),
            urgent.with_parked(true),
            urgent.released().taken().without_successor(),
            urgent.released().inherited(),
        ];
        for state in later {
            assert!(state.is_urgent() && state.has_parked(), "{state:?}");
            assert!(state.released().may_barge());
        }
        let left = urgent.with_ordinary_left(true);
        assert!(left.has_parked() && !left.is_urgent());
        assert_eq!(urgent.with_parked(false).released().0, State(LOCKED).released().0);
        assert!(!held.is_urgent());
        assert!(!State(LOCKED).with_parked(true).is_urgent());
    }

    #[test]
    fn a_reserved_lock_that_is_taken_keeps_its_successor_and_loses_its_reservation() {
        let reserved = State(0).with_parked(true).with_successor().with_handoff();
        assert!(reserved.is_reserved());
        let taken = reserved.taken_though_reserved();
        assert!(taken.is_locked() && taken.has_successor() && taken.has_parked());
        assert!(taken.released().may_barge());
    }

    #[test]
    fn a_turn_is_counted_while_there_is_a_successor() {
        let waiting = State(LOCKED).with_successor();
        let later = waiting.released().taken();
        assert!(later.has_successor() && later.turn() != waiting.turn());
    }

    #[test]
    fn the_count_of_turns_wraps_and_changes_nothing_else() {
        let waiting = State(LOCKED).with_parked(true).with_successor();
        let mut state = waiting;
        let turns: Vec<u32> = (0..16)
            .map(|_| {
                assert_eq!(state.0 & !TURN, waiting.0);
                state = state.released().taken();
                state.turn()
            })
            .collect();
        assert_eq!(turns[15], waiting.turn());
        let third = waiting.released().taken().released().taken();
        assert_eq!(third.turns_since(waiting), 2);
        assert_eq!(waiting.turns_since(third), 14);
        assert!(turns[..15].iter().all(|&turn| turn != waiting.turn()));
    }
}
