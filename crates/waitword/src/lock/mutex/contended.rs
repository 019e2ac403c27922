//! Lock and unlock where the word says more than that nobody has it, or that nobody waits: past those who wait, if they need not
//! be waited for, and else by way of the flavour or the kind.

#[cfg(not(loom))]
use super::special;
use super::{
    LockError, LockTimedOut, PosixFlavour, RawPosixMutex, SHARED, State, Then, nap, shared,
    throughput, unlock, wait_wake,
};
use crate::atomic::Ordering;
#[cfg(not(loom))]
use crate::park::spin;
use crate::stats::{self, Event};
use crate::sys::clock::Deadline;

/// Whether the shortest way was enough to give a mutex back.
#[derive(Debug)]
pub enum GivenBack<'a> {
    /// It was.
    Yes,
    /// The caller no longer owns it, but a thread waits: [`LateWaiter::wake`] gives it back.
    Unless(LateWaiter<'a>),
    /// Nothing has been done.
    No,
}

/// A thread that came to wait while the owner gave the mutex up. The mutex is still held.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct LateWaiter<'a>(pub(super) &'a RawPosixMutex);

impl LateWaiter<'_> {
    /// Gives the mutex back, to this waiter or to another thread. Call it once.
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

    /// Takes it if nobody has it and nobody waits: the part of [`lock`](Self::lock) that is most often enough. False: nothing has been
    /// done.
    ///
    /// For callers, as a `pthread_mutex_lock`, that keep the rest out of line.
    #[inline]
    pub(crate) fn lock_plain_at_once(&self) -> bool {
        self.lock_fast().is_ok()
    }

    /// Takes it past those who wait if it keeps no owner and is free, and returns whether it did.
    ///
    /// A caller may be unwound or left from the middle of this: all it changes is the word, in one
    /// step, and what is remembered of the lock.
    #[inline]
    pub(crate) fn barge_plain(&self) -> bool {
        self.barge(self.state())
    }

    /// Takes the lock if it is free though others wait, as it most often is; whether it has.
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

    /// [`lock`](Self::lock) of a mutex that keeps no owner, whose word was seen in this state: it always succeeds.
    #[cfg(not(loom))]
    #[inline(never)]
    pub(super) fn lock_unowned(&self, seen: u32) {
        if !self.barge(State(seen)) {
            let without_deadline = self.lock_word(None);
            debug_assert!(without_deadline.is_ok());
        }
    }

    /// [`try_lock`](Self::try_lock) of a mutex that keeps no owner, whose word was seen in this state.
    #[cfg(not(loom))]
    #[inline]
    pub(super) fn try_lock_unowned(&self, seen: u32) -> bool {
        // By far the most usual answer to a try that fails, whether or not threads wait.
        !State(seen).is_plainly_locked() && self.try_word(State(seen))
    }

    /// [`lock_until`](Self::lock_until) of a mutex that keeps no owner; whether it was taken.
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
            return special::lock(self, deadline);
        }
        let _ = seen;
        Ok(self.lock_word(deadline)?)
    }

    /// Takes the lock by its word, whatever is to be done about an owner.
    pub(in crate::lock) fn lock_word(
        &self,
        deadline: Option<&Deadline>,
    ) -> Result<(), LockTimedOut> {
        // It may be free by now, or have been so with others waiting.
        if stats::is_enabled() && !self.state().may_barge() {
            stats::count(Event::Contended);
        }
        if self.is_shared() {
            return shared::lock(self, deadline);
        }
        match self.waits_as() {
            PosixFlavour::WaitWake => wait_wake::lock(self, deadline),
            _ => throughput::lock(self, deadline, 0),
        }
    }

    /// The flavour by which it waits and wakes now. Beside other processes, an adaptive mutex whose
    /// threads wait for condvars acts as a wait-wake one: a woken thread waits milliseconds for a CPU,
    /// and must not keep unlocks from waking the threads that it works with. (Not in a process that
    /// uses up a quota, where a yield takes as long, and successors that nap save the most.)
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
            return special::try_lock(self);
        }
        match self.try_word(state) {
            true => Ok(()),
            false => Err(LockError::Busy),
        }
    }

    /// Takes the lock by its word, seen in this state, if that needs no waiting; whether it did.
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

    /// Gives it back if no thread waits, and says whether it did: the part of
    /// [`unlock`](Self::unlock) that is most often enough.
    ///
    /// # Safety
    /// The caller holds it.
    #[inline(always)]
    pub(crate) unsafe fn unlock_plain_at_once(&self) -> bool {
        self.release_fast().is_ok()
    }

    /// Gives it back if it keeps no owner and no thread has to be woken, and returns whether it did.
    /// A caller may be left from the middle of this, as of [`barge_plain`](Self::barge_plain).
    ///
    /// # Safety
    /// The caller holds it.
    #[inline]
    pub(crate) unsafe fn unlock_plain_to_the_awake(&self) -> bool {
        let state = self.state();
        self.is_plain(state) && self.release_to_the_awake(state)
    }

    /// Whether it is private and keeps no owner, going by a state that it was seen in.
    #[inline(always)]
    fn is_plain(&self, state: State) -> bool {
        !state.is_special() && self.data.load(Ordering::Relaxed) & SHARED == 0
    }

    /// Releases the lock if no waiter has to be woken: no thread is parked, or there is a successor that
    /// is not late. Returns whether it did.
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
            return special::unlock(self, Then::GoOn);
        }
        self.unlock_word(Then::GoOn);
        Ok(())
    }

    /// Gives the lock back by its word.
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

    /// Whether threads are parked behind a successor that naps, as far as is known. If the holder goes to
    /// wait for a condvar then, no thread would use the lock until the nap ends.
    fn successor_may_nap(&self, state: State) -> bool {
        state.has_parked() && state.has_successor() && nap::is_monopolized(self)
    }

    #[cold]
    #[inline(never)]
    pub(super) fn unlock_fair_slow(&self) -> Result<(), LockError> {
        let state = self.state();
        #[cfg(not(loom))]
        if state.is_special() {
            return special::unlock(self, Then::HandOver);
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
        // Until no other test changes what is the process's: what yields have shown, and what the
        // adaptive flavour stands for.
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

    /// In a child, since the whole process counts as throttled then.
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
