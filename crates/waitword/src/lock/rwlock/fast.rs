//! Fast paths: acquire and release without waiting, one read-modify-write each. They are inlined
//! for the simplest words and out of line for the rest.
//!
//! Three decisions shape these paths:
//!
//! * **Constants.** The value that a compare-and-swap expects is a constant behind a predicted
//!   branch, not the value just loaded. So the processor need not wait for the load (0.6 ns of 2.4
//!   on an EPYC). The branches use different orderings only to keep the compiler from merging them
//!   again.
//! * **A release is a subtraction**, which cannot fail, and not a compare-and-swap (0.5 ns less).
//!   It is used only after a load has shown a simple word. If a thread queues between that load and
//!   the subtraction, the lock is free by then and may have been freed. So the release first looks
//!   at nothing but the waiter table (`hand_over.rs`, "Late releases").
//! * **Contended words.** Where readers on two CPUs meet, the word is seldom that simple. Where
//!   more threads than CPUs use a lock, some of them wait at any time. Under reader preference this
//!   changes nothing for a newcomer, nor for a reader that leaves other readers behind, nor, if a
//!   waiter is awake already (`WOKEN`), for a thread that releases. So a third branch serves such
//!   words. For readers, `State` decides which words these are (`admits_reader_at_once`,
//!   `lets_reader_leave`).

use super::bias;
use super::slots;
use super::word::{
    CLAIM_WAITS, CLAIMED, COLLISIONS, FAST, PREFER_WRITER, READER, READERS_WAIT, REPORTED, Release,
    Right, SLOTS, State, TURN, WOKEN, WRITER, WRITERS_WAIT,
};
use super::{RawRwLock, RwLockError, Wish};
use crate::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release as Releasing};
use crate::sys::clock::Deadline;

/// The bits of waiters, queued or woken. Under reader preference these keep no thread out.
const WAITERS: u64 = READERS_WAIT | WRITERS_WAIT | WOKEN;

/// How an attempt to enter ended.
pub(super) enum Entered {
    Yes,
    /// The maximum number of readers hold the lock.
    Full,
    /// The lock did not admit the thread when it was in this state.
    No(State),
}

/// Marks the branch that calls it as rarely taken. (`core::hint::cold_path` needs Rust 1.95.)
#[cold]
#[inline(always)]
fn cold_path() {}

impl RawRwLock {
    #[inline]
    pub(super) fn state(&self) -> State {
        // Relaxed: a thread that acts on the value does so by a read-modify-write with its own
        // ordering.
        State(self.word.load(Relaxed))
    }

    /// Replaces `seen` by `new` if the word has not changed.
    #[inline]
    pub(super) fn replace(&self, seen: State, new: State, order: crate::atomic::Ordering) -> bool {
        self.word
            .compare_exchange(seen.0, new.0, order, Relaxed)
            .is_ok()
    }

    #[inline]
    pub(super) fn address(&self) -> usize {
        (&raw const self.word).addr()
    }

    /// The key that a reader of this lock publishes under the bias in `state`.
    #[inline]
    pub(super) fn key(&self, state: State) -> slots::Key {
        slots::Key::new(self.address(), state)
    }

    /// Enters from one of the two simplest words (unlocked, with either preference), or past
    /// waiters and other readers. Returns whether it has entered.
    #[inline]
    pub(super) fn take_unlocked(&self, add: u64) -> bool {
        let state = self.word.load(Relaxed);
        if state == 0 {
            self.word.compare_exchange(0, add, Acquire, Relaxed).is_ok()
        } else if state == PREFER_WRITER {
            let held = PREFER_WRITER + add;
            // AcqRel instead of Acquire: see the module documentation.
            self.word
                .compare_exchange(PREFER_WRITER, held, AcqRel, Relaxed)
                .is_ok()
        } else if may_pass(State(state), add) {
            cold_path();
            self.word
                .compare_exchange(state, state + add, Acquire, Relaxed)
                .is_ok()
        } else {
            false
        }
    }

    /// Gives back what `take_unlocked` has added, if no look at the queue is needed. Returns false
    /// if it has done nothing.
    #[inline]
    pub(super) fn give_back_alone(&self, add: u64) -> bool {
        let state = self.word.load(Relaxed);
        if state == add {
            self.subtract(add, add, Releasing)
        } else if state == PREFER_WRITER + add {
            // AcqRel instead of Release: see the module documentation.
            self.subtract(PREFER_WRITER + add, add, AcqRel)
        } else if add == READER {
            let leaves = State(state).lets_reader_leave();
            leaves && self.leave_others(State(state))
        } else if state & !WRITERS_WAIT == add + WOKEN {
            // A waiter that is awake already will take care of the rest (`calls_for_others`).
            cold_path();
            self.word
                .compare_exchange(state, state - add, Releasing, Relaxed)
                .is_ok()
        } else {
            false
        }
    }

    /// Gives back `add` from a word that was `seen`. Returns false if it has done nothing.
    #[inline(always)]
    fn subtract(&self, seen: u64, add: u64, order: crate::atomic::Ordering) -> bool {
        // The shortest code is a subtraction that reports only whether nothing is left, as here
        // where `seen` equals `add`.
        #[cfg(not(feature = "send_guard"))]
        {
            if self.word.fetch_sub(add, order) != seen {
                self.hand_over_late();
            }
            true
        }
        // Since the load, readers may have entered through slots, and a thread that was sent the
        // guard of one of them may have given back this hold instead. Then this thread's hold is in
        // a slot.
        #[cfg(feature = "send_guard")]
        {
            let left = self.word.compare_exchange(seen, seen - add, order, Relaxed);
            left.is_ok()
        }
    }

    /// Gives back a reader's hold from a word that was `seen` and that lets it leave. Returns false
    /// if it has done nothing.
    #[inline(always)]
    fn leave_others(&self, seen: State) -> bool {
        debug_assert!(seen.lets_reader_leave());
        #[cfg(not(feature = "send_guard"))]
        {
            // Release: the reads come before the next write.
            let left = State(self.word.fetch_sub(READER, Releasing));
            if left
                .after(Release::Reader)
                .calls_for_others(Release::Reader)
            {
                self.hand_over_late();
            }
            true
        }
        // As in `subtract`.
        #[cfg(feature = "send_guard")]
        {
            self.replace(seen, seen.after(Release::Reader), Releasing)
        }
    }

    /// Acquires the lock for reading if that needs no waiting.
    #[inline]
    pub(super) fn try_enter_shared(&self, right: Right) -> Result<(), RwLockError> {
        if self.take_unlocked(READER) {
            return Ok(());
        }
        match self.enter_shared_among_others(right) {
            Entered::Yes => Ok(()),
            Entered::Full => Err(RwLockError::TooManyReaders),
            Entered::No(_) => Err(RwLockError::Busy),
        }
    }

    #[inline]
    pub(super) fn acquire_shared(
        &self,
        right: Right,
        owner: u32,
        deadline: Option<&Deadline>,
    ) -> Result<(), RwLockError> {
        if self.take_unlocked(READER) {
            return Ok(());
        }
        self.acquire_shared_among_others(right, owner, deadline)
    }

    /// Acquires the lock for reading, however long that takes.
    #[inline]
    pub(super) fn take_shared(&self, right: Right) {
        if !self.take_unlocked(READER) {
            self.take_shared_among_others(right);
        }
    }

    #[inline(never)]
    fn take_shared_among_others(&self, right: Right) {
        let state = self.state();
        if state.has(FAST) {
            // Only the preferred slot: everything else is a tail call, which needs no frame here.
            if let Some(published) = slots::publish_at_once(self.key(state)) {
                // Acquire: as in `enter_by_slot`.
                if State(self.word.load(Acquire)).is_still_biased_as(state) {
                    return;
                }
                return self.take_shared_after(published, right);
            }
        }
        if !self.enter_beside_others(state) {
            self.take_shared_by_word(right);
        }
    }

    /// Enters as a reader through the word, past waiters and other readers, after `take_unlocked`
    /// has failed to. Returns whether it has entered.
    #[inline]
    pub(super) fn enter_beside_others(&self, mut state: State) -> bool {
        // `take_unlocked` handles such words. It failed because another CPU changed the word
        // meanwhile.
        while state.admits_reader_at_once() && !state.collides_often() {
            let new = state.with_readers(1).with_collision();
            match self.word.compare_exchange(state.0, new.0, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => state = State(now),
            }
        }
        false
    }

    #[cold]
    #[inline(never)]
    fn take_shared_after(&self, published: slots::Published, right: Right) {
        self.withdraw(published);
        self.take_shared_by_word(right);
    }

    #[inline(never)]
    fn take_shared_by_word(&self, right: Right) {
        while self.acquire_shared_by_word(right, 0, None).is_err() {
            // There are too many readers. Wait until one of them leaves.
            crate::sys::sched::sleep_nanoseconds(1_000_000);
        }
    }

    #[inline(never)]
    fn acquire_shared_among_others(
        &self,
        right: Right,
        owner: u32,
        deadline: Option<&Deadline>,
    ) -> Result<(), RwLockError> {
        let state = self.state();
        if state.has(FAST) && self.enter_by_slot(state) || self.enter_beside_others(state) {
            return Ok(());
        }
        self.acquire_shared_by_word(right, owner, deadline)
    }

    #[inline(never)]
    fn acquire_shared_by_word(
        &self,
        right: Right,
        owner: u32,
        deadline: Option<&Deadline>,
    ) -> Result<(), RwLockError> {
        match self.enter_shared_among_others(right) {
            Entered::Yes => Ok(()),
            Entered::Full => Err(RwLockError::TooManyReaders),
            Entered::No(state) if state.is_shared() => {
                self.wait_shared_in_kernel(right, owner, deadline)
            }
            Entered::No(_) => self.wait_shared(right, owner, deadline),
        }
    }

    /// Enters as a reader, through a slot or the word, if the lock admits it.
    #[inline(never)]
    pub(super) fn enter_shared_among_others(&self, right: Right) -> Entered {
        let (mut collided, mut begins) = (false, None);
        loop {
            let state = self.state();
            if state.has(FAST) && self.enter_by_slot(state) {
                return Entered::Yes;
            }
            if !state.admits_reader(right) {
                return Entered::No(state);
            }
            if state.is_full() {
                return Entered::Full;
            }
            let mut new = state.with_readers(1);
            if !state.is_shared() {
                new = self.count_collision(state, new, collided, &mut begins);
            }
            if right == Right::Waited {
                // It has waited as long as it must, so other readers need not wait for the turn
                // either.
                new = new.without(TURN);
            }
            if self.replace(state, new, Acquire) {
                if right == Right::Waited && state.has(TURN) && state.has(READERS_WAIT) {
                    self.let_in();
                }
                return Entered::Yes;
            }
            collided = true;
        }
    }

    /// Tries to enter through a slot. `state` has `FAST`.
    #[inline]
    fn enter_by_slot(&self, state: State) -> bool {
        let Some(published) = slots::publish(self.key(state)) else {
            return false;
        };
        // Acquire: the last writer's release comes before `FAST` was set.
        if State(self.word.load(Acquire)).is_still_biased_as(state) {
            return true;
        }
        self.withdraw(published);
        false
    }

    /// Takes back a slot through which the thread may not hold the lock.
    fn withdraw(&self, published: slots::Published) {
        if !published.retract() {
            // Another thread took the slot for its own hold, which is elsewhere. Give back that one
            // instead.
            self.release_shared_elsewhere();
        }
    }

    /// Counts a collision in `new`, if there was one. After enough of them, makes the lock biased.
    #[inline]
    fn count_collision(
        &self,
        state: State,
        new: State,
        collided: bool,
        begins: &mut Option<u32>,
    ) -> State {
        if state.has(FAST) {
            return new;
        }
        if !state.collides_often() {
            return match collided {
                true => new.with_collision(),
                false => new,
            };
        }
        // Called once per attempt: it takes so long that the word may have changed by then.
        if begins.is_none() {
            *begins = bias::begin(self.address(), !state.has(REPORTED));
        }
        match *begins {
            Some(number) if state.may_become_fast() => new.biased(number),
            _ => new.without(COLLISIONS).with(REPORTED),
        }
    }

    /// Gives back a reader's hold.
    #[inline]
    pub(super) fn release_shared(&self) {
        if !self.give_back_alone(READER) {
            self.release_shared_wherever();
        }
    }

    #[inline(never)]
    fn release_shared_wherever(&self) {
        // The caller holds the lock, so its memory is still valid.
        let state = self.state();
        if !(state.has(SLOTS) && slots::retract(self.key(state))) {
            self.release_shared_elsewhere();
        }
    }

    /// Gives back a reader's hold that is not in a slot of the calling thread. There is one.
    ///
    /// A scan of the slots may miss it: during the scan, a reader enters through a slot that the
    /// scan has passed already, and the slot ahead is cleared by a thread that gives back that
    /// reader's hold.
    #[inline(never)]
    pub(super) fn release_shared_elsewhere(&self) {
        while !self.release_shared_by_word() {
            let state = self.state();
            let is_held = state.readers() != 0 || state.has(SLOTS);
            debug_assert!(is_held, "released a read lock that is not held");
            if !is_held {
                return;
            }
            #[cfg(loom)]
            crate::checker::thread::yield_now();
        }
    }

    /// Gives back a reader's hold. Returns false if there are no readers.
    #[inline]
    pub(super) fn release_shared_if_held(&self) -> bool {
        self.give_back_alone(READER) || self.release_shared_among_others()
    }

    #[inline(never)]
    fn release_shared_among_others(&self) -> bool {
        // The caller holds the lock, so its memory is still valid.
        let state = self.state();
        if state.has(SLOTS) && slots::retract_at_once(self.key(state)) {
            return true;
        }
        self.release_shared_from_anywhere()
    }

    #[inline(never)]
    fn release_shared_from_anywhere(&self) -> bool {
        self.release_own_slot() || self.release_shared_by_word() || self.release_shared_if_found()
    }

    /// Gives back a reader's hold that a scan has missed. Returns false if there are no readers.
    ///
    /// The caller may not be a reader: it may hold the upgradable lock, or be in error. So this
    /// does not try forever. Each miss requires another reader that comes and goes during the scan
    /// ([`release_shared_elsewhere`](Self::release_shared_elsewhere)). After that many misses in a
    /// row, assume that there is no such hold.
    #[cold]
    fn release_shared_if_found(&self) -> bool {
        const LOOKS: u32 = 100;
        (0..LOOKS).any(|_| {
            #[cfg(loom)]
            crate::checker::thread::yield_now();
            let state = self.state();
            (state.readers() != 0 || state.has(SLOTS)) && self.release_shared_by_word()
        })
    }

    /// Gives back a reader's hold that is in a slot of the calling thread. Returns whether there
    /// was one.
    #[inline]
    fn release_own_slot(&self) -> bool {
        // The caller holds the lock, so its memory is still valid. While the lock is held through a
        // slot, `SLOTS` and the bias stay.
        let state = self.state();
        state.has(SLOTS) && slots::retract(self.key(state))
    }

    #[inline(never)]
    fn release_shared_by_word(&self) -> bool {
        loop {
            let state = self.state();
            if state.readers() == 0 {
                // The hold is in another thread's slot, or there is none.
                return state.has(SLOTS) && slots::retract_any(self.key(state));
            }
            let after = state.after(Release::Reader);
            if after.calls_for_others(Release::Reader) {
                self.hand_over(state, Release::Reader);
                return true;
            }
            if self.replace(state, after, Releasing) {
                return true;
            }
        }
    }

    /// Acquires the lock for writing if that needs no waiting.
    #[inline]
    pub(super) fn enter_exclusive(&self, owner: u32) -> bool {
        self.take_unlocked(held_by(owner)) || self.enter_exclusive_at_once(owner)
    }

    #[inline]
    pub(super) fn acquire_exclusive(
        &self,
        owner: u32,
        deadline: Option<&Deadline>,
    ) -> Result<(), RwLockError> {
        if self.take_unlocked(held_by(owner)) {
            return Ok(());
        }
        self.acquire_exclusive_among_others(owner, deadline)
    }

    #[inline(never)]
    fn acquire_exclusive_among_others(
        &self,
        owner: u32,
        deadline: Option<&Deadline>,
    ) -> Result<(), RwLockError> {
        let mut state = self.state();
        while state.admits_writer(Right::Newcomer) && !state.has(SLOTS) {
            if self.replace(state, state.with_writer(owner), Acquire) {
                return Ok(());
            }
            state = self.state();
        }
        if state.is_shared() {
            self.wait_exclusive_in_kernel(Wish::Write(owner), deadline)
        } else {
            self.wait_exclusive(Wish::Write(owner), deadline)
        }
    }

    #[inline(never)]
    fn enter_exclusive_at_once(&self, owner: u32) -> bool {
        loop {
            let state = self.state();
            if !state.admits_writer(Right::Newcomer) {
                return false;
            }
            if state.has(SLOTS) {
                return self.enter_past_slots(state, owner);
            }
            if self.replace(state, state.with_writer(owner), Acquire) {
                return true;
            }
        }
    }

    /// The same where slots may hold the lock. Succeeds only if none does.
    fn enter_past_slots(&self, state: State, owner: u32) -> bool {
        // Scan first, which costs the readers nothing.
        if slots::any(self.key(state)) {
            return false;
        }
        // Acquire: as when a waiter takes `CLAIMED`.
        if !self.replace(state, state.with(CLAIMED).without(FAST), Acquire) {
            return false;
        }
        if self.try_take_over(owner) {
            return true;
        }
        self.release_claim(Release::Claim);
        false
    }

    /// Gives back a writer's hold.
    #[inline]
    pub(super) fn release_exclusive(&self) {
        if !self.give_back_alone(WRITER) {
            self.release_exclusive_among_others();
        }
    }

    #[inline(never)]
    fn release_exclusive_among_others(&self) {
        let state = self.state();
        if state.low_half() == WRITER as u32 {
            // The word holds the writer's owner number and nothing else.
            if self.word.fetch_sub(state.0, Releasing) != state.0 {
                self.hand_over_late();
            }
        } else {
            self.release_exclusive_to(Release::Writer);
        }
    }

    /// Gives back a writer's hold, or downgrades it to a reader's hold or to the upgradable lock.
    #[inline(never)]
    pub(super) fn release_exclusive_to(&self, release: Release) {
        loop {
            let state = self.state();
            debug_assert!(state.has(WRITER), "not held for writing");
            let after = state.after(release);
            if after.calls_for_others(release) {
                return self.hand_over(state, release);
            }
            if self.replace(state, after, Releasing) {
                return;
            }
        }
    }

    /// Acquires the upgradable lock. Returns whether it has.
    #[inline]
    pub(super) fn enter_upgradable(&self) -> bool {
        self.take_unlocked(CLAIMED) || self.enter_upgradable_among_others()
    }

    #[inline(never)]
    fn enter_upgradable_among_others(&self) -> bool {
        loop {
            let state = self.state();
            if !state.admits_claimant(Right::Newcomer) {
                return false;
            }
            if self.replace(state, state.with(CLAIMED), Acquire) {
                return true;
            }
        }
    }

    #[inline]
    pub(super) fn acquire_upgradable(
        &self,
        deadline: Option<&Deadline>,
    ) -> Result<(), RwLockError> {
        if self.enter_upgradable() {
            Ok(())
        } else if self.state().is_shared() {
            self.wait_exclusive_in_kernel(Wish::Claim, deadline)
        } else {
            self.wait_exclusive(Wish::Claim, deadline)
        }
    }

    /// Goes from `CLAIMED` to `WRITER`. After an error the caller still holds `CLAIMED`.
    #[inline]
    pub(super) fn become_writer(
        &self,
        owner: u32,
        deadline: Option<&Deadline>,
    ) -> Result<(), RwLockError> {
        let alone = self
            .word
            .compare_exchange(CLAIMED, held_by(owner), Acquire, Relaxed);
        if alone.is_ok() {
            Ok(())
        } else if self.state().is_shared() {
            self.take_over_in_kernel(owner, deadline)
        } else {
            self.take_over(owner, deadline)
        }
    }

    /// Gives back the upgradable lock.
    #[inline]
    pub(super) fn release_upgradable(&self) {
        if !self.give_back_alone(CLAIMED) {
            self.release_claim(Release::Claim);
        }
    }

    /// Gives up `CLAIMED`, or downgrades it to a reader's hold.
    pub(super) fn release_claim(&self, release: Release) {
        loop {
            let state = self.state();
            debug_assert!(
                state.has(CLAIMED),
                "released an upgradable lock that is not held"
            );
            let after = state.after(release);
            if after.calls_for_others(release) {
                return self.hand_over(state, release);
            }
            // Release: what an upgradable reader did comes before the next write.
            if self.replace(state, after, Releasing) {
                return;
            }
        }
    }

    /// Gives back a hold. If threads wait, the first waiter gets the lock. In the kernel's queue no
    /// waiter can be chosen, so a process-shared lock is released as always.
    #[cold]
    pub(super) fn release_fairly(&self, release: Release) {
        const WAITING: u64 = CLAIM_WAITS | READERS_WAIT | WRITERS_WAIT;
        if release == Release::Reader && self.release_own_slot() {
            return;
        }
        let state = self.state();
        let by_slot = release == Release::Reader && state.readers() == 0;
        if by_slot || state.is_shared() || !state.has(WAITING) {
            match release {
                Release::Reader => self.release_shared(),
                Release::Claim => self.release_claim(release),
                _ => self.release_exclusive_to(release),
            }
        } else {
            self.hand_over_fairly(release);
        }
    }

    /// Whether any thread holds the lock.
    pub(super) fn is_held(&self) -> bool {
        let state = self.state();
        !state.is_free() || state.has(SLOTS) && slots::any(self.key(state))
    }

    /// Whether the lock is neither held nor waited for.
    pub(super) fn is_untouched(&self) -> bool {
        const WAITING: u64 = READERS_WAIT | WRITERS_WAIT | CLAIM_WAITS | WOKEN;
        !self.is_held() && !self.state().has(WAITING)
    }
}

/// Whether a thread that adds `add` to the word may enter past waiters and other readers.
#[inline(always)]
fn may_pass(state: State, add: u64) -> bool {
    match add {
        READER => state.admits_reader_at_once(),
        _ => !state.has(!WAITERS),
    }
}

/// What a writer adds to the word.
#[inline]
fn held_by(owner: u32) -> u64 {
    WRITER | u64::from(owner) << 32
}
