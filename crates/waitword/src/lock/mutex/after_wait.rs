//! The mutex's side of a condvar wait: parks the condvar's waiters at the mutex, and takes the
//! mutex again for a waiter that was woken.

use super::private;
use super::waiter::{EXTRA, FromCondvar, HOLDER, SUCCESSOR};
use super::{LockError, PosixFlavour, RawPosixMutex, Then};
use crate::futex::parking::{Token, Tokens};
use crate::record::{self, Object};

/// Where the waiters of a mutex are queued.
#[derive(Clone, Copy)]
pub(in crate::lock) enum Stands {
    /// In our table, under the address of the word.
    InTable,
    /// In the kernel, on the word.
    InKernel,
    /// In the kernel, by priority.
    ByPriority,
}

impl RawPosixMutex {
    /// Returns an error if the caller is known not to hold the mutex.
    pub(in crate::lock) fn check_owner(&self) -> Result<(), LockError> {
        if self.state().is_special() && !super::owner::is_mine(self) {
            return Err(LockError::NotOwner);
        }
        Ok(())
    }

    /// Whether the caller, which holds the mutex, does so more than once. If so, the mutex stays
    /// held when the caller gives one level back.
    pub(in crate::lock) fn is_held_more_than_once(&self) -> bool {
        let state = self.state();
        state.is_special() && state.levels() > 0
    }

    /// Takes back the level that was given back, if the mutex stayed held by the caller. Returns
    /// false if it did not.
    pub(in crate::lock) fn take_level_back(&self) -> bool {
        self.state().is_special() && super::owner::lock_again(self) == Some(Ok(()))
    }

    /// Unlocks the mutex for a thread that is about to wait for this condvar, so that another
    /// thread can have its CPU. The caller holds the mutex.
    pub(in crate::lock) fn unlock_to_sleep(&self, condvar: FromCondvar) {
        if self.release_fast().is_err() {
            self.unlock_to_sleep_slow(condvar);
        }
    }

    #[cold]
    fn unlock_to_sleep_slow(&self, condvar: FromCondvar) {
        let state = self.state();
        if state.is_special() {
            let checked_before = super::owner::unlock(self, Then::Sleep(condvar));
            debug_assert!(checked_before.is_ok());
            return;
        }
        super::history::note_wait(self);
        self.unlock_word(state, Then::Sleep(condvar));
    }

    pub(in crate::lock) fn waiters_stand(&self) -> Stands {
        if super::owner::is_pi(self) {
            return Stands::ByPriority;
        }
        if self.is_shared_in(self.state()) {
            return Stands::InKernel;
        }
        Stands::InTable
    }

    /// How many waiters of a condvar to wake at once, if no thread holds the mutex.
    pub(in crate::lock) fn best_woken(&self) -> usize {
        match self.waits_as() {
            PosixFlavour::WaitWake => 1,
            _ => 1 + self.extras(),
        }
    }

    /// Announces waiters that are about to be moved to this mutex's queue, if a thread is certain
    /// to wake them: the holder, or, if all are signalled, the successor, which will be the holder.
    /// (Real-time threads do not wait for a successor. Nor does the one thread of a signal, if the
    /// mutex is free: the successor may wait for a CPU for long.) Returns whether they were
    /// announced. Called under the bucket lock of the queue.
    pub(in crate::lock) fn accept_waiters(&self, real_time: bool, all: bool) -> bool {
        if !all {
            self.note_signal();
        }
        self.announce(|state| {
            let waits_for_successor = all && !real_time && state.has_successor();
            let will_be_unlocked = state.is_locked() || waits_for_successor;
            will_be_unlocked.then_some(match real_time {
                true => state.with_real_time_parked(),
                false => state.with_parked(true),
            })
        })
    }

    /// [`accept_waiters`](Self::accept_waiters) for a mutex that had no thread to wake them: some
    /// of the waiters are woken instead, with the tokens that this returns. `real_time`: the first
    /// woken waiter is a real-time thread, and others that are moved may be.
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
            let state = if is_successor { state.with_successor() } else { state };
            Some(match others_moved {
                true if real_time => state.with_real_time_parked(),
                true => state.with_parked(true),
                false => state,
            })
        });
        Tokens { first: token, others: EXTRA }
    }

    /// Locks the mutex again, for a waiter that the condvar or an unlock has woken with this token.
    pub(in crate::lock) fn lock_after_wait(&self, token: Token) {
        match token {
            HOLDER => {}
            EXTRA if self.try_fast().is_ok() => self.note_woken(true),
            SUCCESSOR | EXTRA => {
                if token == SUCCESSOR {
                    self.note_run();
                }
                let without_deadline = private::lock(self, None, token);
                debug_assert!(without_deadline.is_ok());
            }
            _ => {
                if self.try_fast().is_ok() {
                    self.note_woken(true);
                } else if !self.take_level_back() {
                    self.lock_word_uninterrupted();
                }
            }
        }
        super::owner::own_if_special(self);
    }

    #[cold]
    fn lock_word_uninterrupted(&self) {
        let at_once = self.try_word(self.state());
        self.note_woken(at_once);
        if !at_once {
            // A wait at the condvar, as far as it is recorded.
            let without_deadline = self.lock_word_unrecorded(self.state(), None);
            debug_assert!(without_deadline.is_ok());
        }
    }

    /// Locks a process-shared mutex again, for a waiter that slept on its word. Other threads may
    /// still sleep there.
    pub(in crate::lock) fn lock_after_sleep(&self) {
        if !self.take_level_back() {
            let locked = record::waiting(Object::Mutex, self.address(), false, || {
                super::shared::lock_after_sleep(self);
                Ok::<(), core::convert::Infallible>(())
            });
            debug_assert!(locked.is_ok());
            super::owner::own_if_special(self);
        }
    }

    /// Records, for the holder of a process-shared mutex, that other threads sleep on its word.
    pub(in crate::lock) fn announce_sleepers(&self) {
        self.set(|state| state.with_parked(true));
    }
}
