//! Contended slow paths: barge past waiters if that is allowed, else dispatch by kind and flavour.
//!
//! Each path gets the word as the fast path saw it, and reads it again only after something that
//! takes time.

use super::owner;
use super::{
    LockError, LockTimedOut, PosixFlavour, RawPosixMutex, State, Then, history, private, shared,
    unlock, wait_wake,
};
use crate::atomic::Ordering;
use crate::park::spin;
use crate::private::waiter_table;
use crate::record::{self, Object};
use crate::stats::{self, Event};
use crate::sys::clock::Deadline;

/// Whether the shortest path was enough to give a mutex back.
#[derive(Debug)]
pub enum GivenBack<'a> {
    /// The mutex is unlocked.
    Yes,
    /// The caller no longer owns the mutex, but a thread waits: [`LateWaiter::wake`] unlocks it.
    Unless(LateWaiter<'a>),
    /// Nothing has been done.
    No,
}

/// A thread that came to wait while the owner gave the mutex up. The mutex is still held.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct LateWaiter<'a>(pub(super) &'a RawPosixMutex);

impl LateWaiter<'_> {
    /// Unlocks the mutex, for this waiter or another thread. Call it once.
    pub fn wake(self) {
        self.0.unlock_word(self.0.state(), Then::GoOn);
    }
}

/// Locking.
impl RawPosixMutex {
    /// [`lock`](Self::lock) of a mutex whose word was `seen`.
    #[inline(never)]
    pub(super) fn lock_contended(&self, seen: State) {
        if self.barge(seen) {
            record::took(self.address(), || self.sees_to_a_long_unlock());
            return;
        }
        if seen.is_special() {
            return self.lock_special_or_panic();
        }
        let without_deadline = self.lock_word(seen, None);
        debug_assert!(without_deadline.is_ok());
    }

    #[cold]
    #[inline(never)]
    fn lock_special_or_panic(&self) {
        if let Err(error) = owner::lock(self, None) {
            panic!("mutex not locked: {error}");
        }
    }

    /// Takes the mutex if it is free and no thread waits: the part of [`lock`](Self::lock) that is
    /// most often enough. Returns false if nothing has been done.
    ///
    /// For callers, such as `pthread_mutex_lock`, that keep the rest out of line.
    #[inline]
    pub(crate) fn lock_plain_at_once(&self) -> bool {
        self.lock_fast().is_ok()
    }

    /// Takes the mutex past its waiters if it keeps no owner and is free. Returns whether it did.
    ///
    /// The caller may be unwound or abandoned in the middle of this call: it changes only the word,
    /// in one step, and what is remembered of the lock.
    #[inline]
    pub(crate) fn barge_plain(&self) -> bool {
        self.barge(self.state())
    }

    /// Does what a wait for a mutex without an owner begins with, and most often ends with: looks
    /// at it a few times. Returns whether the caller has it. As for [`Self::barge_plain`], the
    /// caller may be unwound or abandoned meanwhile.
    pub(crate) fn look_plain(&self) -> bool {
        let is_taken = self.is_plain(self.state())
            && self.waits_as() != PosixFlavour::WaitWake
            && private::looks(self);
        if is_taken {
            stats::count(Event::Contended);
        }
        is_taken
    }

    /// Takes the lock if it is free although threads wait, which is the usual case. Returns whether
    /// it did.
    #[inline(always)]
    fn barge(&self, mut state: State) -> bool {
        if !self.is_plain(state) {
            return false;
        }
        while state.may_barge() {
            if state.is_last_turn() && self.makes_way() {
                state = self.state();
                continue;
            }
            match self.change(state, state.taken(), Ordering::Acquire) {
                Ok(()) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    /// [`lock_until`](Self::lock_until) of a mutex whose word was `seen`.
    #[inline(never)]
    pub(super) fn lock_slow(
        &self,
        seen: State,
        deadline: Option<&Deadline>,
    ) -> Result<(), LockError> {
        if seen.is_special() {
            return owner::lock(self, deadline);
        }
        Ok(self.lock_word(seen, deadline)?)
    }

    /// Takes the lock by its word, which was `seen`. An owner, if the mutex keeps one, is left to
    /// the caller.
    #[cold]
    #[inline(never)]
    pub(super) fn lock_word(
        &self,
        seen: State,
        deadline: Option<&Deadline>,
    ) -> Result<(), LockTimedOut> {
        record::waiting_to_hold(
            Object::Mutex,
            self.address(),
            deadline.is_some(),
            || self.lock_word_unrecorded(seen, deadline),
            || self.sees_to_a_long_unlock(),
        )
    }

    /// The caller has just taken the mutex, and the recorder would note that it holds it. Makes
    /// sure that the unlock comes to [`unlock_word`](Self::unlock_word), where it notes the
    /// release. Returns false if it may not.
    pub(in crate::lock) fn sees_to_a_long_unlock(&self) -> bool {
        let state = self.state();
        // The guard may be dropped by another thread, which the recorder does not know to hold it.
        if cfg!(feature = "send_guard") || !state.is_special() && self.is_shared_in(state) {
            return false;
        }
        if !state.is_special() && !state.has_parked() {
            // As if a waiter was parked. While a recording is on, only an unlock clears this. (A
            // waiter that gives up just as it begins may: then the hold stays noted until the next
            // such unlock by this thread.)
            self.set(|state| state.with_parked(true));
        }
        true
    }

    /// [`lock_word`](Self::lock_word) in a wait that is recorded as something else.
    #[inline(always)]
    pub(super) fn lock_word_unrecorded(
        &self,
        seen: State,
        deadline: Option<&Deadline>,
    ) -> Result<(), LockTimedOut> {
        // It may be free by now, or may have been free all along, with waiters.
        if stats::is_enabled() && !self.state().may_barge() {
            stats::count(Event::Contended);
        }
        if self.is_shared_in(seen) {
            return shared::lock(self, deadline);
        }
        match self.waits_as() {
            PosixFlavour::WaitWake => wait_wake::lock(self, deadline),
            _ => private::lock(self, deadline, 0),
        }
    }

    /// The flavour by which the mutex, which is not priority-inheriting, waits and wakes now. When
    /// other processes compete for the CPUs, an adaptive mutex whose threads wait for condvars acts
    /// as a wait-wake mutex. A woken thread then waits milliseconds for a CPU, and must not keep
    /// unlocks from waking the threads that it works with. (Not in a process that uses up a quota.
    /// A yield takes as long there, and napping successors save the most.)
    #[inline]
    pub(super) fn waits_as(&self) -> PosixFlavour {
        let flavour = self.flavour();
        if flavour == PosixFlavour::Adaptive
            && history::has_waited_lately(self)
            && spin::is_beside_others()
            && !spin::is_throttled()
        {
            return PosixFlavour::WaitWake;
        }
        flavour
    }

    /// [`try_lock`](Self::try_lock) of a mutex whose word was `seen`. (A tail call: its caller
    /// needs no frame.)
    #[cold]
    #[inline(never)]
    pub(super) fn try_lock_contended(&self, seen: State) -> bool {
        self.try_lock_slow(seen).is_ok()
    }

    /// [`try_lock_checked`](Self::try_lock_checked) of a mutex whose word was `seen`.
    #[cold]
    #[inline(never)]
    pub(super) fn try_lock_slow(&self, seen: State) -> Result<(), LockError> {
        if seen.is_special() {
            return owner::try_lock(self);
        }
        match self.try_word(seen) {
            true => Ok(()),
            false => Err(LockError::Busy),
        }
    }

    /// Takes the lock by its word, last seen in this state, if that needs no waiting. Returns
    /// whether it did.
    #[inline(never)]
    pub(super) fn try_word(&self, mut state: State) -> bool {
        loop {
            let taken = match self.is_shared_in(state) {
                true => shared::taken_at_once(state),
                false => state.taken_at_once(),
            };
            let Some(taken) = taken else { return false };
            match self.change(state, taken, Ordering::Acquire) {
                Ok(()) => return true,
                Err(now) => state = now,
            }
        }
    }
}

/// Unlocking.
impl RawPosixMutex {
    /// [`unlock`](Self::unlock) of a mutex whose word was `seen`.
    #[inline(never)]
    pub(super) fn unlock_contended(&self, seen: State) {
        if !self.is_plain(seen) || record::is_on() || !self.release_to_the_awake(seen) {
            self.unlock_or_panic();
        }
    }

    #[cold]
    #[inline(never)]
    fn unlock_or_panic(&self) {
        if let Err(error) = self.unlock_slow(Then::GoOn) {
            panic!("mutex not unlocked: {error}");
        }
    }

    /// Unlocks the mutex if no thread waits, and returns whether it did: the part of
    /// [`unlock`](Self::unlock) that is most often enough.
    ///
    /// # Safety
    /// The caller holds the mutex.
    #[inline(always)]
    pub(crate) unsafe fn unlock_plain_at_once(&self) -> bool {
        self.release_fast().is_ok()
    }

    /// Unlocks the mutex if it keeps no owner and no thread has to be woken. Returns whether it
    /// did. The caller may be abandoned in the middle of this call, as in
    /// [`barge_plain`](Self::barge_plain).
    ///
    /// # Safety
    /// The caller holds the mutex.
    #[inline]
    pub(crate) unsafe fn unlock_plain_to_the_awake(&self) -> bool {
        let state = self.state();
        self.is_plain(state) && self.release_to_the_awake(state)
    }

    /// Releases the lock if no waiter has to be woken: no thread is parked, or there is a successor
    /// that is not late. Returns whether it did.
    #[inline(always)]
    pub(super) fn release_to_the_awake(&self, mut state: State) -> bool {
        while !state.has_parked() || state.has_successor() {
            if state.has_parked() && self.successor_is_late(state) {
                return false;
            }
            match self.change(state, state.released(), Ordering::Release) {
                Ok(()) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    /// Whether threads wait, as far as the word shows, and the owner, if any, holds the mutex once.
    pub(crate) fn has_waiters(&self) -> bool {
        let state = self.state();
        let is_last_hold = !state.is_special() || state.levels() == 0;
        is_last_hold && (state.has_parked() || state.has_successor())
    }

    /// Whether the mutex, once released, is reserved for its successor.
    pub(crate) fn hands_over(&self) -> bool {
        self.state().released().is_reserved()
    }

    /// Whether threads wait, for the holder of the last level. PARKED alone does not tell
    /// ([`sees_to_a_long_unlock`](Self::sees_to_a_long_unlock)).
    fn is_wanted(&self) -> bool {
        let state = self.state();
        let may_be_parked =
            || self.is_shared_in(state) || waiter_table().find_waiters(self.key()).is_some();
        state.has_successor() || state.has_parked() && may_be_parked()
    }

    /// [`hand_over`](Self::hand_over) of a mutex that threads may wait for.
    #[cold]
    #[inline(never)]
    pub(super) fn hand_over_slow(&self) {
        record::releasing(self.address(), || self.is_wanted(), || true);
        unlock::unlock_fairly(self);
    }

    /// Unlocks the mutex, by whichever means its kind has.
    pub(super) fn unlock_slow(&self, then: Then) -> Result<(), LockError> {
        let state = self.state();
        if state.is_special() {
            return owner::unlock(self, then);
        }
        self.unlock_word(state, then);
        Ok(())
    }

    /// Releases the lock by its word, last seen in this state. An owner, if the mutex keeps one, is
    /// left to the caller.
    pub(super) fn unlock_word(&self, state: State, then: Then) {
        let hands_over = || then == Then::HandOff || self.hands_over();
        record::releasing(self.address(), || self.is_wanted(), hands_over);
        if self.is_shared_in(state) {
            return shared::unlock(self);
        }
        if then == Then::HandOff {
            return unlock::unlock_fairly(self);
        }
        if matches!(then, Then::Sleep(_)) && self.successor_may_nap(state) {
            return unlock::unlock_and_wake(self, then);
        }
        if self.release_to_the_awake(state) {
            return;
        }
        match self.waits_as() {
            PosixFlavour::WaitWake => wait_wake::unlock_and_wake(self),
            _ if self.state().has_successor() => unlock::unlock_past_late_successor(self),
            _ => unlock::unlock_and_wake(self, then),
        }
    }

    /// Whether threads are parked behind a successor that naps, as far as is known. If the holder
    /// then waits for a condvar, no thread would use the lock until the nap ends.
    fn successor_may_nap(&self, state: State) -> bool {
        state.has_parked() && state.has_successor() && history::is_monopolized(self)
    }

    /// [`unlock_fair`](Self::unlock_fair) of a mutex that threads may wait for.
    #[cold]
    #[inline(never)]
    pub(super) fn unlock_fair_slow(&self) -> Result<(), LockError> {
        self.unlock_slow(Then::HandOff)
    }

    #[cold]
    #[inline(never)]
    pub(super) fn bump_slow(&self) {
        let state = self.state();
        if state.has_parked() || state.has_successor() {
            let unlocked = self.unlock_fair_slow();
            debug_assert!(unlocked.is_ok(), "the caller holds it");
            self.lock();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn beside_others_an_adaptive_mutex_with_condvars_is_a_wait_wake_one() {
        // On the heap, so that they share no history with the mutexes of other tests.
        let [with_condvar, without] = [(); 2].map(|()| Box::new(RawPosixMutex::new()));
        let throughput =
            crate::PosixMutexOptions::new().flavour(PosixFlavour::Throughput).build_raw();
        history::note_wait(&throughput);
        // Repeats until no other test interferes with the state of the process: what yields have
        // shown, and the override of the adaptive flavour.
        let began = std::time::Instant::now();
        let flavours = [&*with_condvar, &*without, &throughput];
        let expected = [PosixFlavour::WaitWake, PosixFlavour::Adaptive, PosixFlavour::Throughput];
        loop {
            spin::pretend_to_be_beside_others(1_000_000_000);
            history::note_wait(&with_condvar);
            let seen = flavours.map(RawPosixMutex::waits_as);
            if seen == expected {
                break;
            }
            assert!(began.elapsed().as_secs() < 20, "{seen:?}");
        }
        spin::pretend_to_be_beside_others(0);
    }

    /// In a process of its own, which then counts as throttled, and whose state no other test
    /// changes.
    #[test]
    fn under_a_quota_an_adaptive_mutex_with_condvars_stays_one() {
        waitword_testkit::in_fresh_process(|| {
            let mutex = RawPosixMutex::new();
            history::note_wait(&mutex);
            spin::pretend_to_be_beside_others(20_000_000_000);
            assert_eq!(mutex.waits_as(), PosixFlavour::WaitWake);
            spin::pretend_to_be_throttled();
            assert_eq!(mutex.waits_as(), PosixFlavour::Adaptive);
        });
    }
}
