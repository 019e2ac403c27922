//! Releasing a private lock that has waiters: choose which waiter is served and change the word, in
//! one step with the queue, under the bucket lock.
//!
//! `policy.rs` decides which waiter is next, and whether it is handed the lock or only woken.
//!
//! # Late releases
//!
//! A release by subtraction (`uncontended.rs`) may find out only afterwards that a thread has
//! queued. By then the lock is free, and its next holder may have freed its memory. So such a
//! release looks at the queue first. If a waiter for an rwlock is queued there, the lock exists:
//! its waiter cannot leave without the bucket lock. It may be a later lock at the same address.
//! That does no harm either, because the release does only what is due for that lock anyway.

use super::RawRwLock;
use super::policy::{Next, Policy, Serve};
use super::rank::{READ, READ_UPGRADABLY, RWLOCK, Rank, UPGRADE, WRITE};
use super::surroundings::Machine;
use super::word::{
    BIASED, READERS_WAIT, Release, SLOTS, State, TURN, UPGRADABLE, UPGRADE_WAITS, WOKEN, WRITER,
    WRITERS_WAIT,
};
use crate::atomic::Ordering::{AcqRel, Acquire};
use crate::atomic::fence;
use crate::futex::parking::{Token, unpark};
use crate::lock::key_of;
use crate::private::{Choice, Unparked, waiter_table};
use crate::record;
use crate::stats::{self, Event};
use core::cell::Cell;

/// Look at the word again.
pub(super) const LOOK_AGAIN: Token = 0;
/// You hold the lock.
pub(super) const GRANTED: Token = 1;
/// You hold `UPGRADABLE`: wait for the readers to leave, then you hold the lock.
pub(super) const UPGRADABLE_GRANTED: Token = 2;

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
    next: Cell<Option<Next>>,
    prefers_writers: Cell<bool>,
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
    is_in_a_slot: Cell<bool>,
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
        let is_in_a_slot = release == Release::Reader && state.readers() == 0;
        self.is_in_a_slot.set(is_in_a_slot);
        match is_in_a_slot {
            true => state,
            false => state.after(release),
        }
    }

    fn has_turn(&self, after: State) -> bool {
        let is_fair = matches!(self.occasion, Occasion::Leaves { fair: true, .. });
        is_fair || after.has(TURN) || self.for_real_time.get()
    }

    /// Which waiters are next if the word becomes `after`, judging by the first waiter.
    fn next_after(&self, after: State) -> Next {
        Policy::next(after, self.first.get(), self.has_turn(after))
    }

    fn takes_none(&self) -> bool {
        self.readers_taken.get() == 0 && self.others_taken.get() == 0
    }

    /// Whether to take the next waiter in the queue.
    fn choose(&self, kind: u64) -> Choice {
        if kind & RWLOCK != RWLOCK {
            // Not waiting for an rwlock: the memory is used for something else by now.
            return Choice::Pass;
        }
        let (kind, rank) = Rank::taken_out_of(kind);
        let next = self.next.get().unwrap_or_else(|| {
            self.first.set(kind);
            self.for_real_time.set(rank.is_real_time());
            let state = self.lock.state();
            self.prefers_writers.set(state.prefers_writers());
            let next = self.next_after(self.after(state));
            self.next.set(Some(next));
            next
        });
        let serves_readers = matches!(next, Next::Readers { .. });
        if serves_readers && kind == READ {
            self.readers_taken.set(self.readers_taken.get() + 1);
            return Choice::Take;
        }
        let (prefers_writers, taken) = (self.prefers_writers.get(), self.others_taken.get());
        let serve = Policy::serves(next, kind, rank.is_real_time(), prefers_writers);
        let has_room =
            || taken == 0 || taken < Policy::most_others(next, prefers_writers, &Machine);
        if serve == Serve::Take && has_room() {
            self.others_taken.set(taken + 1);
            return Choice::Take;
        }
        self.stay.set(self.stay.get() | kind);
        // If readers are served, the look goes through the whole queue. Otherwise it stops once a
        // waiter has been taken and another one (`WRITE` or `READ_UPGRADABLY`) is known to stay.
        let is_known = taken != 0 && includes(kind, WRITE | READ_UPGRADABLY);
        if serve == Serve::Stop || is_known && !serves_readers {
            self.stopped.set(true);
            return Choice::Stop;
        }
        Choice::Pass
    }

    /// Changes the word in one step with the queue. Returns the token for the taken waiters.
    fn change(&self, unparked: Unparked) -> Token {
        debug_assert!(!self.stopped.get() || unparked.more);
        let none_waits = self.next.get().is_none();
        if none_waits && self.occasion == Occasion::HasLeft {
            // The lock may have been freed.
            return LOOK_AGAIN;
        }
        loop {
            let state = self.lock.state();
            let after = self.after(state);
            let (new, token) = match self.next.get() {
                None => (forget_waiters(after), LOOK_AGAIN),
                Some(next) if self.takes_none() && self.next_after(after) != next => {
                    self.is_outdated.set(true);
                    return LOOK_AGAIN;
                }
                Some(next) => self.outcome(after, next),
            };
            // Release: the critical section is over. Acquire: whichever waiter is handed the lock
            // also sees what readers did that left earlier.
            if self.lock.replace(state, new, AcqRel) {
                return token;
            }
        }
    }

    /// What the word becomes, and the token for the taken waiters.
    fn outcome(&self, after: State, next: Next) -> (State, Token) {
        let announced = self.announced(after);
        let turn_used = |state: State| match self.has_turn(after) {
            true => state.without(TURN),
            false => state,
        };
        let readers = self.readers_taken.get();
        let other = self.others_taken.get() != 0;
        match next {
            Next::None => (after, LOOK_AGAIN),
            _ if self.takes_none() => (announced.without(UPGRADE_WAITS), LOOK_AGAIN),
            Next::Readers { .. } if !self.has_turn(after) => (announced, LOOK_AGAIN),
            Next::Readers { .. } => {
                let has_room = after.readers() + readers <= super::word::MOST_READERS;
                let upgradable_is_free = !other || !after.has(UPGRADABLE);
                if after.has(WRITER) || !has_room || !upgradable_is_free {
                    return (announced, LOOK_AGAIN);
                }
                let granted = announced.with_readers(readers);
                let granted = if other { granted.with(UPGRADABLE) } else { granted };
                (turn_used(granted), GRANTED)
            }
            Next::First if after.is_free() && after.has(SLOTS) => {
                let revoking = announced.with(UPGRADABLE).without(BIASED);
                (turn_used(revoking), UPGRADABLE_GRANTED)
            }
            Next::First if after.is_free() => (turn_used(announced).with_writer(0), GRANTED),
            Next::Upgrader if after.readers() == 0 => {
                (turn_used(announced).with_writer(0), GRANTED)
            }
            // A reader has entered in the meantime.
            Next::Upgrader => (announced.without(UPGRADE_WAITS), LOOK_AGAIN),
            Next::First | Next::AWriter | Next::AnUpgradable => (announced.with(WOKEN), LOOK_AGAIN),
        }
    }

    /// `after` with the waiter bits as the look found them.
    fn announced(&self, after: State) -> State {
        let stay = self.stay.get();
        let writers = includes(stay, WRITE) || includes(stay, READ_UPGRADABLY);
        if self.stopped.get() {
            // The look stopped at a waiter of this class, and has not seen the rest.
            return after.having(WRITERS_WAIT, writers || after.has(WRITERS_WAIT));
        }
        after.having(READERS_WAIT, includes(stay, READ)).having(WRITERS_WAIT, writers)
    }
}

/// The word if no thread waits. Its waiter bits may be copies from before a fork.
fn forget_waiters(state: State) -> State {
    let without_waiters = state.without(READERS_WAIT | WRITERS_WAIT);
    match waits_for_slots(state) {
        true => without_waiters,
        false => without_waiters.without(UPGRADE_WAITS | TURN),
    }
}

/// Whether the `UPGRADABLE` holder waits for slots, where no queue shows it.
fn waits_for_slots(state: State) -> bool {
    state.has(UPGRADABLE) && state.has(SLOTS)
}

impl RawRwLock {
    /// Gives up `release` and serves the waiters.
    #[cold]
    pub(super) fn hand_off(&self, state: State, release: Release) {
        record::releasing(self.address(), || release != Release::Nothing, || false);
        if state.is_shared() {
            self.release_in_kernel(release);
        } else {
            self.look(Occasion::Leaves { release, fair: false });
        }
    }

    /// The same, and the first waiter gets the lock.
    #[cold]
    pub(super) fn hand_off_fairly(&self, release: Release) {
        record::releasing(self.address(), || true, || true);
        self.look(Occasion::Leaves { release, fair: true });
    }

    /// Lets in the waiters that no longer need to wait.
    #[cold]
    pub(super) fn let_in(&self) {
        self.hand_off(self.state(), Release::Nothing);
    }

    /// Serves the waiters after a release that left an unexpected word. The lock may have been
    /// freed.
    ///
    /// `extern "C"`: it does not unwind, so the calling releases need no frame for that.
    #[cold]
    #[inline(never)]
    pub(super) extern "C" fn hand_off_late(&self) {
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
            next: Cell::new(None),
            prefers_writers: Cell::new(false),
            first: Cell::new(0),
            is_outdated: Cell::new(false),
            for_real_time: Cell::new(false),
            readers_taken: Cell::new(0),
            others_taken: Cell::new(0),
            stay: Cell::new(0),
            stopped: Cell::new(false),
            is_in_a_slot: Cell::new(false),
        };
        // Acquire: together with the earlier load that showed the waiter bit, this pairs with the
        // Release by which the waiter announced itself under the bucket lock. So this thread takes
        // that lock after the waiter did.
        fence(Acquire);
        let choose = |kind| look.choose(kind);
        let change = |unparked| look.change(unparked);
        let token_given = Cell::new(LOOK_AGAIN);
        let change = |unparked| {
            token_given.set(change(unparked));
            token_given.get()
        };
        let woken = unpark(key_of(&self.word), choose, change);
        if token_given.get() != LOOK_AGAIN {
            stats::count_many(Event::HandOffs, woken);
        }
        if look.is_outdated.get() {
            return false;
        }
        if look.is_in_a_slot.get() {
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
        let writers = includes(stay, WRITE) || includes(stay, READ_UPGRADABLY);
        loop {
            let state = self.state();
            let new =
                state.having(READERS_WAIT, includes(stay, READ)).having(WRITERS_WAIT, writers);
            let new = match includes(stay, UPGRADE) || waits_for_slots(state) {
                true => new,
                // If the bit is set, the waiter that left set it.
                false => new.without(UPGRADE_WAITS),
            };
            let new = new.having(WOKEN, is_awake || new.has(WOKEN));
            if self.replace(state, new, AcqRel) {
                return;
            }
        }
    }
}
