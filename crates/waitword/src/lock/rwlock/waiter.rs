//! A waiter for a private lock: when it is admitted, how it queues, takes its turn and gives up.
//! `private.rs` has the protocol.

use super::hand_off::{GRANTED, UPGRADABLE_GRANTED};
use super::policy::{FIRST_TURN, Patience, Policy, Recheck};
use super::rank::{READ, READ_UPGRADABLY, Rank, WRITE};
use super::surroundings::{Machine, sooner};
use super::word::{BIASED, READERS_WAIT, Right, State, TURN, UPGRADE_WAITS, WOKEN, WRITERS_WAIT};
use super::{RawRwLock, RwLockError};
use crate::atomic::Ordering::{Relaxed, Release as Releasing};
use crate::futex::parking::{Entry, Parked, Request, park};
use crate::lock::key_of;
use crate::park::spin::Spin;
use crate::private::{Awaited, Queue};
use crate::stats::{self, Event};
use crate::sys::clock::Deadline;
use core::cell::Cell;

/// A waiter for a private lock.
pub(super) struct Waiter<'a> {
    pub(super) lock: &'a RawRwLock,
    kind: u64,
    pub(super) right: Right,
    /// It was woken, and the word still records that (`WOKEN`).
    was_woken: bool,
    /// It has been queued before. If it must queue again, it goes to the front.
    has_waited: bool,
    /// It has been counted as contended.
    is_counted: bool,
    /// At the last look the lock was biased, but the thread had no free slot.
    pub(super) has_no_slot: bool,
    /// Its rank when it last queued.
    rank: Rank,
    pub(super) recheck: Recheck,
    patience: Patience,
    pub(super) spin: Spin<'static>,
}

/// How a stay in the queue ended.
pub(super) enum Queued {
    /// The waiter holds the lock.
    Granted,
    /// The waiter holds `UPGRADABLE`.
    UpgradableGranted,
    /// The waiter must look at the word again.
    Looks,
    /// The caller's deadline has passed.
    TimedOut,
}

impl<'a> Waiter<'a> {
    pub(super) fn new(lock: &'a RawRwLock, kind: u64, right: Right) -> Self {
        Self {
            lock,
            kind,
            right,
            was_woken: false,
            has_waited: false,
            is_counted: false,
            has_no_slot: false,
            rank: Rank::NONE,
            recheck: Recheck::new(),
            patience: Patience::new(),
            spin: Spin::at(lock.address()),
        }
    }

    /// Counts that the lock was taken and the thread has to wait, once per wait.
    pub(super) fn note_contention(&mut self) {
        if !core::mem::replace(&mut self.is_counted, true) {
            stats::count(Event::Contended);
        }
    }

    /// Whether the waiter can enter while the word is in this `state`.
    pub(super) fn is_admitted(&self, state: State) -> bool {
        // A waiter that was woken does not keep itself out.
        let state = self.without_woken(state);
        match self.kind {
            READ => {
                let by_slot = state.has(BIASED) && !self.has_no_slot;
                by_slot || state.admits_reader(self.right)
            }
            WRITE => state.admits_writer(self.right),
            READ_UPGRADABLY => state.admits_upgradable(self.right),
            _ => state.readers() == 0,
        }
    }

    /// `state` with the waiter announced.
    fn announced(&self, state: State) -> State {
        let announced = match self.kind {
            READ => state.with(READERS_WAIT),
            // No reader enters through a slot while a writer waits.
            WRITE => state.with(WRITERS_WAIT).without(BIASED),
            READ_UPGRADABLY => state.with(WRITERS_WAIT),
            _ => state.with(UPGRADE_WAITS),
        };
        let announced = match self.takes_its_turn_at_once() {
            true => announced.with_turn(FIRST_TURN),
            false => announced,
        };
        self.without_woken(announced)
    }

    /// Whether newcomers must wait from the moment this waiter queues.
    fn takes_its_turn_at_once(&self) -> bool {
        Policy::takes_turn_at_once(self.kind, self.rank.is_real_time())
    }

    /// Clears `WOKEN` from `state` if it was set for this waiter.
    pub(super) fn without_woken(&self, state: State) -> State {
        state.having(WOKEN, state.has(WOKEN) && !self.was_woken)
    }

    /// Queues until the waiter is woken, its timer fires, or the deadline passes.
    pub(super) fn queue(&mut self, state: State, deadline: Option<&Deadline>) -> Queued {
        self.recheck.begin(state, &Machine);
        self.rank = Rank::mine();
        let waits_for_turn = self.kind == READ && Policy::waits_for_turn(state);
        let own = if waits_for_turn {
            Some(Machine::at(self.patience.end(state, &Machine)))
        } else {
            Machine.deadline(&self.recheck)
        };
        let until = sooner(deadline.copied(), own);
        let validate = || loop {
            let state = self.lock.state();
            if self.is_admitted(state) {
                return false;
            }
            // Release: a thread that sees the waiter bit also finds the table that the waiter is in
            // (`look`).
            if self.lock.replace(state, self.announced(state), Releasing) {
                return true;
            }
        };
        let keeps_readers_out = self.kind != READ && state.prefers_writers();
        // Set if the waiter leaves the queue by itself and keeps waiting: its timer has fired, or a
        // signal handler ran.
        let waits_on = Cell::new(false);
        let leave = |queue: &Queue<'_>| {
            let stay = queue.kinds();
            waits_on.set(!deadline.is_some_and(Deadline::has_passed));
            self.lock.forget_waiter(stay, keeps_readers_out && waits_on.get());
        };
        let entry = Entry {
            awaited: Awaited::RwLock,
            kind: self.rank.written_into(self.kind),
            place: self.rank.place(self.kind, self.has_waited),
        };
        let request = Request::new(key_of(&self.lock.word), entry, until.as_ref());
        let parked = park(request, validate, || {}, leave);
        if parked != Parked::Invalid {
            self.was_woken = keeps_readers_out && waits_on.get();
            self.has_waited = true;
            if self.takes_its_turn_at_once() {
                // The turn may be its own, which does not keep it out.
                self.right = self.right.max(Right::Waited);
            }
            self.spin = Spin::at(self.lock.address());
        }
        match parked {
            Parked::Woken(GRANTED) => Queued::Granted,
            Parked::Woken(UPGRADABLE_GRANTED) => Queued::UpgradableGranted,
            Parked::Woken(_) => {
                self.was_woken = self.kind != READ;
                if self.kind == READ_UPGRADABLY {
                    // It was next in the queue. The waiters behind it are announced too. Under
                    // writer preference their bits would keep it out, and its bit them.
                    self.right = Right::Holder;
                }
                Queued::Looks
            }
            Parked::TimedOut if !waits_on.get() && deadline.is_some_and(Deadline::has_passed) => {
                Queued::TimedOut
            }
            Parked::TimedOut if waits_for_turn => {
                self.right = self.right.max(Right::Waited);
                Queued::Looks
            }
            Parked::TimedOut => {
                self.take_turn();
                Queued::Looks
            }
            Parked::Invalid => Queued::Looks,
            Parked::Interrupted => {
                // A signal handler ran. Or this code runs in a handler that interrupted a bucket
                // section, and must not lock. Or this is a child that such a handler forked.
                if crate::private::is_inside() {
                    crate::sys::sched::sleep_nanoseconds(50_000);
                }
                Queued::Looks
            }
        }
    }

    /// The re-check timer has fired: makes newcomers wait while this waiter tries again.
    fn take_turn(&mut self) {
        self.recheck.fire();
        self.right = self.right.max(Right::Waited);
        loop {
            let state = self.lock.state();
            if matches!(self.kind, READ | READ_UPGRADABLY) && state.is_free() {
                // It waits for writers that will not come: this process was forked, and they are
                // threads of the parent.
                self.right = Right::Holder;
            }
            // Another waiter that was woken has had enough time by now, or is a thread of the
            // parent. But under writer preference it still counts while the lock is held: it keeps
            // readers out, and takes the lock as soon as that is free.
            let believed = state.has(WOKEN) && state.prefers_writers() && !state.is_free();
            let forgotten = state.having(WOKEN, self.was_woken || believed);
            let turn = match self.is_admitted(forgotten) {
                true => forgotten,
                false => forgotten.with_turn(self.recheck.turn()),
            };
            if self.lock.replace(state, turn, Relaxed) {
                return;
            }
        }
    }

    /// Cleans up after a wait that timed out, and lets in the waiters that waited only for this
    /// one.
    pub(super) fn give_up(&self) -> RwLockError {
        if self.kind != READ && (self.recheck.has_fired() || self.rank.is_real_time()) {
            // The turn may have been its own. Other waiters that need a turn take it again.
            self.lock.word.fetch_and(!TURN, Relaxed);
        }
        if self.kind != READ {
            self.lock.let_in();
        }
        RwLockError::TimedOut
    }
}
