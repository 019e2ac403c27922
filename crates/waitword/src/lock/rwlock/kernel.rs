//! Waiting for a process-shared lock: in the kernel, on the low half of the word.
//!
//! No process can look into another's queue, and any of them may be killed at any moment. So here nothing is handed over: a
//! release clears the bit of those whom it wakes, and they look again, announcing themselves anew if they must.
//!
//! ```text
//!   waiter                                     release
//!   ──────                                     ───────
//!   word: READERS_WAIT or WRITERS_WAIT set     word: without the hold, without the bit, one more wake
//!     (in one CAS with seeing that it must)      (one CAS: the last touch of the lock)
//!   FUTEX_WAIT_BITSET(low half, as announced)  FUTEX_WAKE_BITSET(low half, readers: all, writers: one)
//! ```
//!
//! All that may end a wait changes the low half: a release that somebody may sleep for clears his bit. And it stays changed, for
//! whoever clears such a bit counts that in the word (`State::waking`). The bit alone would not do: who has announced himself and does not
//! sleep yet is passed over by the wake, and the next one who must wait may set the same bit again before he looks. Nor would it do for
//! him to look only: readers that a release lets in come in past waiting writers, so he must know that he is one of them
//! (`State::has_let_readers_in_since`). Who is late by a multiple of 64 wakes is mistaken, and has an alarm.
//!
//! The reader count is in the high half, so that readers who come and go do not keep a writer from falling asleep. The kernel's
//! bitset tells the classes apart: readers, writers (and those who want the claim), the claim's holder.
//!
//! * A writer that was woken does not know whether others sleep, so it sets `WRITERS_WAIT` as it takes the lock. Between
//!   its wake-up and that, releases wake nobody, and no `WOKEN` is needed.
//! * A wake that found nobody asleep (they gave up, or were killed) is followed by one of the other class.
//! * Alarms end every sleep: the first after 100 µs to 10 ms (`policy.rs`), each later one after
//!   twice as long, at most a second. A thread whose alarm rang looks at the word itself. So what a
//!   killed process leaves behind delays other threads, in proportion to what they have waited
//!   already, and stops none: a wake-up that the killed thread had got, its turn
//!   (`end_stale_turn`), its `WRITERS_WAIT` (`probe`). And a release that wakes the writer with the
//!   turn need not wake readers.
//! * The longer a writer has waited, the later is the turn that it is due. After each alarm it puts
//!   that turn into the word, unless a later one stands there. Newcomers then wait, and so do
//!   writers that are due an earlier turn. A release wakes a writer that is due the latest turn
//!   (`wake_one`), and under reader preference no reader may take the free lock before it does
//!   (`is_kept`). There, a reader whose `Patience` is over ends the turn if other readers hold the
//!   lock: its own thread may be one of them.
//! * Readers never wait for a turn longer than its `Patience`, as in `wait.rs`: that ends their sleep in place of an alarm.
//!
//! A process that is killed while it *holds* the lock leaves it held: this lock is not robust.

use super::policy::{Alarms, FIRST_TURN, Patience};
use super::state::{
    CLAIM_WAITS, CLAIMED, OTHER_WAKES, READERS_TURN, READERS_WAIT, READERS_WAKES, Release, Right,
    State, TURN, WRITER, WRITERS_WAIT,
};
use super::wait::sooner;
use super::{RawRwLock, RwLockError, Wish};
use crate::atomic::AtomicU64;
use crate::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release as Releasing};
use crate::park::spin::Spin;
use crate::sys::Errno;
use crate::sys::clock::Deadline;
use crate::sys::futex::{KernelWord, shared_wake, word_wait};

/// The latest turn that a writer may be due; one that has waited for longer counts as due this one.
/// The kernel tells 32 classes apart: with two for others, 15 are left for writers and 15 for
/// threads that want the claim.
const LAST_TURN: u32 = 14;
const TURNS: u32 = (1 << (LAST_TURN + 1)) - 1;

/// The kernel's bits for the classes of sleepers.
const READERS: u32 = 1;
const CLAIMS_HOLDER: u32 = 2;
/// Writers have one bit for each turn that they may be due.
const WRITERS: u32 = TURNS << 2;
/// So do threads that want the claim.
const CLAIMANTS: u32 = TURNS << 17;

/// Those of `classes` that are due `turn`.
const fn due(classes: u32, turn: u32) -> u32 {
    classes & (1 << 2 | 1 << 17) << turn
}

const ALL: u32 = i32::MAX as u32;

/// How a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slept {
    /// Somebody woke it.
    Woken,
    /// It is to look again: the word has changed, or a signal handler ran.
    Disturbed,
    TimedOut,
}

/// Wakes sleepers of these classes; whether there were any. The lock may be gone: the kernel looks for the address only.
fn wake(word: *const AtomicU64, count: u32, classes: u32) -> bool {
    shared_wake(KernelWord::address(word), count, classes).is_ok_and(|woken| woken != 0)
}

/// Wakes one sleeper of these classes, of writers and of threads that want the claim. If `state`
/// has a turn, it wakes one that has waited for the longest. (The kernel wakes in order of arrival,
/// and a sleeper arrives anew after each alarm, and each time it finds the lock taken.) That takes
/// up to 15 system calls. Returns the turn of the woken thread, or 0 if `state` has no turn; `None`
/// if no thread sleeps.
fn wake_one(word: *const AtomicU64, classes: u32, state: State) -> Option<u32> {
    match state.turn() {
        0 => wake(word, 1, classes).then_some(0),
        _ => (0..=LAST_TURN)
            .rev()
            .find(|&turn| wake(word, 1, due(classes, turn))),
    }
}

/// Whether the lock is free, and kept for the thread that has the turn. No reader holds it, so no
/// reader that waits keeps its own thread waiting.
fn is_kept(state: State) -> bool {
    let is_free = match state.has(CLAIM_WAITS) {
        true => !state.has(WRITER) && state.readers() == 0,
        false => state.has(WRITERS_WAIT) && state.is_free(),
    };
    is_free && state.has(TURN) && !state.has(READERS_TURN)
}

/// Whether the lock has been kept for the same turn since it was `announced`, as far as the word
/// says.
fn was_kept_since(announced: State, state: State) -> bool {
    const SAME: u64 = TURN | READERS_WAKES | OTHER_WAKES;
    is_kept(announced) && is_kept(state) && (announced.0 ^ state.0) & SAME == 0
}

/// Whom a release wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whom {
    Nobody,
    ClaimsHolder,
    AllReaders,
    AWriter,
    /// One that wants the claim, while others read.
    AClaimant,
}

/// What the word says when `after` is left, and who is woken.
fn next(after: State, release: Release) -> (State, Whom) {
    if after.has(CLAIM_WAITS) && after.readers() == 0 {
        return (after.waking(CLAIM_WAITS), Whom::ClaimsHolder);
    }
    let readers_may = after.admits_reader(Right::Newcomer)
        || after.has(READERS_TURN)
        // Nobody else is there to take the turn.
        || !after.has(WRITERS_WAIT | CLAIMED);
    if after.has(READERS_WAIT) && !after.has(WRITER) && readers_may {
        return (after.waking(READERS_WAIT | READERS_TURN), Whom::AllReaders);
    }
    if after.has(WRITERS_WAIT) && after.is_free() {
        return (after.waking(WRITERS_WAIT), Whom::AWriter);
    }
    let left_claim = matches!(
        release,
        Release::Claim | Release::ClaimToReader | Release::WriterToReader
    );
    if after.has(WRITERS_WAIT) && left_claim && !after.has(CLAIMED) {
        // Writers sleep on.
        let new = after.waking(WRITERS_WAIT).with(WRITERS_WAIT);
        return (new, Whom::AClaimant);
    }
    if !after.has(READERS_WAIT | WRITERS_WAIT | CLAIM_WAITS) {
        // The turn of somebody who is gone.
        return (after.without(TURN | READERS_TURN), Whom::Nobody);
    }
    (after, Whom::Nobody)
}

impl RawRwLock {
    /// Gives `release` up, as the last touch of the lock, and wakes whoever is next.
    pub(super) fn release_in_kernel(&self, release: Release) {
        // From here on an address, not a reference: the lock may be gone before the wake.
        let word: *const AtomicU64 = &raw const self.word;
        let (new, whom) = loop {
            let state = self.state();
            let (new, whom) = next(state.after(release), release);
            if self.replace(state, new, Releasing) {
                break (new, whom);
            }
        };
        match whom {
            Whom::Nobody => {}
            Whom::ClaimsHolder => {
                wake(word, 1, CLAIMS_HOLDER);
            }
            Whom::AllReaders => {
                if !wake(word, ALL, READERS) && new.has(WRITERS_WAIT) && new.is_free() {
                    wake_one(word, WRITERS | CLAIMANTS, new);
                }
            }
            Whom::AWriter => {
                let woken = wake_one(word, WRITERS | CLAIMANTS, new);
                if woken.is_none() && new.has(READERS_WAIT) {
                    wake(word, ALL, READERS);
                }
            }
            Whom::AClaimant => {
                wake_one(word, CLAIMANTS, new);
            }
        }
    }

    /// Sleeps while the low half is as `announced`.
    fn sleep(&self, announced: State, class: u32, until: Option<&Deadline>) -> Slept {
        match word_wait(&self.word, announced.low_half(), class, until) {
            Ok(()) => Slept::Woken,
            Err(Errno::TIMEDOUT) => Slept::TimedOut,
            Err(Errno::AGAIN | Errno::INTR) => Slept::Disturbed,
            Err(_) => {
                // Memory that cannot be shared, or a kernel that refuses: look now and then.
                crate::sys::sched::sleep_nanoseconds(1_000_000);
                let passed = until.is_some_and(Deadline::has_passed);
                if passed {
                    Slept::TimedOut
                } else {
                    Slept::Disturbed
                }
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
        let asked_for = right;
        let mut right = right;
        let mut spin = Spin::at(self.address());
        let mut alarms = Alarms::new();
        let mut patience = Patience::new();
        let mut last: Option<State> = None;
        loop {
            let state = self.state();
            let let_in = last.is_some_and(|announced| state.has_let_readers_in_since(announced));
            if let_in {
                right = Right::Holder;
            }
            let is_kept = !state.prefers_writers() && is_kept(state);
            if state.admits_reader(right) && !is_kept {
                if state.is_full() {
                    return Err(RwLockError::TooManyReaders);
                }
                let mut new = state.with_readers(1);
                if right == Right::Waited || right != Right::Newcomer && state.prefers_writers() {
                    // Whoever's turn it was, it has been used; others wait no longer.
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
            alarms.begin(state);
            let waits_for_a_turn =
                right == Right::Newcomer && !state.prefers_writers() && !state.has(WRITER);
            let own = if waits_for_a_turn {
                Some(patience.end(state))
            } else {
                alarms.next()
            };
            let until = sooner(deadline.copied(), own);
            match self.sleep(announced, READERS, until.as_ref()) {
                // A release that wakes readers has decided that they may come in.
                Slept::Woken => right = Right::Holder,
                Slept::Disturbed => {}
                // What it announced stays, for others may sleep; the next release finds out.
                Slept::TimedOut if deadline.is_some_and(Deadline::has_passed) => {
                    let asked = alarms.have_rung() && state.prefers_writers();
                    if self.give_up_reading(announced, asked) {
                        return Err(RwLockError::TimedOut);
                    }
                }
                Slept::TimedOut if waits_for_a_turn => {
                    right = Right::Waited;
                    alarms = Alarms::new();
                }
                Slept::TimedOut => {
                    alarms.ring();
                    self.end_stale_turn(announced);
                    if state.prefers_writers() {
                        right = right.max(Right::Waited);
                        self.probe(alarms.turn());
                    }
                }
            }
        }
    }

    /// A reader whose deadline has passed gives up, and the turn too, if it has `asked` for it: that would keep others out of a free lock,
    /// and who needs it asks again. False: it has been let in since it `announced` itself, and whatever that release left to the readers
    /// (the turn) is its to use.
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

    /// A reader has waited too long behind writers: under a writer, it asks for the readers' turn; else it makes sure that
    /// there are writers.
    fn probe(&self, turn: u32) {
        loop {
            let state = self.state();
            if state.has(WRITER) {
                let asked = state.with_turn(turn).with(READERS_TURN);
                if self.replace(state, asked, Relaxed) {
                    return;
                }
            } else if state.has(WRITERS_WAIT) {
                // Those that there are announce themselves again.
                if self.replace(state, state.waking(WRITERS_WAIT), Relaxed) {
                    if wake(&raw const self.word, ALL, WRITERS | CLAIMANTS) {
                        // They are given the time to.
                        crate::sys::sched::sleep_nanoseconds(100_000);
                    }
                    return;
                }
            } else {
                return;
            }
        }
    }

    /// Waits to write, or for the claim.
    #[cold]
    pub(super) fn wait_exclusive_in_kernel(
        &self,
        wish: Wish,
        deadline: Option<&Deadline>,
    ) -> Result<(), RwLockError> {
        let mut right = Right::Newcomer;
        let mut spin = Spin::at(self.address());
        let mut alarms = Alarms::new();
        // The turn that it is due.
        let mut turn = 0;
        let class = match wish {
            Wish::Write(_) => WRITERS,
            Wish::Claim => CLAIMANTS,
        };
        let mut last: Option<State> = None;
        loop {
            let state = self.state();
            if last.is_some_and(|announced| state.has_woken_others_since(announced)) {
                // Perhaps it: it did not sleep yet.
                right = Right::Holder;
            }
            let is_due = turn >= state.turn() || state.has(READERS_TURN);
            let admitted = match wish {
                Wish::Write(_) => state.admits_writer(right),
                Wish::Claim => state.admits_claimant(right),
            };
            if admitted && (is_due || right == Right::Newcomer) {
                let new = match wish {
                    Wish::Write(owner) => state.with_writer(owner),
                    Wish::Claim => state.with(CLAIMED),
                };
                // Whoever has slept does not know who sleeps still.
                let new = match right {
                    Right::Newcomer => new,
                    _ => new.without(TURN | READERS_TURN).with(WRITERS_WAIT),
                };
                // Readers that the turn has kept asleep go together with the claim.
                let lets_in = wish == Wish::Claim
                    && new.has(READERS_WAIT)
                    && new.admits_reader(Right::Newcomer);
                let new = if lets_in {
                    new.waking(READERS_WAIT)
                } else {
                    new
                };
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
            alarms.begin(state);
            let until = sooner(deadline.copied(), alarms.next());
            match self.sleep(announced, due(class, turn), until.as_ref()) {
                Slept::Woken => {
                    if state.prefers_writers() {
                        // If it waits again, readers have overtaken it on its way.
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
                    alarms.ring();
                    turn = turn.max(alarms.turn()).min(LAST_TURN);
                    right = Right::Holder;
                    self.end_stale_turn(announced);
                }
            }
        }
    }

    /// Ends the turn if the lock was kept for it all the time that this thread slept, since it
    /// `announced` itself: the thread that has the turn is late, or was killed.
    fn end_stale_turn(&self, announced: State) {
        let state = self.state();
        if was_kept_since(announced, state) {
            // If the word has changed, the lock is kept no longer.
            self.replace(state, state.without(TURN), Relaxed);
        }
    }

    /// Takes back what this thread has announced. It wakes one other thread that announced the
    /// same, which looks again and announces it for all of them; and readers, if they need not wait
    /// any longer.
    fn give_up(&self, announced: u64) {
        let word = &raw const self.word;
        let had = self.take_back(announced);
        if announced & WRITERS_WAIT != 0 {
            match wake_one(word, WRITERS | CLAIMANTS, had) {
                None => {}
                // It is due no turn.
                Some(0) if had.has(TURN) => {}
                Some(_) => return,
            }
        }
        self.take_back(READERS_WAIT);
        wake(word, ALL, READERS);
    }

    /// Clears `bits`, for sleepers that are woken next. Returns what the word said.
    fn take_back(&self, bits: u64) -> State {
        loop {
            let state = self.state();
            if self.replace(state, state.waking(bits), AcqRel) {
                return state;
            }
        }
    }

    /// [`take_over`](Self::take_over) of a process-shared lock, which has no fast readers.
    #[cold]
    pub(super) fn take_over_in_kernel(
        &self,
        owner: u32,
        deadline: Option<&Deadline>,
    ) -> Result<(), RwLockError> {
        let mut spin = Spin::at(self.address());
        let mut alarms = Alarms::new();
        loop {
            let state = self.state();
            if state.readers() == 0 {
                // The turn, if it was its own, has been used.
                let new = state.with_writer(owner).without(TURN | READERS_TURN);
                if self.replace(state, new, Acquire) {
                    return Ok(());
                }
                continue;
            }
            if spin.again() {
                continue;
            }
            let mut announced = state.with(CLAIM_WAITS);
            if alarms.have_rung() {
                announced = announced.with_turn(alarms.turn());
            }
            if !self.replace(state, announced, Relaxed) {
                continue;
            }
            alarms.begin(state);
            let until = sooner(deadline.copied(), alarms.next());
            match self.sleep(announced, CLAIMS_HOLDER, until.as_ref()) {
                Slept::Woken | Slept::Disturbed => {}
                Slept::TimedOut if deadline.is_some_and(Deadline::has_passed) => {
                    self.give_up(CLAIM_WAITS | TURN);
                    return Err(RwLockError::TimedOut);
                }
                Slept::TimedOut => alarms.ring(),
            }
        }
    }
}

// What a release must change for sleepers lies in the half that they sleep on.
const _: () = {
    let bits = READERS_WAIT | WRITERS_WAIT | CLAIM_WAITS | READERS_TURN | TURN;
    assert!((bits | READERS_WAKES | OTHER_WAKES) >> 32 == 0);
};
