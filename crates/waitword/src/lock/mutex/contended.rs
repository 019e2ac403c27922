//! Contended slow paths: barge past waiters if that is allowed, else dispatch by flavour or kind.

#[cfg(not(loom))]
use super::owner;
use super::{
    LockError, LockTimedOut, PosixFlavour, RawPosixMutex, SHARED, State, Then, nap, private,
    shared, unlock, wait_wake,
};
use crate::atomic::Ordering;
#[cfg(not(loom))]
use crate::park::spin;
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
        self.0.unlock_word(Then::GoOn);
    }
}

impl RawPosixMutex {
    #[inline(never)]
    pub(super) fn lock_contended(&self, seen: u32) {
        if !self.barge(State(seen)) {
            self.lock_among_others();
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

    /// Takes the lock if it is free although threads wait, which is the usual case. Returns whether
    /// it did.
    #[inline(always)]
    fn barge(&self, mut state: State) -> bool {
        if !self.is_plain(state) {
            return false;
        }
        while state.may_barge() {
            #[cfg(not(loom))]
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

    #[cold]
    #[inline(never)]
    fn lock_among_others(&self) {
        if let Err(error) = self.lock_slow(self.state().0, None) {
            panic!("mutex not locked: {error}");
        }
    }

    /// [`lock`](Self::lock) of a mutex that keeps no owner, whose word was `seen`. It always
    /// succeeds.
    #[cfg(not(loom))]
    #[inline(never)]
    pub(super) fn lock_unowned(&self, seen: u32) {
        if !self.barge(State(seen)) {
            let without_deadline = self.lock_word(None);
            debug_assert!(without_deadline.is_ok());
        }
    }

    /// [`try_lock`](Self::try_lock) of a mutex that keeps no owner, whose word was `seen`.
    #[cfg(not(loom))]
    #[inline]
    pub(super) fn try_lock_unowned(&self, seen: u32) -> bool {
        // The mutex is held: by far the most common reason for a failing try, whether or not
        // threads wait.
        !State(seen).is_plainly_locked() && self.try_word(State(seen))
    }

    /// [`lock_until`](Self::lock_until) of a mutex that keeps no owner. Returns whether it was
    /// taken.
    #[cfg(not(loom))]
    #[cold]
    #[inline(never)]
    pub(super) fn lock_unowned_until(&self, deadline: &Deadline) -> bool {
        self.lock_word(Some(deadline)).is_ok()
    }

    #[inline(never)]
    pub(super) fn lock_slow(
        &self,
        seen: u32,
        deadline: Option<&Deadline>,
    ) -> Result<(), LockError> {
        #[cfg(not(loom))]
        if State(seen).is_special() {
            return owner::lock(self, deadline);
        }
        let _ = seen;
        Ok(self.lock_word(deadline)?)
    }

    /// Takes the lock by its word. An owner, if the mutex keeps one, is left to the caller.
    pub(in crate::lock) fn lock_word(
        &self,
        deadline: Option<&Deadline>,
    ) -> Result<(), LockTimedOut> {
        // It may be free by now, or may have been free all along, with waiters.
        if stats::is_enabled() && !self.state().may_barge() {
            stats::count(Event::Contended);
        }
        if self.is_shared() {
            return shared::lock(self, deadline);
        }
        match self.waits_as() {
            PosixFlavour::WaitWake => wait_wake::lock(self, deadline),
            _ => private::lock(self, deadline, 0),
        }
    }

    /// The flavour by which the mutex waits and wakes now. When other processes compete for the
    /// CPUs, an adaptive mutex whose threads wait for condvars acts as a wait-wake mutex. A woken
    /// thread then waits milliseconds for a CPU, and must not keep unlocks from waking the threads
    /// that it works with. (Not in a process that uses up a quota. A yield takes as long there, and
    /// napping successors save the most.)
    #[inline]
    pub(super) fn waits_as(&self) -> PosixFlavour {
        let flavour = self.flavour();
        #[cfg(not(loom))]
        if flavour == PosixFlavour::Adaptive
            && nap::has_waited_lately(self)
            && spin::is_beside_others()
            && !spin::is_throttled()
        {
            return PosixFlavour::WaitWake;
        }
        flavour
    }

    #[cold]
    #[inline(never)]
    pub(super) fn try_lock_slow(&self, state: State) -> Result<(), LockError> {
        #[cfg(not(loom))]
        if state.is_special() {
            return owner::try_lock(self);
        }
        match self.try_word(state) {
            true => Ok(()),
            false => Err(LockError::Busy),
        }
    }

    /// Takes the lock by its word, last seen in this state, if that needs no waiting. Returns
    /// whether it did.
    pub(super) fn try_word(&self, mut state: State) -> bool {
        loop {
            let taken = match self.is_shared() {
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

    #[inline(never)]
    pub(super) fn unlock_contended(&self, state: State) {
        if !self.is_plain(state) || !self.release_to_the_awake(state) {
            self.unlock_among_others();
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

    /// Whether the mutex is private and keeps no owner, going by a state that its word was seen in.
    #[inline(always)]
    fn is_plain(&self, state: State) -> bool {
        !state.is_special() && self.data.load(Ordering::Relaxed) & SHARED == 0
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

    #[cold]
    #[inline(never)]
    fn unlock_among_others(&self) {
        if let Err(error) = self.unlock_slow() {
            panic!("mutex not unlocked: {error}");
        }
    }

    pub(super) fn unlock_slow(&self) -> Result<(), LockError> {
        let state = self.state();
        #[cfg(not(loom))]
        if state.is_special() {
            return owner::unlock(self, Then::GoOn);
        }
        self.unlock_word(Then::GoOn);
        Ok(())
    }

    /// Releases the lock by its word. An owner, if the mutex keeps one, is left to the caller.
    pub(super) fn unlock_word(&self, then: Then) {
        if self.is_shared() {
            return shared::unlock(self);
        }
        if then == Then::HandOver {
            return unlock::unlock_fairly(self);
        }
        let state = self.state();
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
        state.has_parked() && state.has_successor() && nap::is_monopolized(self)
    }

    #[cold]
    #[inline(never)]
    pub(super) fn unlock_fair_slow(&self) -> Result<(), LockError> {
        let state = self.state();
        #[cfg(not(loom))]
        if state.is_special() {
            return owner::unlock(self, Then::HandOver);
        }
        self.unlock_word(Then::HandOver);
        Ok(())
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
    use crate::sys::generation::ends_well;

    #[test]
    fn beside_others_an_adaptive_mutex_with_condvars_is_a_wait_wake_one() {
        // On the heap, so that they share no history with the mutexes of other tests.
        let [with_condvar, without] = [(); 2].map(|()| Box::new(RawPosixMutex::new()));
        let throughput = crate::PosixMutexOptions::new()
            .flavour(PosixFlavour::Throughput)
            .build_raw();
        nap::note_wait(&throughput);
        // Repeats until no other test interferes with the state of the process: what yields have
        // shown, and the override of the adaptive flavour.
        let began = std::time::Instant::now();
        let flavours = [&*with_condvar, &*without, &throughput];
        let expected = [
            PosixFlavour::WaitWake,
            PosixFlavour::Adaptive,
            PosixFlavour::Throughput,
        ];
        loop {
            spin::pretend_to_be_beside_others(1_000_000_000);
            nap::note_wait(&with_condvar);
            let seen = flavours.map(RawPosixMutex::waits_as);
            if seen == expected {
                break;
            }
            assert!(began.elapsed().as_secs() < 20, "{seen:?}");
        }
        spin::pretend_to_be_beside_others(0);
    }

    /// In a child, because the whole process then counts as throttled.
    #[test]
    fn under_a_quota_an_adaptive_mutex_with_condvars_stays_one() {
        assert!(ends_well(|| {
            let mutex = RawPosixMutex::new();
            nap::note_wait(&mutex);
            spin::pretend_to_be_beside_others(20_000_000_000);
            let before = mutex.waits_as();
            spin::pretend_to_be_throttled();
            [before, mutex.waits_as()] == [PosixFlavour::WaitWake, PosixFlavour::Adaptive]
        }));
    }
}
