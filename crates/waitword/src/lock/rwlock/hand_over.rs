//! Releasing a private lock that has waiters: choose which waiter is served and change the word, in
//! one step with the queue, under the bucket lock.
//!
//! `policy.rs` decides which waiter is next.
//!
//! # Late releases
//!
//! A release by subtraction (`fast.rs`) may find out only afterwards that a thread has queued. By
//! then the lock is free, and its next holder may have freed its memory. So such a release looks at
//! the queue first. If a waiter for an rwlock is queued there, the lock exists: its waiter cannot
//! leave without the bucket lock. It may be a later lock at the same address. That does no harm
//! either, because the release does only what is due for that lock anyway.

use super::RawRwLock;
use super::policy::{CLAIM, READ, RWLOCK, TAKE_OVER, WRITE, Whom, most_others, who_is_next};
use super::rank::Rank;
use super::word::{
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

/// Look at the word again.
pub(super) const LOOK_AGAIN: Token = 0;
/// You hold the lock.
pub(super) const GRANTED: Token = 1;
/// You hold `CLAIMED`: wait for the readers to leave, then you hold the lock.
pub(super) const CLAIM_GRANTED: Token = 2;

/// Whether the set `kinds` contains `kind`.
#[inline]
fn includes(kinds: u64, kind: u64) -> bool {
    kinds & kind & !RWLOCK != 0
}

/// Why a thread looks at the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Occasion {
    /// It gives up `release`. If `fair`, the first waiter gets the lock.
    Leaves { release: Release, fair: bool },
    /// It has released the lock already, and found out late that a thread is queued.
    HasLeft,
}

/// One look at the queue. The fields are cells because one closure looks at the queue and another
/// changes the word.
struct Look<'a> {
    lock: &'a RawRwLock,
    occasion: Occasion,
    /// Which waiters to serve, decided at the first waiter. `None`: there is no waiter.
    whom: Cell<Option<Whom>>,
    /// The kind of the first waiter.
    first: Cell<u64>,
    /// No waiter was taken, but one is due by now. Nothing has been done.
    is_outdated: Cell<bool>,
    /// Whether the first waiter is a real-time thread.
    for_real_time: Cell<bool>,
    readers_taken: Cell<u64>,
    /// The number of taken waiters other than readers.
    others_taken: Cell<u32>,
    /// The kinds of the waiters that stay queued, as far as the look got.
    stay: Cell<u64>,
    /// Whether the look stopped before the end of the queue.
    stopped: Cell<bool>,
    /// The hold to give up is not in the word: another thread was faster, and left a hold in a slot
    /// in exchange.
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

    /// Which waiters are next if the word becomes `after`, judging by the first waiter.
    fn is_next(&self, after: State) -> Whom {
        who_is_next(after, self.first.get(), self.has_turn(after))
    }

    fn takes_nobody(&self) -> bool {
        self.readers_taken.get() == 0 && self.others_taken.get() == 0
    }

    /// Whether to take the next waiter in the queue.
    fn choose(&self, kind: u64) -> Choice {
        if kind & RWLOCK != RWLOCK {
            // Not waiting for an rwlock: the memory is used for something else by now.
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
                    // A writer that came earlier.
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
        // If readers are served, the look goes through the whole queue. Otherwise it stops once a
        // waiter has been taken and another one (`WRITE` or `CLAIM`) is known to stay.
        let known = taken != 0 && kind & (WRITE | CLAIM) & !RWLOCK != 0;
        if known && !matches!(whom, Whom::Readers { .. }) {
            self.stopped.set(true);
            return Choice::Stop;
        }
        Choice::Pass
    }

    /// Changes the word in one step with the queue. Returns the token for the taken waiters.
    fn change(&self, unparked: Unparked) -> Token {
        debug_assert!(!self.stopped.get() || unparked.more);
        let nobody_waits = self.whom.get().is_none();
        if nobody_waits && self.occasion == Occasion::HasLeft {
            // The lock may have been freed.
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
            // Release: the critical section is over. Acquire: whichever waiter is handed the lock
            // also sees what readers did that left earlier.
            if self.lock.replace(state, new, AcqRel) {
                return token;
            }
        }
    }

    /// What the word becomes, and the token for the taken waiters.
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
                let has_room = after.readers() + readers <= super::word::MOST_READERS;
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
            // A reader has entered in the meantime.
            Whom::TheClaimsHolder => (announced.without(CLAIM_WAITS), LOOK_AGAIN),
            Whom::First | Whom::AWriter | Whom::AClaimant => (announced.with(WOKEN), LOOK_AGAIN),
        }
    }

    /// `after` with the waiter bits as the look found them.
    fn announced(&self, after: State) -> State {
        let stay = self.stay.get();
        let claimants = includes(stay, WRITE) || includes(stay, CLAIM);
        if self.stopped.get() {
            // The look stopped at a waiter of this class, and has not seen the rest.
            return after.having(WRITERS_WAIT, claimants || after.has(WRITERS_WAIT));
        }
        after
            .having(READERS_WAIT, includes(stay, READ))
            .having(WRITERS_WAIT, claimants)
    }
}

/// The word if no thread waits. Its waiter bits may be copies from before a fork.
fn forget_waiters(state: State) -> State {
    let without_waiters = state.without(READERS_WAIT | WRITERS_WAIT);
    match waits_for_slots(state) {
        true => without_waiters,
        false => without_waiters.without(CLAIM_WAITS | TURN),
    }
}

/// Whether the `CLAIMED` holder waits for slots, where no queue shows it.
fn waits_for_slots(state: State) -> bool {
    state.has(CLAIMED) && state.has(SLOTS)
}

impl RawRwLock {
    /// Gives up `release` and serves the waiters.
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

    /// The same, and the first waiter gets the lock.
    #[cold]
    pub(super) fn hand_over_fairly(&self, release: Release) {
        self.look(Occasion::Leaves {
            release,
            fair: true,
        });
    }

    /// Lets in the waiters that no longer need to wait.
    #[cold]
    pub(super) fn let_in(&self) {
        self.hand_over(self.state(), Release::Nothing);
    }

    /// Serves the waiters after a release that left an unexpected word. The lock may have been
    /// freed.
    ///
    /// `extern "C"`: it does not unwind, so the calling releases need no frame for that.
    #[cold]
    #[inline(never)]
    pub(super) extern "C" fn hand_over_late(&self) {
        // Most often a thread has only entered the lock. A thread that queues counts itself before
        // it checks the word.
        let key = key_of(&self.word);
        if waiter_table().find_waiters(key).is_some() {
            self.look(Occasion::HasLeft);
        }
    }

    /// Repeats the look until its decision is still right when the word changes. In between, a
    /// reader may enter and leave again, and it relies on this thread to serve the waiters.
    fn look(&self, occasion: Occasion) {
        while !self.look_once(occasion) {}
    }

    /// Returns false if nothing has been done.
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
        // Acquire: together with the earlier load that showed the waiter bit, this pairs with the
        // Release by which the waiter announced itself under the bucket lock. So this thread takes
        // that lock after the waiter did.
        fence(Acquire);
        let choose = |kind| look.choose(kind);
        let change = |unparked| look.change(unparked);
        let told = Cell::new(LOOK_AGAIN);
        let change = |unparked| {
            told.set(change(unparked));
            told.get()
        };
        let woken = unpark(key_of(&self.word), choose, change);
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

    /// Updates the word after a waiter has left the queue, while waiters of the kinds `stay`
    /// remain. Called under the bucket lock.
    ///
    /// If `is_awake`, the waiter keeps waiting. Until it looks at the word (`WOKEN`), it keeps
    /// readers out as before, and releases wake no other waiter in its place.
    pub(super) fn forget_waiter(&self, stay: u64, is_awake: bool) {
        let writers = includes(stay, WRITE) || includes(stay, CLAIM);
        loop {
            let state = self.state();
            let new = state
                .having(READERS_WAIT, includes(stay, READ))
                .having(WRITERS_WAIT, writers);
            let new = match includes(stay, TAKE_OVER) || waits_for_slots(state) {
                true => new,
                // If the bit is set, the waiter that left set it.
                false => new.without(CLAIM_WAITS),
            };
            let new = new.having(WOKEN, is_awake || new.has(WOKEN));
            if self.replace(state, new, AcqRel) {
                return;
            }
        }
    }
}
