//! Giving a private lock back to those who wait for it: who is next, and what the word says then, in one step with the queue,
//! under the bucket's lock.
//!
//! `policy.rs` decides which waiter is next.
//!
//! # Late
//!
//! A release by subtraction (`fast.rs`) may find out that somebody queued only once the lock is free, and whoever takes it
//! next may free its memory. So it looks at the queue first. If somebody stands in it who waits for a rwlock, then the
//! lock is there, since it has a waiter that cannot leave without the bucket's lock: perhaps a later lock at the same place, to
//! which this does no harm either, since it does only what is due anyway.

use super::RawRwLock;
use super::policy::{CLAIM, READ, RWLOCK, TAKE_OVER, WRITE, Whom, most_others, who_is_next};
use super::rank::Rank;
use super::state::{
    CLAIM_WAITS, CLAIMED, FAST, READERS_WAIT, Release, SLOTS, State, TURN, WOKEN, WRITER,
    WRITERS_WAIT,
};
use crate::atomic::Ordering::{AcqRel, Acquire};
use crate::atomic::fence;
use crate::futex::parking::{Token, unpark};
use crate::lock::key_of;
use crate::park::spin;
use crate::private::{Choice, Unparked, waiter_table};
use crate::stats::{self, Event};
use core::cell::Cell;

/// Look again.
pub(super) const LOOK_AGAIN: Token = 0;
/// You hold it.
pub(super) const GRANTED: Token = 1;
/// You hold the claim: drive out the readers, and you have it.
pub(super) const CLAIM_GRANTED: Token = 2;

/// Whether one of `kinds`, or-ed, is this one.
#[inline]
fn includes(kinds: u64, kind: u64) -> bool {
    kinds & kind & !RWLOCK != 0
}

/// Why somebody goes to the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Occasion {
    /// It gives this up, and whoever stands first is to get the lock if `fair`.
    Leaves { release: Release, fair: bool },
    /// It has left, and found out late that somebody waits.
    HasLeft,
}

/// One look at the queue. In cells, since the queue is looked at by one closure and the word changed by another.
struct Look<'a> {
    lock: &'a RawRwLock,
    occasion: Occasion,
    /// Decided when the first waiter is seen; `None`: there is none.
    whom: Cell<Option<Whom>>,
    /// What that one waits for.
    first: Cell<u64>,
    /// Nobody was taken, and somebody is due by now: nothing has been done.
    is_outdated: Cell<bool>,
    /// Whether a real-time thread stands first.
    for_real_time: Cell<bool>,
    readers_taken: Cell<u64>,
    /// How many others.
    others_taken: Cell<u32>,
    /// Those who stay, as far as they were looked at.
    stay: Cell<u64>,
    /// Whether some were not looked at.
    stopped: Cell<bool>,
    /// What is given up does not stand in the word: somebody else was faster, and left a slot in exchange.
    stands_in_a_slot: Cell<bool>,
}

impl Look<'_> {
    fn release(&self) -> Release {
        match self.occasion {
            Occasion::Leaves { release, .. } => release,
            Occasion::HasLeft => Release::Nothing,
        }
    }

    /// The word without what is given up.
    fn after(&self, state: State) -> State {
        let release = self.release();
        let stands_in_a_slot = release == Release::Reader && state.readers() == 0;
        self.stands_in_a_slot.set(stands_in_a_slot);
        match stands_in_a_slot {
            true => state,
            false => state.after(release),
        }
    }

    fn has_turn(&self, after: State) -> bool {
        let is_fair = matches!(self.occasion, Occasion::Leaves { fair: true, .. });
        is_fair || after.has(TURN) || self.for_real_time.get()
    }

    /// Who is next when the word says `after`, as far as the first in the queue tells.
    fn is_next(&self, after: State) -> Whom {
        who_is_next(after, self.first.get(), self.has_turn(after))
    }

    fn takes_nobody(&self) -> bool {
        self.readers_taken.get() == 0 && self.others_taken.get() == 0
    }

    /// Whether the next in the queue is taken.
    fn choose(&self, kind: u64) -> Choice {
        if kind & RWLOCK != RWLOCK {
            // Not a rwlock's waiter: the memory is another's by now.
            return Choice::Pass;
        }
        let (kind, rank) = Rank::taken_out_of(kind);
        let whom = self.whom.get().unwrap_or_else(|| {
            self.first.set(kind);
            self.for_real_time.set(rank.is_real_time());
            let whom = self.is_next(self.after(self.lock.state()));
            self.whom.set(Some(whom));
            whom
        });
        let takes = match whom {
            Whom::Nobody => {
                self.stopped.set(true);
                return Choice::Stop;
            }
            Whom::Readers { .. } if kind == READ => {
                self.readers_taken.set(self.readers_taken.get() + 1);
                return Choice::Take;
            }
            Whom::Readers { .. } if kind == WRITE && rank.is_real_time() => {
                // The readers behind it wait for it.
                self.stopped.set(true);
                self.stay.set(self.stay.get() | kind);
                return Choice::Stop;
            }
            Whom::Readers { and_claimant } => and_claimant && kind == CLAIM,
            Whom::First => true,
            Whom::AWriter => kind == WRITE || kind == CLAIM,
            Whom::AClaimant => {
                if kind == WRITE && self.lock.state().prefers_writers() {
                    // One that came before.
                    self.stopped.set(true);
                    self.stay.set(self.stay.get() | kind);
                    return Choice::Stop;
                }
                kind == CLAIM
            }
            Whom::TheClaimsHolder => kind == TAKE_OVER,
        };
        let taken = self.others_taken.get();
        if takes
            && (taken == 0 || taken < most_others(whom, self.lock.state(), spin::is_beside_others))
        {
            self.others_taken.set(taken + 1);
            return Choice::Take;
        }
        self.stay.set(self.stay.get() | kind);
        // Readers are looked for to the end. One who is taken alone is enough once it is known whether more
        // such wait.
        let known = taken != 0 && kind & (WRITE | CLAIM) & !RWLOCK != 0;
        if known && !matches!(whom, Whom::Readers { .. }) {
            self.stopped.set(true);
            return Choice::Stop;
        }
        Choice::Pass
    }

    /// Changes the word, in one step with the queue; what those who were taken are told.
    fn change(&self, unparked: Unparked) -> Token {
        debug_assert!(!self.stopped.get() || unparked.more);
        let nobody_waits = self.whom.get().is_none();
        if nobody_waits && self.occasion == Occasion::HasLeft {
            // Perhaps the lock is gone.
            return LOOK_AGAIN;
        }
        loop {
            let state = self.lock.state();
            let after = self.after(state);
            let (new, token) = match self.whom.get() {
                None => (forget_waiters(after), LOOK_AGAIN),
                Some(whom) if self.takes_nobody() && self.is_next(after) != whom => {
                    self.is_outdated.set(true);
                    return LOOK_AGAIN;
                }
                Some(whom) => self.outcome(after, whom),
            };
            // Release: what was done under the lock is over. Acquire: and so is what readers did who left before, for
            // whoever is handed the lock.
            if self.lock.replace(state, new, AcqRel) {
                return token;
            }
        }
    }

    /// What the word becomes, and what those who were taken are told.
    fn outcome(&self, after: State, whom: Whom) -> (State, Token) {
        let announced = self.announced(after);
        let turn_used = |state: State| match self.has_turn(after) {
            true => state.without(TURN),
            false => state,
        };
        let readers = self.readers_taken.get();
        let other = self.others_taken.get() != 0;
        match whom {
            Whom::Nobody => (after, LOOK_AGAIN),
            _ if self.takes_nobody() => (announced.without(CLAIM_WAITS), LOOK_AGAIN),
            Whom::Readers { .. } if !self.has_turn(after) => (announced, LOOK_AGAIN),
            Whom::Readers { .. } => {
                let has_room = after.readers() + readers <= super::state::MOST_READERS;
                let claim_is_free = !other || !after.has(CLAIMED);
                if after.has(WRITER) || !has_room || !claim_is_free {
                    return (announced, LOOK_AGAIN);
                }
                let granted = announced.with_readers(readers);
                let granted = if other {
                    granted.with(CLAIMED)
                } else {
                    granted
                };
                (turn_used(granted), GRANTED)
            }
            Whom::First if after.is_free() && after.has(SLOTS) => {
                let claimed = announced.with(CLAIMED).without(FAST);
                (turn_used(claimed), CLAIM_GRANTED)
            }
            Whom::First if after.is_free() => (turn_used(announced).with_writer(0), GRANTED),
            Whom::TheClaimsHolder if after.readers() == 0 => {
                (turn_used(announced).with_writer(0), GRANTED)
            }
            // A reader has come in meanwhile.
            Whom::TheClaimsHolder => (announced.without(CLAIM_WAITS), LOOK_AGAIN),
            Whom::First | Whom::AWriter | Whom::AClaimant => (announced.with(WOKEN), LOOK_AGAIN),
        }
    }

    /// `after`, saying of those who wait what has been seen of them.
    fn announced(&self, after: State) -> State {
        let stay = self.stay.get();
        let claimants = includes(stay, WRITE) || includes(stay, CLAIM);
        if self.stopped.get() {
            // It stopped at one of these, and has not seen the rest.
            return after.having(WRITERS_WAIT, claimants || after.has(WRITERS_WAIT));
        }
        after
            .having(READERS_WAIT, includes(stay, READ))
            .having(WRITERS_WAIT, claimants)
    }
}

/// Nobody waits, whatever the word says: it may be a copy from before a fork.
fn forget_waiters(state: State) -> State {
    let without_waiters = state.without(READERS_WAIT | WRITERS_WAIT);
    match waits_for_slots(state) {
        true => without_waiters,
        false => without_waiters.without(CLAIM_WAITS | TURN),
    }
}

/// Whether the claim's holder waits where no queue shows it.
fn waits_for_slots(state: State) -> bool {
    state.has(CLAIMED) && state.has(SLOTS)
}

impl RawRwLock {
    /// Gives `release` up and looks after those who wait.
    #[cold]
    pub(super) fn hand_over(&self, state: State, release: Release) {
        if state.is_shared() {
            self.release_in_kernel(release);
        } else {
            self.look(Occasion::Leaves {
                release,
                fair: false,
            });
        }
    }

    /// The same, and whoever stands first in the queue gets the lock.
    #[cold]
    pub(super) fn hand_over_fairly(&self, release: Release) {
        self.look(Occasion::Leaves {
            release,
            fair: true,
        });
    }

    /// Lets those in who need not wait any more.
    #[cold]
    pub(super) fn let_in(&self) {
        self.hand_over(self.state(), Release::Nothing);
    }

    /// After the lock has been given back, in a word that then was not as expected: it may be gone.
    ///
    /// `extern "C"`: it does not unwind, so that the calls that give back need no frame for that.
    #[cold]
    #[inline(never)]
    pub(super) extern "C" fn hand_over_late(&self) {
        // Most often it is only that somebody came in. Whoever queues counts itself before it looks at the word.
        let key = key_of(&self.word);
        if waiter_table().find_waiters(key).is_some() {
            self.look(Occasion::HasLeft);
        }
    }

    /// Looks at the queue until what it decides there is still right when the word is changed: a reader may come in meanwhile and leave
    /// again, and counts on this one to see to those who wait.
    fn look(&self, occasion: Occasion) {
        while !self.look_once(occasion) {}
    }

    /// False: nothing has been done.
    fn look_once(&self, occasion: Occasion) -> bool {
        let look = Look {
            lock: self,
            occasion,
            whom: Cell::new(None),
            first: Cell::new(0),
            is_outdated: Cell::new(false),
            for_real_time: Cell::new(false),
            readers_taken: Cell::new(0),
            others_taken: Cell::new(0),
            stay: Cell::new(0),
            stopped: Cell::new(false),
            stands_in_a_slot: Cell::new(false),
        };
        // Acquire: behind the look at the word that told that somebody waits, with the Release of who announced itself under the
        // bucket's lock: so that lock is had after it.
        fence(Acquire);
        let choose = |kind| look.choose(kind);
        let change = |unparked| look.change(unparked);
        let told = Cell::new(LOOK_AGAIN);
        let change = |unparked| {
            told.set(change(unparked));
            told.get()
        };
        let woken = unpark(waiter_table(), key_of(&self.word), choose, change);
        if told.get() != LOOK_AGAIN {
            stats::count_many(Event::HandOffs, woken);
        }
        if look.is_outdated.get() {
            return false;
        }
        if look.stands_in_a_slot.get() {
            self.release_shared_elsewhere();
        }
        true
    }

    /// What the word says once a waiter has left, and waiters of these kinds stay. Under the bucket's lock.
    ///
    /// `is_awake`: the waiter waits on. Until it looks (`WOKEN`), it keeps readers out as before, and
    /// releases wake no other in its place.
    pub(super) fn forget_waiter(&self, stay: u64, is_awake: bool) {
        let writers = includes(stay, WRITE) || includes(stay, CLAIM);
        loop {
            let state = self.state();
            let new = state
                .having(READERS_WAIT, includes(stay, READ))
                .having(WRITERS_WAIT, writers);
            let new = match includes(stay, TAKE_OVER) || waits_for_slots(state) {
                true => new,
                // If it is announced, it was by the one who left.
                false => new.without(CLAIM_WAITS),
            };
            let new = new.having(WOKEN, is_awake || new.has(WOKEN));
            if self.replace(state, new, AcqRel) {
                return;
            }
        }
    }
}
