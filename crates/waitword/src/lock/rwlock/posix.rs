//! What `pthread_rwlock_*` asks for: errors instead of waiting for ever, deadlines on either clock, one call to give back
//! whatever is held.
//!
//! # Who the writer is
//!
//! While a lock is held for writing, the upper half of its word is free, and a writer may leave a number there that tells
//! who it is (a thread's id; what `EDEADLK` needs). It is the caller who knows that number and what it costs to get it; 0 is
//! nobody, and then no deadlock is noticed. Readers are not known: a thread that reads and asks to write waits for ever, as in glibc.

use super::state::{CLAIMED, READER, Release, Right, WRITER};
use super::{RawRwLock, RwLockError};
use crate::sys::clock::Deadline;

impl RawRwLock {
    /// Takes it for reading; waits, until `deadline` if there is one. `caller` is the number that the caller would give as a
    /// writer, or 0. Source: `pthread_rwlock_rdlock`, `..._clockrdlock`.
    ///
    /// A deadline is looked at only if the call must wait.
    ///
    /// # Errors
    /// [`TimedOut`](RwLockError::TimedOut); [`TooManyReaders`](RwLockError::TooManyReaders);
    /// [`Deadlock`](RwLockError::Deadlock) if `caller` holds it for writing.
    #[inline]
    pub fn read(&self, caller: u32, deadline: Option<&Deadline>) -> Result<(), RwLockError> {
        self.acquire_shared(Right::Newcomer, caller, deadline)
    }

    /// [`read`](Self::read) for a thread that may read already: it waits only while somebody writes, under either preference.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    #[inline]
    pub fn read_recursive(
        &self,
        caller: u32,
        deadline: Option<&Deadline>,
    ) -> Result<(), RwLockError> {
        self.acquire_shared(Right::Holder, caller, deadline)
    }

    /// Takes it for reading if that needs no waiting. Source: `pthread_rwlock_tryrdlock`.
    ///
    /// # Errors
    /// [`Busy`](RwLockError::Busy); [`TooManyReaders`](RwLockError::TooManyReaders).
    #[inline]
    pub fn try_read(&self) -> Result<(), RwLockError> {
        self.try_enter_shared(Right::Newcomer)
    }

    /// Takes it for reading, until `deadline` at the latest.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    #[inline]
    pub fn lock_shared_until(&self, deadline: Deadline) -> Result<(), RwLockError> {
        self.read(0, Some(&deadline))
    }

    /// Takes it for writing; waits, until `deadline` if there is one. `caller` is a number, not 0, that no other thread gives that may
    /// have this lock, or 0. Source: `pthread_rwlock_wrlock`, `..._clockwrlock`.
    ///
    /// A deadline is looked at only if the call must wait.
    ///
    /// # Errors
    /// [`TimedOut`](RwLockError::TimedOut); [`Deadlock`](RwLockError::Deadlock) if `caller` holds it for writing.
    #[inline]
    pub fn write(&self, caller: u32, deadline: Option<&Deadline>) -> Result<(), RwLockError> {
        self.acquire_exclusive(caller, deadline)
    }

    /// Takes it for writing if that needs no waiting. Source: `pthread_rwlock_trywrlock`.
    ///
    /// # Errors
    /// [`Busy`](RwLockError::Busy).
    #[inline]
    pub fn try_write(&self, caller: u32) -> Result<(), RwLockError> {
        if self.enter_exclusive(caller) {
            Ok(())
        } else {
            Err(RwLockError::Busy)
        }
    }

    /// Takes it for writing, until `deadline` at the latest.
    ///
    /// # Errors
    /// [`TimedOut`](RwLockError::TimedOut).
    #[inline]
    pub fn lock_exclusive_until(&self, deadline: Deadline) -> Result<(), RwLockError> {
        self.write(0, Some(&deadline))
    }

    /// Takes it for reading if one compare-and-swap of its word does that: the part of
    /// [`read`](Self::read) that is most often enough and shortest. False: nothing has been done; it takes the whole call to know more.
    ///
    /// For callers, as a `pthread_rwlock_rdlock`, that keep the rest out of line.
    #[inline]
    pub(crate) fn read_at_once(&self) -> bool {
        self.take_unlocked(READER)
    }

    /// The same for a reader whose word another CPU has just changed, as often as that happens.
    #[inline]
    pub(crate) fn read_past_others(&self) -> bool {
        self.enter_beside_others(self.state())
    }

    /// The same part of [`write`](Self::write), for a writer who does not say who it is.
    #[inline]
    pub(crate) fn write_at_once(&self) -> bool {
        self.take_unlocked(WRITER)
    }

    /// Gives back what a reader holds by the word, if the queue needs no look: the same part of
    /// [`unlock`](Self::unlock). Returns false if it has done nothing.
    ///
    /// # Safety
    /// If it is held for reading, the caller holds it.
    #[inline]
    pub(crate) unsafe fn unlock_read_at_once(&self) -> bool {
        self.give_back_alone(READER)
    }

    /// Gives back what a writer holds that has not said who it is, if the word says nothing else. False: nothing has been done.
    ///
    /// # Safety
    /// If it is held for writing, the caller holds it.
    #[inline]
    pub(crate) unsafe fn unlock_write_at_once(&self) -> bool {
        self.give_back_alone(WRITER)
    }

    /// Gives back what the caller holds, for reading or for writing; upgradably only if nobody else reads
    /// ([`unlock_upgradable_checked`](Self::unlock_upgradable_checked)). Source: `pthread_rwlock_unlock`.
    ///
    /// # Errors
    /// [`NotLocked`](RwLockError::NotLocked) if nobody holds it; POSIX leaves that undefined.
    ///
    /// # Safety
    /// If it is held, the caller holds it.
    #[inline]
    pub unsafe fn unlock(&self) -> Result<(), RwLockError> {
        if self.state().has(WRITER) {
            self.release_exclusive();
        } else if !self.release_shared_if_held() {
            if !self.state().has(CLAIMED) {
                return Err(RwLockError::NotLocked);
            }
            self.release_claim(Release::Claim);
        }
        Ok(())
    }
}
