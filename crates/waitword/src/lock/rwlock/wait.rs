//! Waiting for a private lock: spin a little, then queue in the process's table.
//!
//! Every waiter announces itself in the word under the bucket's lock, in one step with joining the queue; so a bit that says
//! that somebody waits is set by the time a release must see it, and a waiter that gives up takes its bit back in one step with
//! leaving (parking_lot #465: cleared outside of that lock, it took a later waiter's bit with it).
//!
//! # Nobody waits for ever
//!
//! A waiter has an alarm: after 100 µs to 10 ms (`policy.rs`), and each time it has waited twice as long again, it leaves the
//! queue and takes a turn (`TURN`): newcomers queue up behind, while it, being awake, spins for the lock once more. So nobody waits for it to wake up. If it still does
//! not get the lock, since the sections are long, it queues again and leaves the turn standing. Then the next release hands the lock to
//! whoever stands first in the queue, and after that everybody barges again.
//!
//! Under reader preference a turn keeps readers out, and one of them may hold the lock already, or be what a holder waits for; the
//! word cannot say. So a reader waits for a turn no longer than whoever has it has waited (`Patience`) and then comes
//! in, which ends the turn. The next one, when its owner has waited twice as long, lasts twice as long:
//! at the latest the one that is longer than the readers' sections brings the writer in. So reading again while one reads never
//! deadlocks, whatever it costs in time; a thread that holds the lock by a slot, or says that it may hold it
//! (`Right::Holder`), does not wait at all.
//!
//! Under writer preference readers take turns too: the release after that lets all readers in.
//!
//! A real-time writer takes its turn as it queues, and stands before everybody of a lower priority (`rank.rs`).

use super::bias::Cost;
use super::hand_over::{CLAIM_GRANTED, GRANTED};
use super::policy::{Alarms, CLAIM, FIRST_TURN, Patience, READ, TAKE_OVER, WRITE};
use super::rank::Rank;
use super::slots;
use super::state::{
    BIAS, CLAIM_WAITS, CLAIMED, COLLISIONS, FAST, READERS_WAIT, REPORTED, Release, Right, SLOTS,
    State, TURN, WOKEN, WRITER, WRITERS_WAIT,
};
use super::{RawRwLock, RwLockError, Wish};
use crate::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release as Releasing};
use crate::futex::parking::{Entry, Parked, park_among_kinds};
use crate::lock::key_of;
use crate::park::spin::Spin;
use crate::private::waiter_table;
use crate::stats::{self, Event};
use crate::sys::clock::Deadline;
use core::cell::Cell;

/// The sooner of two deadlines.
///
/// What may bring the first forward does so with either.
pub(super) fn sooner(one: Option<Deadline>, other: Option<Deadline>) -> Option<Deadline> {
    match (one, other) {
        (Some(one), Some(other)) if one.time_left() > other.time_left() => Some(Deadline {
            ender: one.ender,
            ..other
        }),
        (one, other) => one.or(other),
    }
}

/// One who waits in the queue.
struct Waiter<'a> {
    lock: &'a RawRwLock,
    kind: u64,
    right: Right,
    /// It was woken, and the word says so (`WOKEN`).
    was_woken: bool,
    /// It was queued before: if it must queue again, in front.
    has_waited: bool,
    /// It has found the lock taken, and was counted.
    is_counted: bool,
    /// The lock took readers by slots when it looked last, and it found none.
    has_no_slot: bool,
    /// As it was when it queued last.
    rank: Rank,
    alarms: Alarms,
    patience: Patience,
    spin: Spin<'static>,
}

/// How a stay in the queue ended.
enum Queued {
    /// It holds the lock.
    Granted,
    /// It holds the claim.
    ClaimGranted,
    /// It is to look again.
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

    /// The lock is taken, and it waits.
    fn note_contention(&mut self) {
        if !core::mem::replace(&mut self.is_counted, true) {
            stats::count(Event::Contended);
        }
    }

    /// Whether it need not wait while the word is so.
    fn is_admitted(&self, state: State) -> bool {
        // Whoever was woken is not in its own way.
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

    /// `state`, announcing it.
    fn announced(&self, state: State) -> State {
        let announced = match self.kind {
            READ => state.with(READERS_WAIT),
            // No reader comes in past a waiting writer unseen.
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

    /// Whether newcomers are to wait from the moment it queues.
    fn takes_its_turn_at_once(&self) -> bool {
        self.kind != READ && self.rank.is_real_time()
    }

    /// `state`, saying no longer that somebody was woken who has not looked, if that is this one.
    fn without_woken(&self, state: State) -> State {
        state.having(WOKEN, state.has(WOKEN) && !self.was_woken)
    }

    /// Queues, until it is woken, its alarm rings, or the deadline passes.
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
            // Release: whoever sees that somebody waits finds the table that it waits in (`look`).
            if self.lock.replace(state, self.announced(state), Releasing) {
                return true;
            }
        };
        let keeps_readers_out = self.kind != READ && state.prefers_writers();
        // It leaves the queue by itself, and waits on: its alarm has rung, or a signal handler ran.
        let waits_on = Cell::new(false);
        let leave = |stay| {
            waits_on.set(!deadline.is_some_and(Deadline::has_passed));
            self.lock
                .forget_waiter(stay, keeps_readers_out && waits_on.get());
        };
        let parked = park_among_kinds(
            waiter_table(),
            key_of(&self.lock.word),
            Entry {
                kind: self.rank.written_into(self.kind),
                place: self.rank.place(self.kind, self.has_waited),
            },
            until.as_ref(),
            validate,
            leave,
        );
        if parked != Parked::Invalid {
            self.was_woken = keeps_readers_out && waits_on.get();
            self.has_waited = true;
            if self.takes_its_turn_at_once() {
                // The turn may be its own, and does not keep it out.
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
                    // It was its turn in the queue. Those behind it have announced themselves too, and under writer
                    // preference that would keep it out, and it them.
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
                // A signal handler ran; or this is one, inside a bucket (it must not lock); or it is a child that was
                // forked by one.
                if crate::private::is_inside() {
                    crate::sys::sched::sleep_nanoseconds(50_000);
                }
                Queued::Looks
            }
        }
    }

    /// The alarm has rung: newcomers wait while it tries again.
    fn take_turn(&mut self) {
        self.alarms.ring();
        self.right = self.right.max(Right::Waited);
        loop {
            let state = self.lock.state();
            if matches!(self.kind, READ | CLAIM) && state.is_free() {
                // It waits for writers that do not come: this process was forked, and they are the parent's.
                self.right = Right::Holder;
            }
            // Whoever else was woken has had time enough; or it is a thread of the parent's. Under writer
            // preference it keeps readers out, and takes the lock as soon as that is free.
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

    /// As the claim's holder: waits until nobody holds the lock by a slot. Meanwhile readers come in by the word, and those in
    /// slots may have lost their CPUs to them: so here, too, an alarm takes the turn.
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

    /// It waits no longer, and those need not who waited for it alone.
    fn give_up(&self) -> RwLockError {
        if self.kind != READ && (self.alarms.have_rung() || self.rank.is_real_time()) {
            // The turn may have been its own. Others who need one take it again.
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
                // Nobody writes while it does (but in a word that is none), and who waits to write must wait for it anyway.
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

    /// Waits to write, or for the claim.
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
                // `FAST` is left alone by who only wants the claim.
                let drives_out = kind == WRITE && state.has(SLOTS);
                let new = match kind {
                    CLAIM => state.with(CLAIMED),
                    _ if drives_out => state.with(CLAIMED).without(FAST),
                    _ => state.with_writer(owner),
                };
                // Under writer preference no reader comes in any more.
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
                    // They waited for us.
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

    /// Says who the writer is: the caller.
    fn set_owner(&self, owner: u32) {
        if owner != 0 {
            // Relaxed: only the owner itself asks.
            self.word.fetch_add(u64::from(owner) << 32, Relaxed);
        }
    }

    /// From the claim to the lock; without it, if the deadline passes.
    fn drive_out(&self, owner: u32, deadline: Option<&Deadline>) -> Result<(), RwLockError> {
        let result = self.take_over(owner, deadline);
        if result.is_err() {
            self.release_claim(Release::Claim);
        }
        result
    }

    /// Turns the claim, which the caller holds, into the lock: sends fast readers to the word, waits until those in slots have
    /// left, and then those in the word.
    ///
    /// # Errors
    /// The deadline has passed; the caller still holds the claim.
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
            // Relaxed: what the readers did was acquired with their slots; and no slot is used again before this thread, or
            // one after it, gives the claim back.
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

    /// No reader comes in by a slot any more. Whether some may be there that have.
    fn shut_out_fast_readers(&self) -> bool {
        let state = self.state();
        debug_assert!(state.has(CLAIMED));
        if !state.has(SLOTS) {
            return false;
        }
        // What was counted for the bias begins anew. AcqRel: the fence behind it is what counts (`slots.rs`).
        self.word.fetch_and(!(FAST | COLLISIONS | REPORTED), AcqRel);
        true
    }

    /// The same as [`take_over`](Self::take_over), if that needs no waiting; whether it is done.
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
