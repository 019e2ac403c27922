//! Holding a lock upgradably, and going from one way of holding it to another, with errors in place of what `lock_api`
//! leaves undefined. (Boost's `upgrade_mutex` and `parking_lot` have the same steps; pthreads have none of them.)
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
//! Nobody writes between: what a thread has read upgradably it finds unchanged once it may write.

use super::state::{CLAIMED, Release, WRITER};
use super::{RawRwLock, RwLockError};
use crate::sys::clock::Deadline;

impl RawRwLock {
    /// Takes it upgradably, beside readers but no other such; waits, until `deadline` if there is one.
    ///
    /// # Errors
    /// [`TimedOut`](RwLockError::TimedOut).
    #[inline]
    pub fn read_upgradably(&self, deadline: Option<&Deadline>) -> Result<(), RwLockError> {
        self.acquire_upgradable(deadline)
    }

    /// Takes it upgradably if that needs no waiting.
    ///
    /// # Errors
    /// [`Busy`](RwLockError::Busy).
    #[inline]
    pub fn try_read_upgradably(&self) -> Result<(), RwLockError> {
        or_busy(self.enter_upgradable())
    }

    /// Gives back what the caller holds upgradably.
    ///
    /// # Errors
    /// [`NotLocked`](RwLockError::NotLocked) if nobody holds it so.
    ///
    /// # Safety
    /// If somebody holds it upgradably, it is the caller.
    #[inline]
    pub unsafe fn unlock_upgradable_checked(&self) -> Result<(), RwLockError> {
        self.must_have(CLAIMED)?;
        self.release_upgradable();
        Ok(())
    }

    /// From holding it upgradably to holding it for writing, once the readers have left; waits for that, until `deadline` if
    /// there is one. `caller` as in [`write`](Self::write). After an error it is held as before.
    ///
    /// # Errors
    /// [`TimedOut`](RwLockError::TimedOut); [`NotLocked`](RwLockError::NotLocked) if nobody holds it upgradably.
    ///
    /// # Safety
    /// If somebody holds it upgradably, it is the caller.
    #[inline]
    pub unsafe fn upgrade_checked(
        &self,
        caller: u32,
        deadline: Option<&Deadline>,
    ) -> Result<(), RwLockError> {
        self.must_have(CLAIMED)?;
        self.become_writer(caller, deadline)
    }

    /// The same if nobody reads now.
    ///
    /// # Errors
    /// [`Busy`](RwLockError::Busy); [`NotLocked`](RwLockError::NotLocked) if nobody holds it upgradably.
    ///
    /// # Safety
    /// If somebody holds it upgradably, it is the caller.
    #[inline]
    pub unsafe fn try_upgrade_checked(&self, caller: u32) -> Result<(), RwLockError> {
        self.must_have(CLAIMED)?;
        or_busy(self.try_take_over(caller))
    }

    /// From holding it for writing to holding it for reading: readers come in.
    ///
    /// # Errors
    /// [`NotLocked`](RwLockError::NotLocked) if nobody holds it for writing.
    ///
    /// # Safety
    /// If somebody holds it for writing, it is the caller.
    #[inline]
    pub unsafe fn downgrade_checked(&self) -> Result<(), RwLockError> {
        self.must_have(WRITER)?;
        self.release_exclusive_to(Release::WriterToReader);
        Ok(())
    }

    /// From holding it for writing to holding it upgradably: readers come in.
    ///
    /// # Errors
    /// [`NotLocked`](RwLockError::NotLocked) if nobody holds it for writing.
    ///
    /// # Safety
    /// If somebody holds it for writing, it is the caller.
    #[inline]
    pub unsafe fn downgrade_to_upgradable_checked(&self) -> Result<(), RwLockError> {
        self.must_have(WRITER)?;
        self.release_exclusive_to(Release::WriterToClaim);
        Ok(())
    }

    /// From holding it upgradably to holding it for reading: writers wait for the caller as for any reader.
    ///
    /// # Errors
    /// [`NotLocked`](RwLockError::NotLocked) if nobody holds it upgradably.
    ///
    /// # Safety
    /// If somebody holds it upgradably, it is the caller.
    #[inline]
    pub unsafe fn downgrade_upgradable_checked(&self) -> Result<(), RwLockError> {
        self.must_have(CLAIMED)?;
        self.release_claim(Release::ClaimToReader);
        Ok(())
    }

    /// Whether it is held so, by whomever.
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
