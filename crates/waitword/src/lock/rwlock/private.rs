//! Waiting for a private lock: spin for a while, then queue in the process's waiter table.
//!
//! Every waiter announces itself in the word under the bucket lock, in one step with joining the
//! queue. So its waiter bit is set by the time a release must see it. A waiter that gives up clears
//! its bit in one step with leaving the queue. (In parking_lot #465 the bit was cleared outside
//! that lock, and a later waiter's bit was lost with it.)
//!
//! # Anti-starvation
//!
//! A waiter has a re-check timer (`Alarms`). It first fires after 100 µs to 10 ms (`policy.rs`),
//! and then each time after twice as long, at most a second. The waiter then leaves the queue and
//! takes a turn (`TURN`): newcomers queue, while the waiter spins for the lock once more. The
//! waiter is awake, so no thread waits for its wake-up. If it still does not get the lock, because
//! the critical sections are long, it queues again and leaves the turn set. The next release then
//! hands the lock off to the first waiter in the queue. After that, threads barge as before.
//!
//! Under reader preference a turn keeps readers out. One of them may hold the lock already, or a
//! holder may be waiting for it; the word cannot tell. So a reader waits for a turn no longer than
//! the thread that has the turn has waited (`Patience`). Then the reader enters, and that ends the
//! turn. The next turn comes when its owner has waited twice as long, and lasts twice as long. At
//! the latest, the turn that is longer than the readers' critical sections lets the writer in. So a
//! recursive read never deadlocks, although it may take long. A thread that holds the lock through
//! a slot, or that says that it may hold the lock (`Right::Holder`), does not wait for a turn at
//! all.
//!
//! Under writer preference, readers take turns too. The release after that lets all readers in.
//!
//! A real-time writer takes its turn as it queues, and is queued before all waiters of a lower
//! priority (`rank.rs`).

use super::bias::Cost;
use super::hand_over::{CLAIM_GRANTED, GRANTED};
use super::policy::{Alarms, CLAIM, FIRST_TURN, Patience, READ, TAKE_OVER, WRITE};
use super::rank::Rank;
use super::slots;
use super::word::{
    BIAS, CLAIM_WAITS, CLAIMED, COLLISIONS, FAST, READERS_WAIT, REPORTED, Release, Right, SLOTS,
    State, TURN, WOKEN, WRITER, WRITERS_WAIT,
};
use super::{RawRwLock, RwLockError, Wish};
use crate::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release as Releasing};
use crate::futex::parking::{Entry, Parked, Request, park};
use crate::lock::key_of;
use crate::park::spin::Spin;
use crate::private::Queue;
use crate::stats::{self, Event};
use crate::sys::clock::Deadline;
use core::cell::Cell;

/// The earlier of two deadlines.
///
/// An interrupter of the first deadline can end the wait whichever deadline is earlier.
pub(super) fn sooner(one: Option<Deadline>, other: Option<Deadline>) -> Option<Deadline> {
    match (one, other) {
        (Some(one), Some(other)) if one.time_left() > other.time_left() => Some(Deadline {
            ender: one.ender,
            ..other
        }),
        (one, other) => one.or(other),
    }
}

/// A waiter for a private lock.
struct Waiter<'a> {
    lock: &'a RawRwLock,
    kind: u64,
    right: Right,
    /// It was woken, and the word still records that (`WOKEN`).
    was_woken: bool,
    /// It has been queued before. If it must queue again, it goes to the front.
    has_waited: bool,
    /// It has been counted as contended.
    is_counted: bool,
    /// At the last look the lock was biased, but the thread had no free slot.
    has_no_slot: bool,
    /// Its rank when it last queued.
    rank: Rank,
    alarms: Alarms,
    patience: Patience,
    spin: Spin<'static>,
}

/// How a stay in the queue ended.
enum Queued {
    /// The waiter holds the lock.
    Granted,
    /// The waiter holds `CLAIMED`.
    ClaimGranted,
    /// The waiter must look at the word again.
    Looks,
    /// The caller's deadline has passed.
    TimedOut,
}

impl<'a> Waiter<'a> {
    fn new(lock: &'a RawRwLock, kind: u64, right: Right) -> Self {
        Self {
            lock,
            kind,
            right,
            was_woken: false,
            has_waited: false,
            is_counted: false,
            has_no_slot: false,
            rank: Rank::NONE,
            alarms: Alarms::new(),
            patience: Patience::new(),
            spin: Spin::at(lock.address()),
        }
    }

    /// Counts that the lock was taken and the thread has to wait, once per wait.
    fn note_contention(&mut self) {
        if !core::mem::replace(&mut self.is_counted, true) {
            stats::count(Event::Contended);
        }
    }

    /// Whether the waiter can enter while the word is in this `state`.
    fn is_admitted(&self, state: State) -> bool {
        // A waiter that was woken does not keep itself out.
        let state = self.without_woken(state);
        match self.kind {
            READ => {
                let by_slot = state.has(FAST) && !self.has_no_slot;
                by_slot || state.admits_reader(self.right)
            }
            WRITE => state.admits_writer(self.right),
            CLAIM => state.admits_claimant(self.right),
            _ => state.readers() == 0,
        }
    }

    /// `state` with the waiter announced.
    fn announced(&self, state: State) -> State {
        let announced = match self.kind {
            READ => state.with(READERS_WAIT),
            // No reader enters through a slot while a writer waits.
            WRITE => state.with(WRITERS_WAIT).without(FAST),
            CLAIM => state.with(WRITERS_WAIT),
            _ => state.with(CLAIM_WAITS),
        };
        let announced = match self.takes_its_turn_at_once() {
            true => announced.with_turn(FIRST_TURN),
            false => announced,
        };
        self.without_woken(announced)
    }

    /// Whether newcomers must wait from the moment this waiter queues.
    fn takes_its_turn_at_once(&self) -> bool {
        self.kind != READ && self.rank.is_real_time()
    }

    /// Clears `WOKEN` from `state` if it was set for this waiter.
    fn without_woken(&self, state: State) -> State {
        state.having(WOKEN, state.has(WOKEN) && !self.was_woken)
    }

    /// Queues until the waiter is woken, its timer fires, or the deadline passes.
    fn queue(&mut self, state: State, deadline: Option<&Deadline>) -> Queued {
        self.alarms.begin(state);
        self.rank = Rank::mine();
        let waits_for_a_turn = self.kind == READ && !state.prefers_writers() && !state.has(WRITER);
        let own = if waits_for_a_turn {
            Some(self.patience.end(state))
        } else {
            self.alarms.next()
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
            self.lock
                .forget_waiter(stay, keeps_readers_out && waits_on.get());
        };
        let entry = Entry {
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
            Parked::Woken(CLAIM_GRANTED) => Queued::ClaimGranted,
            Parked::Woken(_) => {
                self.was_woken = self.kind != READ;
                if self.kind == CLAIM {
                    // It was next in the queue. The waiters behind it are announced too. Under
                    // writer preference their bits would keep it out, and its bit them.
                    self.right = Right::Holder;
                }
                Queued::Looks
            }
            Parked::TimedOut if !waits_on.get() && deadline.is_some_and(Deadline::has_passed) => {
                Queued::TimedOut
            }
            Parked::TimedOut if waits_for_a_turn => {
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
        self.alarms.ring();
        self.right = self.right.max(Right::Waited);
        loop {
            let state = self.lock.state();
            if matches!(self.kind, READ | CLAIM) && state.is_free() {
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
                false => forgotten.with_turn(self.alarms.turn()),
            };
            if self.lock.replace(state, turn, Relaxed) {
                return;
            }
        }
    }

    /// Waits until no thread holds the lock through a slot. The caller holds `CLAIMED`.
    ///
    /// Meanwhile readers enter through the word, and the readers in slots may have lost their CPUs
    /// to them. So here, too, the re-check timer takes the turn.
    fn wait_for_slots(&mut self, deadline: Option<&Deadline>) -> Result<(), RwLockError> {
        loop {
            self.alarms.begin_awake();
            let until = sooner(deadline.copied(), self.alarms.next());
            if slots::wait_until_empty(self.lock.key(self.lock.state()), until.as_ref()).is_ok() {
                return Ok(());
            }
            if deadline.is_some_and(Deadline::has_passed) {
                // Relaxed: it orders nothing.
                self.lock.word.fetch_and(!CLAIM_WAITS, Relaxed);
                return Err(self.give_up());
            }
            self.alarms.ring();
            self.right = self.right.max(Right::Waited);
            loop {
                let state = self.lock.state();
                let turn = state.with(CLAIM_WAITS).with_turn(self.alarms.turn());
                if self.lock.replace(state, turn, Relaxed) {
                    break;
                }
            }
        }
    }

    /// Cleans up after a wait that timed out, and lets in the waiters that waited only for this
    /// one.
    fn give_up(&self) -> RwLockError {
        if self.kind != READ && (self.alarms.have_rung() || self.rank.is_real_time()) {
            // The turn may have been its own. Other waiters that need a turn take it again.
            self.lock.word.fetch_and(!TURN, Relaxed);
        }
        if self.kind != READ {
            self.lock.let_in();
        }
        RwLockError::TimedOut
    }
}

impl RawRwLock {
    /// Waits to read.
    #[cold]
    pub(super) fn wait_shared(
        &self,
        right: Right,
        owner: u32,
        deadline: Option<&Deadline>,
    ) -> Result<(), RwLockError> {
        use super::fast::Entered;
        let mut waiter = Waiter::new(self, READ, right);
        loop {
            let state = match self.enter_shared_among_others(waiter.right) {
                Entered::Yes => {
                    waiter.spin.won();
                    return Ok(());
                }
                Entered::Full => return Err(RwLockError::TooManyReaders),
                Entered::No(state) => state,
            };
            waiter.has_no_slot = state.has(FAST);
            if owner != 0 && state.owner() == owner {
                return Err(RwLockError::Deadlock);
            }
            let may_hold = state.has(SLOTS) && waiter.right != Right::Holder;
            if may_hold && slots::holds(self.key(state)) {
                // No writer can hold the lock while this thread does (unless the word is garbage),
                // and waiting writers must wait for this thread anyway.
                waiter.right = Right::Holder;
                continue;
            }
            waiter.note_contention();
            if waiter.spin.again() {
                continue;
            }
            match waiter.queue(state, deadline) {
                Queued::Granted | Queued::ClaimGranted => return Ok(()),
                Queued::Looks => {}
                Queued::TimedOut => return Err(waiter.give_up()),
            }
        }
    }

    /// Waits to write, or for the upgradable lock.
    #[cold]
    pub(super) fn wait_exclusive(
        &self,
        wish: Wish,
        deadline: Option<&Deadline>,
    ) -> Result<(), RwLockError> {
        let (kind, owner) = match wish {
            Wish::Write(owner) => (WRITE, owner),
            Wish::Claim => (CLAIM, 0),
        };
        let mut waiter = Waiter::new(self, kind, Right::Newcomer);
        loop {
            let state = self.state();
            if waiter.is_admitted(state) {
                // Taking the upgradable lock leaves `FAST` set.
                let drives_out = kind == WRITE && state.has(SLOTS);
                let new = match kind {
                    CLAIM => state.with(CLAIMED),
                    _ if drives_out => state.with(CLAIMED).without(FAST),
                    _ => state.with_writer(owner),
                };
                // Under writer preference no further reader may enter.
                let shut = drives_out && state.prefers_writers();
                let new = new.having(CLAIM_WAITS, shut || new.has(CLAIM_WAITS));
                let new = match waiter.right {
                    Right::Newcomer => new,
                    // The turn has been used.
                    _ => new.without(TURN),
                };
                if !self.replace(state, waiter.without_woken(new), Acquire) {
                    continue;
                }
                if drives_out {
                    return self.drive_out(owner, deadline);
                }
                waiter.spin.won();
                if kind == CLAIM && new.has(READERS_WAIT) {
                    // Those readers waited for this thread.
                    self.let_in();
                }
                return Ok(());
            }
            if owner != 0 && state.owner() == owner {
                return Err(RwLockError::Deadlock);
            }
            waiter.note_contention();
            if waiter.spin.again() {
                continue;
            }
            match waiter.queue(state, deadline) {
                Queued::Granted => {
                    self.set_owner(owner);
                    return Ok(());
                }
                Queued::ClaimGranted => return self.drive_out(owner, deadline),
                Queued::Looks => {}
                Queued::TimedOut => return Err(waiter.give_up()),
            }
        }
    }

    /// Records the caller as the writer.
    fn set_owner(&self, owner: u32) {
        if owner != 0 {
            // Relaxed: only the owner itself reads it.
            self.word.fetch_add(u64::from(owner) << 32, Relaxed);
        }
    }

    /// Goes from `CLAIMED` to `WRITER`. Gives up `CLAIMED` if the deadline passes.
    fn drive_out(&self, owner: u32, deadline: Option<&Deadline>) -> Result<(), RwLockError> {
        let result = self.take_over(owner, deadline);
        if result.is_err() {
            self.release_claim(Release::Claim);
        }
        result
    }

    /// Goes from `CLAIMED`, which the caller holds, to `WRITER`. Revokes the reader bias, waits
    /// until the readers in slots have left, and then waits for the readers in the word.
    ///
    /// # Errors
    /// The deadline has passed. The caller still holds `CLAIMED`.
    #[cold]
    pub(super) fn take_over(
        &self,
        owner: u32,
        deadline: Option<&Deadline>,
    ) -> Result<(), RwLockError> {
        let mut waiter = Waiter::new(self, TAKE_OVER, Right::Newcomer);
        if self.shut_out_fast_readers() {
            let cost = Cost::begin();
            let emptied = waiter.wait_for_slots(deadline);
            cost.end(self.address());
            emptied?;
            // Relaxed: reading the slots acquired what their readers did. And no slot is used for
            // this lock again before this thread, or a later one, gives up `CLAIMED`.
            self.word.fetch_and(!(SLOTS | BIAS), Relaxed);
        }
        loop {
            let state = self.state();
            if state.readers() == 0 {
                let new = match waiter.right {
                    Right::Newcomer => state,
                    _ => state.without(TURN),
                };
                let new = waiter.without_woken(new).with_writer(owner);
                if self.replace(state, new, Acquire) {
                    return Ok(());
                }
                continue;
            }
            waiter.note_contention();
            if waiter.spin.again() {
                continue;
            }
            match waiter.queue(state, deadline) {
                Queued::Granted | Queued::ClaimGranted => {
                    self.set_owner(owner);
                    return Ok(());
                }
                Queued::Looks => {}
                Queued::TimedOut => return Err(waiter.give_up()),
            }
        }
    }

    /// Stops readers from entering through slots. Returns whether some may be in slots already.
    fn shut_out_fast_readers(&self) -> bool {
        let state = self.state();
        debug_assert!(state.has(CLAIMED));
        if !state.has(SLOTS) {
            return false;
        }
        // Resets the counters that lead to a bias. AcqRel: the ordering that matters comes from the
        // fence that follows (`slots.rs`).
        self.word.fetch_and(!(FAST | COLLISIONS | REPORTED), AcqRel);
        true
    }

    /// The same as [`take_over`](Self::take_over) if that needs no waiting. Returns whether it
    /// succeeded.
    pub(super) fn try_take_over(&self, owner: u32) -> bool {
        if self.shut_out_fast_readers() {
            crate::atomic::full_fence();
            if slots::any(self.key(self.state())) {
                return false;
            }
            self.word.fetch_and(!(SLOTS | BIAS), Relaxed);
        }
        loop {
            let state = self.state();
            if state.readers() != 0 {
                return false;
            }
            if self.replace(state, state.with_writer(owner), Acquire) {
                return true;
            }
        }
    }
}
