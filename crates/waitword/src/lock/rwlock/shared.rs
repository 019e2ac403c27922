//! Waiting for a process-shared lock: in the kernel, on the low half of the word.
//!
//! No process can look into another's queue, and any process may be killed at any moment. So
//! nothing is handed off here. A release clears the waiter bit of the threads that it wakes. They
//! look at the word again, and announce themselves again if they must wait.
//!
//! ```text
//!   waiter                                 release
//!   ──────                                 ───────
//!   CAS word: set READERS_WAIT or          CAS word: clear the hold and the bit, count a wake-up
//!     WRITERS_WAIT, if it must wait          (the last touch of the lock)
//!   FUTEX_WAIT_BITSET(low half,            FUTEX_WAKE_BITSET(low half,
//!                     as announced)                          readers: all, writers: one)
//! ```
//!
//! # Lost wake-ups
//!
//! Everything that may end a wait changes the low half: a release that a thread may sleep for
//! clears that thread's bit. The low half also stays changed, because the step that clears such a
//! bit counts that in the word (`State::waking`). The bit alone would not suffice. A waiter that
//! has announced itself but does not sleep yet is missed by the wake-up, and the next waiter may
//! set the same bit again before the first one looks. Nor would it suffice for the first waiter
//! just to look again: readers that a release lets in enter past waiting writers, so the waiter
//! must know that it is one of them (`State::has_let_readers_in_since`). A waiter that is late by a
//! multiple of 64 wake-ups (a reader: of 128) is mistaken, and relies on its re-check timer.
//!
//! The reader count is in the high half, so that readers that come and go do not keep a writer from
//! falling asleep. The kernel's bitset distinguishes the classes of waiters: readers, writers,
//! threads that want the upgradable lock, and the `UPGRADABLE` holder.
//!
//! * A writer that was woken does not know whether other threads sleep, so it sets `WRITERS_WAIT`
//!   as it takes the lock. Between its wake-up and that step, releases wake no thread, and `WOKEN`
//!   is not needed.
//! * A wake-up that found no sleeper (they gave up or were killed) is followed by one for the other
//!   class.
//!
//! # Re-check timers and turns
//!
//! * Timers (`Recheck`) end every sleep: the first after 100 µs to 10 ms (`policy.rs`), each later
//!   one after twice as long, at most a second. A thread whose timer fires looks at the word
//!   itself. So what a killed process leaves behind delays other threads in proportion to what they
//!   have waited already, and blocks none of them. It may leave behind a wake-up that the killed
//!   thread had received, its turn (`end_stale_turn`), or its `WRITERS_WAIT` (`probe`). For the
//!   same reason, a release that wakes the writer with the turn need not wake readers.
//! * The longer a writer has waited, the later is the turn that it is due. After each time that its
//!   timer fires, it puts that turn into the word, unless a later one is there. Newcomers then
//!   wait, and so do writers that are due an earlier turn. A release wakes a writer that is due the
//!   latest turn (`wake_one`). Under reader preference, no reader may take the free lock before
//!   that writer does (`is_kept`). There, a reader whose `Patience` is over ends the turn if other
//!   readers hold the lock: its own thread may be one of them.
//! * A reader waits for a turn only as long as its `Patience` lasts, as in `private.rs`. That ends
//!   its sleep in place of the timer.
//!
//! A process that is killed while it *holds* the lock leaves it held: this lock is not robust.

use super::kernel_queue::{
    ALL, LAST_TURN, READERS, Slept, UPGRADABLE_READERS, UPGRADER, WRITERS, due, is_due, wake,
    wake_one,
};
use super::policy::{FIRST_TURN, Next, Patience, Policy, Recheck};
use super::surroundings::{Machine, sooner};
use super::word::{
    OTHER_WAKES, READERS_TURN, READERS_WAIT, READERS_WAKES, Release, Right, State, TURN,
    UPGRADABLE, UPGRADE_WAITS, WRITER, WRITERS_WAIT,
};
use super::{RawRwLock, RwLockError, Wish};
use crate::atomic::AtomicU64;
use crate::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release as Releasing};
use crate::park::spin::Spin;
use crate::record::{self, Object};
use crate::sys::clock::Deadline;

impl RawRwLock {
    /// Gives up `release`, as the last touch of the lock, and wakes the next waiters.
    pub(super) fn release_in_kernel(&self, release: Release) {
        // From here on an address, not a reference: the lock may be freed before the wake-up.
        let word: *const AtomicU64 = &raw const self.word;
        let (new, next) = loop {
            let state = self.state();
            let (new, next) = Policy::next_in_kernel(state.after(release), release);
            if self.replace(state, new, Releasing) {
                break (new, next);
            }
        };
        match next {
            Next::None => {}
            Next::Upgrader => {
                wake(word, 1, UPGRADER);
            }
            Next::Readers { .. } => {
                if !wake(word, ALL, READERS) && new.has(WRITERS_WAIT) && new.is_free() {
                    wake_one(word, WRITERS | UPGRADABLE_READERS, new);
                }
            }
            Next::AWriter | Next::First => {
                let woken = wake_one(word, WRITERS | UPGRADABLE_READERS, new);
                if woken.is_none() && new.has(READERS_WAIT) {
                    wake(word, ALL, READERS);
                }
            }
            Next::AnUpgradable => {
                wake_one(word, UPGRADABLE_READERS, new);
            }
        }
    }

    /// Waits to read.
    #[cold]
    pub(super) fn wait_shared_in_kernel(
        &self,
        right: Right,
        owner: u32,
        deadline: Option<&Deadline>,
    ) -> Result<(), RwLockError> {
        record::waiting(Object::Read, self.address(), deadline.is_some(), || {
            self.wait_shared_in_kernel_unrecorded(right, owner, deadline)
        })
    }

    #[inline(always)]
    fn wait_shared_in_kernel_unrecorded(
        &self,
        right: Right,
        owner: u32,
        deadline: Option<&Deadline>,
    ) -> Result<(), RwLockError> {
        let asked_for = right;
        let mut right = right;
        let mut spin = Spin::at(self.address());
        let mut recheck = Recheck::new();
        let mut patience = Patience::new();
        let mut last: Option<State> = None;
        loop {
            let state = self.state();
            let let_in = last.is_some_and(|announced| state.has_let_readers_in_since(announced));
            if let_in {
                right = Right::Holder;
            }
            let is_kept = !state.prefers_writers() && Policy::is_kept(state);
            if state.admits_reader(right) && !is_kept {
                if state.is_full() {
                    return Err(RwLockError::TooManyReaders);
                }
                let mut new = state.with_readers(1);
                if right == Right::Waited || right != Right::Newcomer && state.prefers_writers() {
                    // The turn has been used, whichever thread had it. Other threads need not wait
                    // for it.
                    new = new.without(TURN | READERS_TURN);
                }
                let others = right != asked_for && state.has(TURN) && state.has(READERS_WAIT);
                if others {
                    new = new.waking(READERS_WAIT);
                }
                if self.replace(state, new, Acquire) {
                    if others {
                        wake(&raw const self.word, ALL, READERS);
                    }
                    spin.won();
                    return Ok(());
                }
                continue;
            }
            if owner != 0 && state.owner() == owner {
                return Err(RwLockError::Deadlock);
            }
            if spin.again() {
                continue;
            }
            let announced = state.with(READERS_WAIT);
            if !self.replace(state, announced, Relaxed) {
                continue;
            }
            last = Some(announced);
            recheck.begin(state, &Machine);
            let waits_for_turn = right == Right::Newcomer && Policy::waits_for_turn(state);
            let own = if waits_for_turn {
                Some(Machine::at(patience.end(state, &Machine)))
            } else {
                Machine.deadline(&recheck)
            };
            let until = sooner(deadline.copied(), own);
            match self.sleep(announced, READERS, until.as_ref()) {
                // A release that wakes readers has decided that they may enter.
                Slept::Woken => right = Right::Holder,
                Slept::Disturbed => {}
                // Its waiter bit stays, because other readers may sleep. The next release finds
                // out.
                Slept::TimedOut if deadline.is_some_and(Deadline::has_passed) => {
                    let asked = recheck.has_fired() && state.prefers_writers();
                    if self.give_up_reading(announced, asked) {
                        return Err(RwLockError::TimedOut);
                    }
                }
                Slept::TimedOut if waits_for_turn => {
                    right = Right::Waited;
                    recheck = Recheck::new();
                }
                Slept::TimedOut => {
                    recheck.fire();
                    self.end_stale_turn(announced);
                    if state.prefers_writers() {
                        right = right.max(Right::Waited);
                        self.probe(recheck.turn());
                    }
                }
            }
        }
    }

    /// Called by a reader whose deadline has passed. If it has `asked` for the turn, it gives that
    /// up too: the turn would keep other threads out of a free lock, and a thread that needs it
    /// asks again.
    ///
    /// Returns false if the reader has been let in since it `announced` itself. It must then use
    /// what that release left to the readers (the turn).
    fn give_up_reading(&self, announced: State, asked: bool) -> bool {
        loop {
            let state = self.state();
            if state.has_let_readers_in_since(announced) {
                return false;
            }
            if !asked || self.replace(state, state.without(READERS_TURN | TURN), Relaxed) {
                return true;
            }
        }
    }

    /// Called by a reader that has waited too long behind writers. While a writer holds the lock,
    /// asks for the readers' turn. Otherwise makes sure that there are waiting writers.
    fn probe(&self, turn: u32) {
        loop {
            let state = self.state();
            if state.has(WRITER) {
                let asked = state.with_turn(turn).with(READERS_TURN);
                if self.replace(state, asked, Relaxed) {
                    return;
                }
            } else if state.has(WRITERS_WAIT) {
                // Writers that exist announce themselves again.
                if self.replace(state, state.waking(WRITERS_WAIT), Relaxed) {
                    if wake(&raw const self.word, ALL, WRITERS | UPGRADABLE_READERS) {
                        // Give them time to.
                        crate::sys::sched::sleep_nanoseconds(100_000);
                    }
                    return;
                }
            } else {
                return;
            }
        }
    }

    /// Waits to write, or for the upgradable lock.
    #[cold]
    pub(super) fn wait_exclusive_in_kernel(
        &self,
        wish: Wish,
        deadline: Option<&Deadline>,
    ) -> Result<(), RwLockError> {
        record::waiting(Object::Write, self.address(), deadline.is_some(), || {
            self.wait_exclusive_in_kernel_unrecorded(wish, deadline)
        })
    }

    #[inline(always)]
    fn wait_exclusive_in_kernel_unrecorded(
        &self,
        wish: Wish,
        deadline: Option<&Deadline>,
    ) -> Result<(), RwLockError> {
        let mut right = Right::Newcomer;
        let mut spin = Spin::at(self.address());
        let mut recheck = Recheck::new();
        // The turn that this thread is due.
        let mut turn = 0;
        let class = match wish {
            Wish::Write(_) => WRITERS,
            Wish::ReadUpgradably => UPGRADABLE_READERS,
        };
        let mut last: Option<State> = None;
        loop {
            let state = self.state();
            if last.is_some_and(|announced| state.has_woken_others_since(announced)) {
                // Perhaps this thread: it did not sleep yet.
                right = Right::Holder;
            }
            let admitted = match wish {
                Wish::Write(_) => state.admits_writer(right),
                Wish::ReadUpgradably => state.admits_upgradable(right),
            };
            if admitted && (is_due(turn, state) || right == Right::Newcomer) {
                let new = match wish {
                    Wish::Write(owner) => state.with_writer(owner),
                    Wish::ReadUpgradably => state.with(UPGRADABLE),
                };
                // A thread that has slept does not know which other threads still sleep.
                let new = match right {
                    Right::Newcomer => new,
                    _ => new.without(TURN | READERS_TURN).with(WRITERS_WAIT),
                };
                // Readers that the turn has kept asleep can share the lock with its upgradable
                // holder.
                let lets_in = wish == Wish::ReadUpgradably
                    && new.has(READERS_WAIT)
                    && new.admits_reader(Right::Newcomer);
                let new = if lets_in { new.waking(READERS_WAIT) } else { new };
                if self.replace(state, new, Acquire) {
                    if lets_in {
                        wake(&raw const self.word, ALL, READERS);
                    }
                    spin.won();
                    return Ok(());
                }
                continue;
            }
            if matches!(wish, Wish::Write(owner) if owner != 0 && state.owner() == owner) {
                return Err(RwLockError::Deadlock);
            }
            if spin.again() {
                continue;
            }
            let announced = state.with(WRITERS_WAIT).with_turn(turn);
            if !self.replace(state, announced, Relaxed) {
                continue;
            }
            last = Some(announced);
            recheck.begin(state, &Machine);
            let until = sooner(deadline.copied(), Machine.deadline(&recheck));
            match self.sleep(announced, due(class, turn), until.as_ref()) {
                Slept::Woken => {
                    if state.prefers_writers() {
                        // If it must wait again, readers have overtaken it.
                        turn = turn.max(FIRST_TURN);
                    }
                    right = Right::Holder;
                    spin = Spin::at(self.address());
                }
                Slept::Disturbed => {}
                Slept::TimedOut if deadline.is_some_and(Deadline::has_passed) => {
                    self.give_up(WRITERS_WAIT | TURN);
                    return Err(RwLockError::TimedOut);
                }
                Slept::TimedOut => {
                    recheck.fire();
                    turn = turn.max(recheck.turn()).min(LAST_TURN);
                    right = Right::Holder;
                    self.end_stale_turn(announced);
                }
            }
        }
    }

    /// Ends the turn if the lock was kept for it during the whole sleep, since this thread
    /// `announced` itself: the thread that has the turn is late, or was killed.
    fn end_stale_turn(&self, announced: State) {
        let state = self.state();
        if Policy::was_kept_since(announced, state) {
            // If the word has changed, the lock is no longer kept.
            self.replace(state, state.without(TURN), Relaxed);
        }
    }

    /// Withdraws what this thread has announced. Wakes one other thread that announced the same,
    /// which looks again and announces it for all of them. Also wakes the readers, if they no
    /// longer need to wait.
    fn give_up(&self, announced: u64) {
        let word = &raw const self.word;
        let had = self.take_back(announced);
        if announced & WRITERS_WAIT != 0 {
            match wake_one(word, WRITERS | UPGRADABLE_READERS, had) {
                None => {}
                // It is due no turn.
                Some(0) if had.has(TURN) => {}
                Some(_) => return,
            }
        }
        self.take_back(READERS_WAIT);
        wake(word, ALL, READERS);
    }

    /// Clears `bits`, whose sleepers the caller wakes next. Returns the previous word.
    fn take_back(&self, bits: u64) -> State {
        loop {
            let state = self.state();
            if self.replace(state, state.waking(bits), AcqRel) {
                return state;
            }
        }
    }

    /// [`wait_upgrade`](Self::wait_upgrade) for a process-shared lock, which is never biased.
    #[cold]
    pub(super) fn wait_upgrade_in_kernel(
        &self,
        owner: u32,
        deadline: Option<&Deadline>,
    ) -> Result<(), RwLockError> {
        let mut spin = Spin::at(self.address());
        let mut recheck = Recheck::new();
        loop {
            let state = self.state();
            if state.readers() == 0 {
                // The turn has been used, if it was this thread's.
                let new = state.with_writer(owner).without(TURN | READERS_TURN);
                if self.replace(state, new, Acquire) {
                    return Ok(());
                }
                continue;
            }
            if spin.again() {
                continue;
            }
            let mut announced = state.with(UPGRADE_WAITS);
            if recheck.has_fired() {
                announced = announced.with_turn(recheck.turn());
            }
            if !self.replace(state, announced, Relaxed) {
                continue;
            }
            recheck.begin(state, &Machine);
            let until = sooner(deadline.copied(), Machine.deadline(&recheck));
            match self.sleep(announced, UPGRADER, until.as_ref()) {
                Slept::Woken | Slept::Disturbed => {}
                Slept::TimedOut if deadline.is_some_and(Deadline::has_passed) => {
                    self.give_up(UPGRADE_WAITS | TURN);
                    return Err(RwLockError::TimedOut);
                }
                Slept::TimedOut => recheck.fire(),
            }
        }
    }
}

// Everything that a release must change for sleepers is in the half that they sleep on.
const _: () = {
    let bits = READERS_WAIT | WRITERS_WAIT | UPGRADE_WAITS | READERS_TURN | TURN;
    assert!((bits | READERS_WAKES | OTHER_WAKES) >> 32 == 0);
};
