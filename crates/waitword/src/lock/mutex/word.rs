//! The bits of a private mutex's word, and what may be done with each value.
//!
//! | bits  | name    | meaning | may it be wrong? |
//! |-------|---------|---------|------------------|
//! | 0     | LOCKED  | somebody holds it | never |
//! | 1     | PARKED  | somebody is parked on it | set with nobody there: until the next unlock looks; clear with somebody there: never |
//! | 2     | HANDOFF | once it is free it is the successor's: nobody else takes it | only together with the successor's number |
//! |       | URGENT  | the same bit without a successor's number: a real-time thread is parked (`real_time.rs`) | set with none there: until the next unlock looks |
//! | 3     | SPECIAL | an owner is kept (`special.rs`) | never |
//! | 4-7   | turn    | how often it was taken while there was a successor, modulo 16. SPECIAL: what else it is, for good | it is but a hint |
//! | 8-15  | successor    | 0: no waiter is awake; else one is, in the process of this fork generation | a number of another generation means that none is |
//! | 16-31 | levels  | SPECIAL: how often more its owner holds it; else 0 | never |
//!
//! A free lock that nobody waits for is 0 (or SPECIAL alone), and one that was taken without contention LOCKED
//! alone: the fast paths know these two values only.

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
/// SPECIAL: how often an owner can lock again.
pub(super) const MOST_LEVELS: u32 = 0xffff;

/// A value of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State(pub(super) u32);

impl State {
    #[inline]
    pub(super) fn is_locked(self) -> bool {
        self.0 & LOCKED != 0
    }

    /// Locked, and nothing else has to be asked: of a special one, its owner may be the caller, and a PI one's word says nothing.
    #[inline]
    pub(super) fn is_plainly_locked(self) -> bool {
        self.0 & (LOCKED | SPECIAL) == LOCKED
    }

    #[inline]
    pub(super) fn is_special(self) -> bool {
        self.0 & SPECIAL != 0
    }

    /// SPECIAL: how often more than once its owner holds it.
    #[inline]
    pub(super) fn levels(self) -> u32 {
        self.0 >> LEVEL_SHIFT
    }

    #[inline]
    pub(super) fn has_parked(self) -> bool {
        self.0 & PARKED != 0
    }

    /// Whether a waiter is awake, who will take the lock or see to it that another one wakes up.
    #[inline(always)]
    pub(super) fn has_successor(self) -> bool {
        self.0 & SUCCESSOR != 0 && self.0 & SUCCESSOR == successor_now()
    }

    /// Whether a thread that is not the successor may take it: it is free and not reserved.
    #[inline(always)]
    pub(super) fn may_barge(self) -> bool {
        !self.is_locked() && (self.0 & HANDOFF == 0 || !self.has_successor())
    }

    /// Whether it is free, but reserved for the successor.
    #[inline]
    pub(super) fn is_reserved(self) -> bool {
        !self.is_locked() && !self.may_barge()
    }

    /// Whether a real-time thread is parked, and no successor counts.
    #[inline]
    pub(super) fn is_urgent(self) -> bool {
        self.0 & (SUCCESSOR | URGENT) == URGENT
    }

    /// How often it was taken since there is a successor: differs if it was, unless a multiple of 16 times.
    #[inline]
    pub(super) fn turn(self) -> u32 {
        self.0 & self.turn_bits()
    }

    /// How often it was taken since an earlier state, while there was a successor: modulo 16. 0 of a
    /// special one.
    #[cfg(not(loom))]
    pub(super) fn turns_since(self, earlier: Self) -> u32 {
        (self.turn().wrapping_sub(earlier.turn()) & TURN) / ONE_TURN
    }

    /// Whether there is a successor, and the count of turns is about to begin anew.
    #[inline(always)]
    pub(super) fn is_last_turn(self) -> bool {
        self.0 & TURN == TURN && self.has_successor()
    }

    /// The bits that count turns.
    #[inline]
    fn turn_bits(self) -> u32 {
        if self.is_special() { 0 } else { TURN }
    }

    /// As taken by the calling thread, which is not the successor.
    #[inline(always)]
    pub(super) fn taken(self) -> Self {
        if !self.has_successor() {
            // If a number stands there, it is of a successor in the process that we were forked from.
            return self.inherited();
        }
        let turn = self.turn_bits();
        let next_turn = self.0.wrapping_add(ONE_TURN) & turn;
        Self(self.0 & !turn | LOCKED | next_turn)
    }

    /// As taken by the calling thread, which does not wait; `None` if it must.
    #[inline]
    pub(super) fn taken_at_once(self) -> Option<Self> {
        self.may_barge().then(|| self.taken())
    }

    /// As taken by the calling thread, which is the successor and is so no more.
    #[inline(always)]
    pub(super) fn inherited(self) -> Self {
        Self(self.without_successor().0 | LOCKED)
    }

    /// As released.
    #[inline(always)]
    pub(super) fn released(self) -> Self {
        let released = Self(self.0 & !LOCKED);
        if self.0 & SUCCESSOR != 0 && !self.has_successor() {
            return released.without_dead_successor();
        }
        released
    }

    /// Of a successor in the process that we were forked from nothing stays.
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

    /// With no real-time thread parked, and others or none.
    #[inline]
    pub(super) fn with_ordinary_left(self, parked: bool) -> Self {
        let urgent = if self.is_urgent() { URGENT } else { 0 };
        let parked = if parked { PARKED } else { 0 };
        Self(self.0 & !(PARKED | urgent) | parked)
    }

    /// As taken past the successor that it is reserved for.
    #[inline]
    pub(super) fn taken_though_reserved(self) -> Self {
        Self(self.0 & !HANDOFF).taken()
    }

    /// As reserved for the successor, if there is one.
    #[inline]
    pub(super) fn with_handoff(self) -> Self {
        match self.has_successor() {
            true => Self(self.0 | HANDOFF),
            false => self,
        }
    }
}

/// What stands for a living successor: the low byte of the number of this generation of forks, which is never 0. After 255 forks of
/// forks it comes again; that a lock was left with a successor in the first of them, and was never unlocked in
/// between, is not worth a wider field.
#[inline(always)]
fn successor_now() -> u32 {
    #[cfg(not(loom))]
    let generation = crate::sys::generation::generation();
    #[cfg(loom)]
    let generation = 1_u32;
    generation << SUCCESSOR_SHIFT & SUCCESSOR
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_uncontended_lock_has_the_values_that_the_fast_paths_know() {
        let free = State(0);
        assert_eq!(free.taken().released().0, 0);
        assert_eq!(free.with_successor().inherited().released().0, 0);
        assert_eq!(
            free.with_successor()
                .taken()
                .without_successor()
                .released()
                .0,
            0
        );
        let kinds = State(SPECIAL | TURN);
        assert_eq!(
            kinds
                .with_successor()
                .taken()
                .without_successor()
                .released(),
            kinds
        );
        let special = State(SPECIAL);
        assert_eq!(special.taken().0, SPECIAL | LOCKED);
        assert_eq!(special.taken().released().0, SPECIAL);
    }

    #[test]
    fn a_successor_of_another_generation_is_none() {
        let here = State(LOCKED)
            .with_parked(true)
            .with_successor()
            .with_handoff();
        assert!(here.has_successor());
        let elsewhere = State(here.0 ^ 0x80 << SUCCESSOR_SHIFT);
        assert!(!elsewhere.has_successor());
        assert!(elsewhere.released().may_barge());
        assert!(here.released().is_reserved());
        // Whoever takes it leaves nothing of the dead successor.
        assert_eq!(
            elsewhere.released().taken().released().0,
            State(0).with_parked(true).0
        );
    }

    #[test]
    fn a_real_time_thread_that_parks_takes_the_place_of_the_successor() {
        let held = State(LOCKED).with_successor().with_handoff();
        let urgent = held.with_real_time_parked();
        assert!(urgent.is_urgent() && urgent.has_parked() && !urgent.has_successor());
        // Nothing that others do makes it forget the waiter, or a reservation of it.
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
        assert_eq!(
            urgent.with_parked(false).released().0,
            State(LOCKED).released().0
        );
        assert!(!held.is_urgent());
        assert!(!State(LOCKED).with_parked(true).is_urgent());
    }

    #[test]
    fn one_that_is_taken_though_reserved_keeps_its_successor_and_is_reserved_no_more() {
        let reserved = State(0).with_parked(true).with_successor().with_handoff();
        assert!(reserved.is_reserved());
        let taken = reserved.taken_though_reserved();
        assert!(taken.is_locked() && taken.has_successor() && taken.has_parked());
        assert!(taken.released().may_barge());
    }

    #[test]
    fn a_turn_is_counted_while_there_is_an_successor() {
        let waiting = State(LOCKED).with_successor();
        let later = waiting.released().taken();
        assert!(later.has_successor() && later.turn() != waiting.turn());
    }

    #[test]
    fn turns_begin_anew_and_touch_nothing_else() {
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
