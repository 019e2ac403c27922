//! Taking and giving back without waiting: one read-modify-write each, inlined, where the word is as simple as it can be; out
//! of line where it says more.
//!
//! Three things make these paths as they are:
//!
//! * **Constants.** The value that a compare-and-swap expects is a constant behind a predicted branch, not what was just
//!   loaded: so the processor need not wait for the load (0.6 ns of 2.4 on an EPYC). The arms
//!   differ in their ordering by no more than what keeps the compiler from making one of them again.
//! * **Giving back is a subtraction**, which cannot fail, and not a compare-and-swap (0.5 ns less): taken only
//!   after the word was seen to be simple. If somebody has queued between that look and the subtraction, the lock is already
//!   free, and perhaps gone. Then nothing but the table is looked at first (`hand_over.rs`, "late").
//! * **Others.** Where readers of two CPUs meet, the word seldom is that simple, and where more threads than CPUs use a lock some of
//!   them wait at any time. Under reader preference that changes nothing for a newcomer, nor for a reader that
//!   leaves others behind, nor, if one of those who wait is awake already (`WOKEN`), for who gives back. So a third
//!   branch serves such words. For readers `State` says which they are (`admits_reader_at_once`, `lets_reader_leave`).

use super::bias;
use super::slots;
use super::state::{
    CLAIM_WAITS, CLAIMED, COLLISIONS, FAST, PREFER_WRITER, READER, READERS_WAIT, REPORTED, Release,
    Right, SLOTS, State, TURN, WOKEN, WRITER, WRITERS_WAIT,
};
use super::{RawRwLock, RwLockError, Wish};
use crate::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release as Releasing};
use crate::sys::clock::Deadline;

/// Under reader preference those who wait, or were woken and have not looked, keep nobody out.
const WAITERS: u64 = READERS_WAIT | WRITERS_WAIT | WOKEN;

/// How an attempt to come in ended.
pub(super) enum Entered {
    Yes,
    /// As many readers as can be counted hold the lock.
    Full,
    /// The lock is as it was then seen.
    No(State),
}

/// Says that the branch it stands in is rarely taken. (`core::hint::cold_path` needs Rust 1.95.)
#[cold]
#[inline(always)]
fn cold_path() {}

impl RawRwLock {
    #[inline]
    pub(super) fn state(&self) -> State {
        // Relaxed: whoever acts on it does so by a read-modify-write that says what it orders.
        State(self.word.load(Relaxed))
    }

    /// Replaces `seen` by `new`, if the word is still the same.
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

    /// What stands in a slot for a reader of this lock under the bias of this state.
    #[inline]
    pub(super) fn key(&self, state: State) -> slots::Key {
        slots::Key::new(self.address(), state)
    }

    /// Comes in from one of the two simplest states, unlocked and of either preference, or past others; whether it has.
    #[inline]
    pub(super) fn take_unlocked(&self, add: u64) -> bool {
        let state = self.word.load(Relaxed);
        if state == 0 {
            self.word.compare_exchange(0, add, Acquire, Relaxed).is_ok()
        } else if state == PREFER_WRITER {
            let held = PREFER_WRITER + add;
            // AcqRel instead of Acquire: see the top.
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

    /// Gives back what `take_unlocked` has added, if the queue needs no look. Returns false if it has done nothing.
    #[inline]
    pub(super) fn give_back_alone(&self, add: u64) -> bool {
        let state = self.word.load(Relaxed);
        if state == add {
            self.subtract(add, add, Releasing)
        } else if state == PREFER_WRITER + add {
            // AcqRel instead of Release: see the top.
            self.subtract(PREFER_WRITER + add, add, AcqRel)
        } else if add == READER {
            let leaves = State(state).lets_reader_leave();
            leaves && self.leave_others(State(state))
        } else if state & !WRITERS_WAIT == add + WOKEN {
            // Somebody is on its way who will see to the rest (`calls_for_others`).
            cold_path();
            self.word
                .compare_exchange(state, state - add, Releasing, Relaxed)
                .is_ok()
        } else {
            false
        }
    }

    /// Gives `add` back, of a word that was `seen`. False: nothing has been done.
    #[inline(always)]
    fn subtract(&self, seen: u64, add: u64, order: crate::atomic::Ordering) -> bool {
        // A subtraction that tells only whether nothing is left is the shortest there is.
        #[cfg(not(feature = "send_guard"))]
        {
            if self.word.fetch_sub(add, order) != seen {
                self.hand_over_late();
            }
            true
        }
        // Readers may have come by slots since the look, and a thread that was sent the guard of one
        // of them may have given back this hold instead of that: then it is in a slot.
        #[cfg(feature = "send_guard")]
        {
            let left = self.word.compare_exchange(seen, seen - add, order, Relaxed);
            left.is_ok()
        }
    }

    /// Gives back a reader's hold, of a word that was `seen` and let it leave. False: nothing has been
    /// done.
    #[inline(always)]
    fn leave_others(&self, seen: State) -> bool {
        debug_assert!(seen.lets_reader_leave());
        #[cfg(not(feature = "send_guard"))]
        {
            // Release: what was read comes before the next write.
            let left = State(self.word.fetch_sub(READER, Releasing));
            if left
                .after(Release::Reader)
                .calls_for_others(Release::Reader)
            {
                self.hand_over_late();
            }
            true
        }
        // As above.
        #[cfg(feature = "send_guard")]
        {
            self.replace(seen, seen.after(Release::Reader), Releasing)
        }
    }

    /// Takes it for reading, if that needs no waiting.
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

    /// Takes it for reading, whatever that needs.
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
            // The first slot only: all else is a tail call, which needs no frame here.
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

    /// Comes in as a reader by the word, past others, after `take_unlocked` has failed to; whether it
    /// has.
    #[inline]
    pub(super) fn enter_beside_others(&self, mut state: State) -> bool {
        // `take_unlocked` serves such a word: another CPU has changed it meanwhile.
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
            // There are too many readers: one of them will leave.
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

    /// Comes in as a reader, by a slot or by the word, if the lock admits it.
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
                // It has waited as long as it must: others need not either.
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

    /// Whether the calling thread now holds the lock by a slot. `state` has `FAST`.
    #[inline]
    fn enter_by_slot(&self, state: State) -> bool {
        let Some(published) = slots::publish(self.key(state)) else {
            return false;
        };
        // Acquire: the last writer's release comes before whatever set FAST.
        if State(self.word.load(Acquire)).is_still_biased_as(state) {
            return true;
        }
        self.withdraw(published);
        false
    }

    /// It may not hold the lock by this slot.
    fn withdraw(&self, published: slots::Published) {
        if !published.retract() {
            // Another thread took it for its hold, which stands elsewhere: that is to be given back instead.
            self.release_shared_elsewhere();
        }
    }

    /// `new`, with one more collision, if there was one. Enough of them, and readers may take the lock by slots.
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
        // Asked once: it takes long enough for the word to have changed by then.
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
        // The lock is held: it is there to be looked at.
        let state = self.state();
        if !(state.has(SLOTS) && slots::retract(self.key(state))) {
            self.release_shared_elsewhere();
        }
    }

    /// Gives back a reader's hold that does not stand in a slot of the calling thread. There is
    /// one.
    ///
    /// A look may miss it: while it passes through the slots, a reader comes in by one that was
    /// passed already, and the slot ahead is cleared by a thread that gives back that reader's
    /// hold.
    #[inline(never)]
    pub(super) fn release_shared_elsewhere(&self) {
        while !self.release_shared_by_word() {
            let state = self.state();
            let is_held = state.readers() != 0 || state.has(SLOTS);
            debug_assert!(is_held, "a read lock is given back that nobody holds");
            if !is_held {
                return;
            }
            #[cfg(loom)]
            crate::checker::thread::yield_now();
        }
    }

    /// Gives back a reader's hold; false if nobody reads.
    #[inline]
    pub(super) fn release_shared_if_held(&self) -> bool {
        self.give_back_alone(READER) || self.release_shared_among_others()
    }

    #[inline(never)]
    fn release_shared_among_others(&self) -> bool {
        // The lock is held: it is there to be looked at.
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

    /// Gives back a reader's hold that a look has missed; false if nobody reads.
    ///
    /// The caller may not read: then it has the claim, or made a mistake. So this does not look for
    /// ever. Each miss takes another reader that comes and goes during that look
    /// ([`release_shared_elsewhere`](Self::release_shared_elsewhere)); so many in a row are not
    /// believed.
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

    /// Gives back a reader's hold that stands in a slot of the calling thread; whether there is one.
    #[inline]
    fn release_own_slot(&self) -> bool {
        // The lock is held: it is there to be looked at. While it is held by a slot, `SLOTS` and
        // the bias stay.
        let state = self.state();
        state.has(SLOTS) && slots::retract(self.key(state))
    }

    #[inline(never)]
    fn release_shared_by_word(&self) -> bool {
        loop {
            let state = self.state();
            if state.readers() == 0 {
                // Held by a slot, and not this thread's; or not held at all.
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

    /// Takes it for writing, if that needs no waiting.
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

    /// The same where readers may hold it by slots: only if none does.
    fn enter_past_slots(&self, state: State, owner: u32) -> bool {
        // A look first, which costs readers nothing.
        if slots::any(self.key(state)) {
            return false;
        }
        // Acquire: as the claim of one who waits.
        if !self.replace(state, state.with(CLAIMED).without(FAST), Acquire) {
            return false;
        }
        if self.try_take_over(owner) {
            return true;
        }
        self.release_claim(Release::Claim);
        false
    }

    /// Gives back what a writer holds.
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
            // The writer has said who it is, and that is all.
            if self.word.fetch_sub(state.0, Releasing) != state.0 {
                self.hand_over_late();
            }
        } else {
            self.release_exclusive_to(Release::Writer);
        }
    }

    /// Gives back what a writer holds, or all but a reader's hold or the claim.
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

    /// Takes the claim: holds the lock upgradably.
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

    /// From the claim to the lock. After an error the caller still has the claim.
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

    /// Gives the claim back.
    #[inline]
    pub(super) fn release_upgradable(&self) {
        if !self.give_back_alone(CLAIMED) {
            self.release_claim(Release::Claim);
        }
    }

    /// Gives the claim back, or all but a reader's hold.
    pub(super) fn release_claim(&self, release: Release) {
        loop {
            let state = self.state();
            debug_assert!(
                state.has(CLAIMED),
                "the claim is given back that nobody holds"
            );
            let after = state.after(release);
            if after.calls_for_others(release) {
                return self.hand_over(state, release);
            }
            // Release: what an upgradable reader did comes before the next writer.
            if self.replace(state, after, Releasing) {
                return;
            }
        }
    }

    /// Gives back, and if somebody waits whoever stands first gets the lock. In the kernel's queue nobody can be chosen;
    /// there it is as always.
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

    /// Whether somebody holds it.
    pub(super) fn is_held(&self) -> bool {
        let state = self.state();
        !state.is_free() || state.has(SLOTS) && slots::any(self.key(state))
    }

    /// Whether nobody holds it and nobody waits for it.
    pub(super) fn is_untouched(&self) -> bool {
        const WAITING: u64 = READERS_WAIT | WRITERS_WAIT | CLAIM_WAITS | WOKEN;
        !self.is_held() && !self.state().has(WAITING)
    }
}

/// Whether whoever adds this may come in past others.
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
