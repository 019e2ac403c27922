//! Acquiring the lock for reading, through the word or, if it is biased, through a slot
//! (`biased.rs`).
//!
//! The contended parts are out of line. Each does only what its callers need. Calls at the end of a
//! function are tail calls, which need no frame.

use super::bias;
use super::visible_readers::{self, Published};
use super::word::{BIASED, COLLISIONS, READER, READERS_WAIT, REPORTED, Right, State, TURN};
use super::{RawRwLock, RwLockError};
use crate::atomic::Ordering::{Acquire, Relaxed};
use crate::sys::clock::Deadline;

/// How an attempt to enter ended.
pub(super) enum Entered {
    Yes,
    /// The maximum number of readers hold the lock.
    Full,
    /// The lock did not admit the thread when it was in this state.
    No(State),
}

impl RawRwLock {
    /// Acquires the lock for reading if that needs no waiting.
    #[inline]
    pub(super) fn try_enter_shared(&self, right: Right) -> Result<(), RwLockError> {
        if self.take_unlocked(READER) {
            return Ok(());
        }
        match self.enter_shared_contended(right) {
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
        self.acquire_shared_contended(right, owner, deadline)
    }

    /// Acquires the lock for reading, however long that takes.
    #[inline]
    pub(super) fn take_shared(&self, right: Right) {
        if !self.take_unlocked(READER) {
            self.take_shared_contended(right);
        }
    }

    #[inline(never)]
    fn take_shared_contended(&self, right: Right) {
        let state = self.state();
        if state.has(BIASED) {
            // Only the preferred slot: everything else is a tail call, which needs no frame here.
            if let Some(published) = visible_readers::publish_at_once(self.key(state)) {
                // Acquire: as in `enter_by_slot`.
                if State(self.word.load(Acquire)).is_still_biased_as(state) {
                    return;
                }
                return self.take_shared_after(published, right);
            }
        }
        if !self.enter_past_others(state) {
            self.take_shared_by_word(right);
        }
    }

    /// Enters as a reader through the word, past waiters and other readers, after `take_unlocked`
    /// has failed to. Returns whether it has entered.
    #[inline]
    pub(super) fn enter_past_others(&self, mut state: State) -> bool {
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
    fn take_shared_after(&self, published: Published, right: Right) {
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
    fn acquire_shared_contended(
        &self,
        right: Right,
        owner: u32,
        deadline: Option<&Deadline>,
    ) -> Result<(), RwLockError> {
        let state = self.state();
        if state.has(BIASED) && self.enter_by_slot(state) || self.enter_past_others(state) {
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
        match self.enter_shared_contended(right) {
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
    pub(super) fn enter_shared_contended(&self, right: Right) -> Entered {
        let (mut collided, mut begins) = (false, None);
        loop {
            let state = self.state();
            if state.has(BIASED) && self.enter_by_slot(state) {
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

    /// Counts a collision in `new`, if there was one. After enough of them, makes the lock biased.
    #[inline]
    fn count_collision(
        &self,
        state: State,
        new: State,
        collided: bool,
        begins: &mut Option<u32>,
    ) -> State {
        if state.has(BIASED) {
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
            Some(number) if state.may_become_biased() => new.biased(number),
            _ => new.without(COLLISIONS).with(REPORTED),
        }
    }
}
