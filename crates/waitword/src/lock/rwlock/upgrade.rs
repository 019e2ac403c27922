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

use super::uncontended::held_by;
use super::word::{Release, Right, UPGRADABLE, WRITER};
use super::{RawRwLock, RwLockError, Wish};
use crate::atomic::Ordering::{Acquire, Relaxed, Release as Releasing};
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
        self.must_have(UPGRADABLE)?;
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
        self.must_have(UPGRADABLE)?;
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
        self.must_have(UPGRADABLE)?;
        or_busy(self.try_become_writer(caller))
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
        self.release_exclusive_to(Release::WriterToUpgradable);
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
        self.must_have(UPGRADABLE)?;
        self.release_upgradable_to(Release::UpgradableToReader);
        Ok(())
    }

    /// Acquires the upgradable lock. Returns whether it has.
    #[inline]
    pub(super) fn enter_upgradable(&self) -> bool {
        self.take_unlocked(UPGRADABLE) || self.enter_upgradable_contended()
    }

    #[inline(never)]
    fn enter_upgradable_contended(&self) -> bool {
        loop {
            let state = self.state();
            if !state.admits_upgradable(Right::Newcomer) {
                return false;
            }
            if self.replace(state, state.with(UPGRADABLE), Acquire) {
                return true;
            }
        }
    }

    #[inline]
    pub(super) fn acquire_upgradable(
        &self,
        deadline: Option<&Deadline>,
    ) -> Result<(), RwLockError> {
        if self.enter_upgradable() {
            Ok(())
        } else if self.state().is_shared() {
            self.wait_exclusive_in_kernel(Wish::ReadUpgradably, deadline)
        } else {
            self.wait_exclusive(Wish::ReadUpgradably, deadline)
        }
    }

    /// Goes from `UPGRADABLE` to `WRITER`. After an error the caller still holds `UPGRADABLE`.
    #[inline]
    pub(super) fn become_writer(
        &self,
        owner: u32,
        deadline: Option<&Deadline>,
    ) -> Result<(), RwLockError> {
        let alone = self.word.compare_exchange(UPGRADABLE, held_by(owner), Acquire, Relaxed);
        if alone.is_ok() {
            Ok(())
        } else if self.state().is_shared() {
            self.wait_upgrade_in_kernel(owner, deadline)
        } else {
            self.wait_upgrade(owner, deadline)
        }
    }

    /// Gives back the upgradable lock.
    #[inline]
    pub(super) fn release_upgradable(&self) {
        if !self.give_back_alone(UPGRADABLE) {
            self.release_upgradable_to(Release::Upgradable);
        }
    }

    /// Gives up `UPGRADABLE`, or downgrades it to a reader's hold.
    pub(super) fn release_upgradable_to(&self, release: Release) {
        loop {
            let state = self.state();
            debug_assert!(state.has(UPGRADABLE), "released an upgradable lock that is not held");
            let after = state.after(release);
            if after.must_serve(release) {
                return self.hand_off(state, release);
            }
            // Release: what an upgradable reader did comes before the next write.
            if self.replace(state, after, Releasing) {
                return;
            }
        }
    }

    /// Checks that the lock is held in this mode, by any thread.
    #[inline]
    fn must_have(&self, held: u64) -> Result<(), RwLockError> {
        if self.state().has(held) { Ok(()) } else { Err(RwLockError::NotLocked) }
    }
}

#[inline]
fn or_busy(done: bool) -> Result<(), RwLockError> {
    if done { Ok(()) } else { Err(RwLockError::Busy) }
}
