//! Upgradable locking and the changes between modes, with errors where `lock_api` has undefined
//! behaviour. (Boost's `upgrade_mutex` and `parking_lot` have the same operations. pthreads has
//! none of them.)
//!
//! ```text
//!              upgrade                     downgrade
//!   upgradable ───────► writing   writing ──────────► reading
//!              ◄───────                                  ▲
//!         downgrade_to_upgradable                        │
//!   upgradable ──────────────────────────────────────────┘
//!                        downgrade_upgradable
//! ```
//!
//! No other thread writes in between. Once a thread may write, what it has read under the
//! upgradable lock is unchanged.

use super::word::{CLAIMED, Release, WRITER};
use super::{RawRwLock, RwLockError};
use crate::sys::clock::Deadline;

impl RawRwLock {
    /// Acquires the upgradable lock, which readers can share but no other upgradable holder.
    /// Blocks, until `deadline` if there is one.
    ///
    /// # Errors
    /// [`TimedOut`](RwLockError::TimedOut).
    #[inline]
    pub fn read_upgradably(&self, deadline: Option<&Deadline>) -> Result<(), RwLockError> {
        self.acquire_upgradable(deadline)
    }

    /// Acquires the upgradable lock if that needs no waiting.
    ///
    /// # Errors
    /// [`Busy`](RwLockError::Busy).
    #[inline]
    pub fn try_read_upgradably(&self) -> Result<(), RwLockError> {
        or_busy(self.enter_upgradable())
    }

    /// Releases the upgradable lock.
    ///
    /// # Errors
    /// [`NotLocked`](RwLockError::NotLocked) if no thread holds the upgradable lock.
    ///
    /// # Safety
    /// If any thread holds the upgradable lock, the caller does.
    #[inline]
    pub unsafe fn unlock_upgradable_checked(&self) -> Result<(), RwLockError> {
        self.must_have(CLAIMED)?;
        self.release_upgradable();
        Ok(())
    }

    /// Upgrades the upgradable lock to writing, once the readers have left. Blocks, until
    /// `deadline` if there is one. `caller` is the same as in [`write`](Self::write). After an
    /// error the lock is held as before.
    ///
    /// # Errors
    /// [`TimedOut`](RwLockError::TimedOut); [`NotLocked`](RwLockError::NotLocked) if no thread
    /// holds the upgradable lock.
    ///
    /// # Safety
    /// If any thread holds the upgradable lock, the caller does.
    #[inline]
    pub unsafe fn upgrade_checked(
        &self,
        caller: u32,
        deadline: Option<&Deadline>,
    ) -> Result<(), RwLockError> {
        self.must_have(CLAIMED)?;
        self.become_writer(caller, deadline)
    }

    /// The same if there are no readers now. Does not block.
    ///
    /// # Errors
    /// [`Busy`](RwLockError::Busy); [`NotLocked`](RwLockError::NotLocked) if no thread holds the
    /// upgradable lock.
    ///
    /// # Safety
    /// If any thread holds the upgradable lock, the caller does.
    #[inline]
    pub unsafe fn try_upgrade_checked(&self, caller: u32) -> Result<(), RwLockError> {
        self.must_have(CLAIMED)?;
        or_busy(self.try_take_over(caller))
    }

    /// Downgrades from writing to reading. Readers can enter.
    ///
    /// # Errors
    /// [`NotLocked`](RwLockError::NotLocked) if no thread holds the lock for writing.
    ///
    /// # Safety
    /// If any thread holds the lock for writing, the caller does.
    #[inline]
    pub unsafe fn downgrade_checked(&self) -> Result<(), RwLockError> {
        self.must_have(WRITER)?;
        self.release_exclusive_to(Release::WriterToReader);
        Ok(())
    }

    /// Downgrades from writing to the upgradable lock. Readers can enter.
    ///
    /// # Errors
    /// [`NotLocked`](RwLockError::NotLocked) if no thread holds the lock for writing.
    ///
    /// # Safety
    /// If any thread holds the lock for writing, the caller does.
    #[inline]
    pub unsafe fn downgrade_to_upgradable_checked(&self) -> Result<(), RwLockError> {
        self.must_have(WRITER)?;
        self.release_exclusive_to(Release::WriterToClaim);
        Ok(())
    }

    /// Downgrades the upgradable lock to reading. Writers then wait for the caller as for any
    /// reader.
    ///
    /// # Errors
    /// [`NotLocked`](RwLockError::NotLocked) if no thread holds the upgradable lock.
    ///
    /// # Safety
    /// If any thread holds the upgradable lock, the caller does.
    #[inline]
    pub unsafe fn downgrade_upgradable_checked(&self) -> Result<(), RwLockError> {
        self.must_have(CLAIMED)?;
        self.release_claim(Release::ClaimToReader);
        Ok(())
    }

    /// Checks that the lock is held in this mode, by any thread.
    #[inline]
    fn must_have(&self, held: u64) -> Result<(), RwLockError> {
        if self.state().has(held) {
            Ok(())
        } else {
            Err(RwLockError::NotLocked)
        }
    }
}

#[inline]
fn or_busy(done: bool) -> Result<(), RwLockError> {
    if done { Ok(()) } else { Err(RwLockError::Busy) }
}
