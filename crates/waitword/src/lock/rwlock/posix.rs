//! What `pthread_rwlock_*` requires: errors instead of waiting forever, deadlines on either clock,
//! and one call to release either mode.
//!
//! # The writer's owner number
//!
//! While a lock is held for writing, the upper half of its word is free. A writer may leave a
//! number there that identifies it (a thread id; `EDEADLK` needs it). The caller knows that number
//! and what it costs to get it. 0 means that no number is given, and then no deadlock is detected.
//! Readers are not recorded: a thread that holds the lock for reading and acquires it for writing
//! waits forever, as in glibc.

use super::word::{READER, Release, Right, UPGRADABLE, WRITER};
use super::{RawRwLock, RwLockError};
use crate::sys::clock::Deadline;

impl RawRwLock {
    /// Acquires the lock for reading. Blocks, until `deadline` if there is one. `caller` is the
    /// number that the caller would give as a writer, or 0. Source: `pthread_rwlock_rdlock`,
    /// `..._clockrdlock`.
    ///
    /// The deadline is checked only if the call must wait.
    ///
    /// # Errors
    /// [`TimedOut`](RwLockError::TimedOut); [`TooManyReaders`](RwLockError::TooManyReaders);
    /// [`Deadlock`](RwLockError::Deadlock) if `caller` holds the lock for writing.
    #[inline]
    pub fn read(&self, caller: u32, deadline: Option<&Deadline>) -> Result<(), RwLockError> {
        self.acquire_shared(Right::Newcomer, caller, deadline)
    }

    /// [`read`](Self::read) for a thread that may already hold the lock for reading. It waits only
    /// while a writer holds the lock, under either preference.
    ///
    /// # Errors
    /// The same as [`read`](Self::read).
    #[inline]
    pub fn read_recursive(
        &self,
        caller: u32,
        deadline: Option<&Deadline>,
    ) -> Result<(), RwLockError> {
        self.acquire_shared(Right::Holder, caller, deadline)
    }

    /// Acquires the lock for reading if that needs no waiting. Source: `pthread_rwlock_tryrdlock`.
    ///
    /// # Errors
    /// [`Busy`](RwLockError::Busy); [`TooManyReaders`](RwLockError::TooManyReaders).
    #[inline]
    pub fn try_read(&self) -> Result<(), RwLockError> {
        self.try_enter_shared(Right::Newcomer)
    }

    /// Acquires the lock for reading. Blocks until `deadline` at the latest.
    ///
    /// # Errors
    /// The same as [`read`](Self::read).
    #[inline]
    pub fn lock_shared_until(&self, deadline: Deadline) -> Result<(), RwLockError> {
        self.read(0, Some(&deadline))
    }

    /// Acquires the lock for writing. Blocks, until `deadline` if there is one. `caller` is 0, or a
    /// nonzero number that no other thread gives that may hold this lock. Source:
    /// `pthread_rwlock_wrlock`, `..._clockwrlock`.
    ///
    /// The deadline is checked only if the call must wait.
    ///
    /// # Errors
    /// [`TimedOut`](RwLockError::TimedOut); [`Deadlock`](RwLockError::Deadlock) if `caller` holds
    /// the lock for writing.
    #[inline]
    pub fn write(&self, caller: u32, deadline: Option<&Deadline>) -> Result<(), RwLockError> {
        self.acquire_exclusive(caller, deadline)
    }

    /// Acquires the lock for writing if that needs no waiting. Source: `pthread_rwlock_trywrlock`.
    ///
    /// # Errors
    /// [`Busy`](RwLockError::Busy).
    #[inline]
    pub fn try_write(&self, caller: u32) -> Result<(), RwLockError> {
        if self.enter_exclusive(caller) { Ok(()) } else { Err(RwLockError::Busy) }
    }

    /// Acquires the lock for writing. Blocks until `deadline` at the latest.
    ///
    /// # Errors
    /// [`TimedOut`](RwLockError::TimedOut).
    #[inline]
    pub fn lock_exclusive_until(&self, deadline: Deadline) -> Result<(), RwLockError> {
        self.write(0, Some(&deadline))
    }

    /// Acquires the lock for reading if one compare-and-swap does that: the shortest part of
    /// [`read`](Self::read), which is most often enough. If it returns false, it has done nothing,
    /// and only the whole call can tell whether the lock is available.
    ///
    /// For callers, such as a `pthread_rwlock_rdlock`, that keep the rest out of line.
    #[inline]
    pub(crate) fn read_at_once(&self) -> bool {
        self.take_unlocked(READER)
    }

    /// The same after another CPU has just changed the word. Retries as often as that happens.
    #[inline]
    pub(crate) fn read_past_others(&self) -> bool {
        self.enter_past_others(self.state())
    }

    /// The same part of [`write`](Self::write), for a writer that gives no owner number.
    #[inline]
    pub(crate) fn write_at_once(&self) -> bool {
        self.take_unlocked(WRITER)
    }

    /// The same part of [`unlock`](Self::unlock): releases a reader's hold in the word, if no look
    /// at the queue is needed. Returns false if it has done nothing.
    ///
    /// # Safety
    /// If the lock is held for reading, the caller holds it.
    #[inline]
    pub(crate) unsafe fn unlock_read_at_once(&self) -> bool {
        self.give_back_alone(READER)
    }

    /// Releases the hold of a writer that gave no owner number, if no look at the queue is needed.
    /// Returns false if it has done nothing.
    ///
    /// # Safety
    /// If the lock is held for writing, the caller holds it.
    #[inline]
    pub(crate) unsafe fn unlock_write_at_once(&self) -> bool {
        self.give_back_alone(WRITER)
    }

    /// Releases what the caller holds, for reading or for writing. For an upgradable hold, use
    /// [`unlock_upgradable_checked`](Self::unlock_upgradable_checked): this call releases that only
    /// if no thread reads. Source: `pthread_rwlock_unlock`.
    ///
    /// # Errors
    /// [`NotLocked`](RwLockError::NotLocked) if no thread holds the lock. POSIX leaves that
    /// undefined.
    ///
    /// # Safety
    /// If the lock is held, the caller holds it.
    #[inline]
    pub unsafe fn unlock(&self) -> Result<(), RwLockError> {
        if self.state().has(WRITER) {
            self.release_exclusive();
        } else if !self.release_shared_if_held() {
            if !self.state().has(UPGRADABLE) {
                return Err(RwLockError::NotLocked);
            }
            self.release_upgradable_to(Release::Upgradable);
        }
        Ok(())
    }
}
