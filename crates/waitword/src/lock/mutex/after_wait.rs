//! What a condvar needs of its mutex: to park its waiters there, and to take it again for one that was woken.

use super::throughput;
use super::waiter::{EXTRA, FromCondvar, HOLDER, SUCCESSOR};
use super::{LockError, LockTimedOut, PosixFlavour, RawPosixMutex, Then};
use crate::futex::parking::{Token, Tokens};

/// Where the waiters of a mutex stand.
#[derive(Clone, Copy)]
pub(in crate::lock) enum Stands {
    /// In our table, under the address of the word.
    InTable,
    /// In the kernel, on the word.
    InKernel,
    /// In the kernel, by priority.
    #[cfg(not(loom))]
    ByPriority,
}

impl RawPosixMutex {
    /// Refuses a wait with a mutex that the caller is seen not to hold.
    pub(in crate::lock) fn check_owner(&self) -> Result<(), LockError> {
        #[cfg(not(loom))]
        if self.state().is_special() && !super::special::is_mine(self) {
            return Err(LockError::NotOwner);
        }
        Ok(())
    }

    /// Whether the caller, who holds it, does so more than once: then it stays held when it is given back.
    pub(in crate::lock) fn is_held_more_than_once(&self) -> bool {
        let state = self.state();
        state.is_special() && state.levels() > 0
    }

    /// Takes back the level that was given back of one that stayed held; false if it did not.
    pub(in crate::lock) fn take_level_back(&self) -> bool {
        #[cfg(not(loom))]
        return self.state().is_special() && super::special::lock_again(self) == Some(Ok(()));
        #[cfg(loom)]
        false
    }

    /// Gives it back for a thread that is about to wait for this condvar: so another one can have its CPU.
    /// The caller holds it.
    pub(in crate::lock) fn unlock_to_sleep(&self, condvar: FromCondvar) {
        if self.release_fast().is_err() {
            self.unlock_to_sleep_slow(condvar);
        }
    }

    #[cold]
    fn unlock_to_sleep_slow(&self, condvar: FromCondvar) {
        let state = self.state();
        #[cfg(not(loom))]
        if state.is_special() {
            let checked_before = super::special::unlock(self, Then::Sleep(condvar));
            debug_assert!(checked_before.is_ok());
            return;
        }
        #[cfg(not(loom))]
        super::nap::note_wait(self);
        self.unlock_word(Then::Sleep(condvar));
    }

    pub(in crate::lock) fn waiters_stand(&self) -> Stands {
        #[cfg(not(loom))]
        if super::special::is_pi(self) {
            return Stands::ByPriority;
        }
        if self.is_shared() {
            return Stands::InKernel;
        }
        Stands::InTable
    }

    /// How many of those who wait for a condvar are best woken at once, if nobody has the mutex.
    pub(in crate::lock) fn best_woken(&self) -> usize {
        match self.waits_as() {
            PosixFlavour::WaitWake => 1,
            _ => 1 + self.extras(),
        }
    }

    /// Announces waiters who are about to be put into this mutex's queue, if somebody is sure to wake them: its holder, or
    /// if all are signalled, the successor, who will be. (Real-time threads do not wait for a successor. Nor
    /// does the one thread of a signal, if the mutex is free: the successor may wait for a CPU for long.)
    /// Under the bucket lock of the queue.
    pub(in crate::lock) fn accept_waiters(&self, real_time: bool, all: bool) -> bool {
        if !all {
            self.note_signal();
        }
        self.announce(|state| {
            let waits_for_successor = all && !real_time && state.has_successor();
            let somebody_unlocks = state.is_locked() || waits_for_successor;
            somebody_unlocks.then_some(match real_time {
                true => state.with_real_time_parked(),
                false => state.with_parked(true),
            })
        })
    }

    /// The same for a mutex that had nobody to wake them, where some of those who come are woken instead, with these tokens.
    /// `real_time`: the first of those who are woken is a real-time thread, and others that are
    /// moved may be.
    pub(in crate::lock) fn accept_waiters_of_woken(
        &self,
        others_moved: bool,
        real_time: bool,
    ) -> Tokens {
        let wakes_successors =
            self.waits_as() != PosixFlavour::WaitWake && self.signalled_are_successors();
        let has_successors = wakes_successors && !real_time;
        let mut token = 0;
        self.announce(|state| {
            let is_successor = has_successors && !state.has_successor() && !state.is_urgent();
            token = if is_successor { SUCCESSOR } else { 0 };
            let state = if is_successor {
                state.with_successor()
            } else {
                state
            };
            Some(match others_moved {
                true if real_time => state.with_real_time_parked(),
                true => state.with_parked(true),
                false => state,
            })
        });
        Tokens {
            first: token,
            others: EXTRA,
        }
    }

    /// Takes it again, for a waiter that was woken with this token, by the condvar or by an unlock.
    pub(in crate::lock) fn lock_after_wait(&self, token: Token) {
        match token {
            HOLDER => {}
            SUCCESSOR => {
                self.note_late(self.ran_late());
                let without_deadline: Result<(), LockTimedOut> =
                    throughput::lock(self, None, SUCCESSOR);
                debug_assert!(without_deadline.is_ok());
            }
            EXTRA if self.try_fast().is_err() => throughput::lock_as_extra(self),
            EXTRA => self.note_woken(true),
            _ => {
                if self.try_fast().is_ok() {
                    self.note_woken(true);
                } else if !self.take_level_back() {
                    self.lock_word_uninterrupted();
                }
            }
        }
        #[cfg(not(loom))]
        super::special::own_if_special(self);
    }

    #[cold]
    fn lock_word_uninterrupted(&self) {
        let at_once = self.try_word(self.state());
        self.note_woken(at_once);
        if !at_once {
            let without_deadline = self.lock_word(None);
            debug_assert!(without_deadline.is_ok());
        }
    }

    /// Takes a process-shared one again, for a waiter that slept on its word: others may sleep there still.
    pub(in crate::lock) fn lock_after_sleep(&self) {
        if !self.take_level_back() {
            super::shared::lock_after_sleep(self);
            #[cfg(not(loom))]
            super::special::own_if_special(self);
        }
    }

    /// Says, for its holder, that others sleep on the word of a process-shared one.
    pub(in crate::lock) fn announce_sleepers(&self) {
        self.set(|state| state.with_parked(true));
    }
}
