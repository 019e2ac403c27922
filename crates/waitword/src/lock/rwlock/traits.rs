//! The lock as `lock_api` and programs that use `parking_lot` know it.

use super::RawRwLock;
use super::state::{Release, Right, WRITER};
use crate::sys::clock::Deadline;
use lock_api::GuardNoSend;
use std::time::{Duration, Instant};

/// A lock for many readers or one writer, and the data that it guards: `parking_lot`'s interface, on [`RawRwLock`].
///
/// It prefers readers, and no writer starves ([`Preference`](crate::Preference)); so `read` may be called again by
/// a thread that reads. A lock that prefers writers, or lies in shared memory, is made by `from_raw`:
///
/// ```
/// use waitword::{Preference, RawRwLock, RwLock, Scope};
///
/// static TABLE: RwLock<Vec<u32>> = RwLock::new(Vec::new());
///
/// TABLE.write().push(7);
/// let (one, other) = (TABLE.read(), TABLE.read());
/// assert_eq!(*one, *other);
/// assert!(TABLE.try_write().is_none());
///
/// let raw = RawRwLock::with(Preference::Writer, Scope::Private);
/// let lock = RwLock::from_raw(raw, 3);
/// let guard = lock.upgradable_read();
/// let guard = waitword::RwLockUpgradableReadGuard::upgrade(guard);
/// assert_eq!(*guard, 3);
/// ```
pub type RwLock<T> = lock_api::RwLock<RawRwLock, T>;

/// A reader's hold of a [`RwLock`].
///
/// ```
/// let lock = waitword::RwLock::new((1, 2));
/// let first: waitword::MappedRwLockReadGuard<'_, i32> =
///     waitword::RwLockReadGuard::map(lock.read(), |pair| &pair.0);
/// assert_eq!(*first, 1);
/// ```
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLock, T>;

/// A writer's hold of a [`RwLock`].
///
/// ```
/// let lock = waitword::RwLock::new(1);
/// let mut guard: waitword::RwLockWriteGuard<'_, i32> = lock.write();
/// *guard += 1;
/// let guard = waitword::RwLockWriteGuard::downgrade(guard);
/// assert_eq!((*guard, *lock.read()), (2, 2));
/// ```
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwLock, T>;

/// An upgradable reader's hold of a [`RwLock`]: beside readers, but no other such.
///
/// ```
/// let lock = waitword::RwLock::new(1);
/// let guard: waitword::RwLockUpgradableReadGuard<'_, i32> = lock.upgradable_read();
/// assert!(lock.try_read().is_some() && lock.try_upgradable_read().is_none());
/// ```
pub type RwLockUpgradableReadGuard<'a, T> = lock_api::RwLockUpgradableReadGuard<'a, RawRwLock, T>;

/// A reader's hold of a [`RwLock`], seen as part of its data: see [`RwLockReadGuard`].
///
/// ```
/// let lock = waitword::RwLock::new((1, 2));
/// let second: waitword::MappedRwLockReadGuard<'_, i32> =
///     waitword::RwLockReadGuard::map(lock.read(), |pair| &pair.1);
/// assert_eq!(*second, 2);
/// ```
pub type MappedRwLockReadGuard<'a, T> = lock_api::MappedRwLockReadGuard<'a, RawRwLock, T>;

/// A writer's hold of a [`RwLock`], seen as part of its data.
///
/// ```
/// let lock = waitword::RwLock::new((1, 2));
/// let second: waitword::MappedRwLockWriteGuard<'_, i32> =
///     waitword::RwLockWriteGuard::map(lock.write(), |pair| &mut pair.1);
/// assert_eq!(*second, 2);
/// ```
pub type MappedRwLockWriteGuard<'a, T> = lock_api::MappedRwLockWriteGuard<'a, RawRwLock, T>;

/// A [`RwLock`] for a `static`, as `parking_lot` calls it; [`RwLock::new`](lock_api::RwLock::new) does the same.
///
/// ```
/// static LOCK: waitword::RwLock<u8> = waitword::const_rwlock(1);
/// assert_eq!(*LOCK.read(), 1);
/// ```
pub const fn const_rwlock<T>(value: T) -> RwLock<T> {
    RwLock::from_raw(RawRwLock::new(), value)
}

fn at(instant: Instant) -> Deadline {
    Deadline::after(instant.saturating_duration_since(Instant::now()))
}

// SAFETY: shared and exclusive holds exclude each other; `state.rs`, and the models under loom.
unsafe impl lock_api::RawRwLock for RawRwLock {
    const INIT: Self = Self::new();

    // A guard that another thread drops would find its slot too (`slots.rs`), but pthreads and `parking_lot` forbid it.
    type GuardMarker = GuardNoSend;

    #[inline]
    fn lock_shared(&self) {
        self.take_shared(Right::Newcomer);
    }

    #[inline]
    fn try_lock_shared(&self) -> bool {
        self.try_read().is_ok()
    }

    #[inline]
    unsafe fn unlock_shared(&self) {
        self.release_shared();
    }

    #[inline]
    fn lock_exclusive(&self) {
        // Without a deadline and a number for the caller nothing can go wrong.
        let _ = self.acquire_exclusive(0, None);
    }

    #[inline]
    fn try_lock_exclusive(&self) -> bool {
        self.enter_exclusive(0)
    }

    #[inline]
    unsafe fn unlock_exclusive(&self) {
        self.release_exclusive();
    }

    fn is_locked(&self) -> bool {
        self.is_held()
    }

    fn is_locked_exclusive(&self) -> bool {
        self.state().has(WRITER)
    }
}

// SAFETY: gives back as `RawRwLock` does.
unsafe impl lock_api::RawRwLockFair for RawRwLock {
    unsafe fn unlock_shared_fair(&self) {
        self.release_fairly(Release::Reader);
    }

    unsafe fn unlock_exclusive_fair(&self) {
        self.release_fairly(Release::Writer);
    }
}

// SAFETY: no writer comes between.
unsafe impl lock_api::RawRwLockDowngrade for RawRwLock {
    unsafe fn downgrade(&self) {
        self.release_exclusive_to(Release::WriterToReader);
    }
}

// SAFETY: takes as `RawRwLock` does.
unsafe impl lock_api::RawRwLockTimed for RawRwLock {
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_shared_for(&self, timeout: Duration) -> bool {
        self.try_read().is_ok() || self.lock_shared_until(Deadline::after(timeout)).is_ok()
    }

    fn try_lock_shared_until(&self, timeout: Instant) -> bool {
        self.try_read().is_ok() || self.lock_shared_until(at(timeout)).is_ok()
    }

    fn try_lock_exclusive_for(&self, timeout: Duration) -> bool {
        self.enter_exclusive(0) || self.lock_exclusive_until(Deadline::after(timeout)).is_ok()
    }

    fn try_lock_exclusive_until(&self, timeout: Instant) -> bool {
        self.enter_exclusive(0) || self.lock_exclusive_until(at(timeout)).is_ok()
    }
}

// SAFETY: takes as `RawRwLock` does.
unsafe impl lock_api::RawRwLockRecursive for RawRwLock {
    fn lock_shared_recursive(&self) {
        self.take_shared(Right::Holder);
    }

    fn try_lock_shared_recursive(&self) -> bool {
        self.try_enter_shared(Right::Holder).is_ok()
    }
}

// SAFETY: takes as `RawRwLock` does.
unsafe impl lock_api::RawRwLockRecursiveTimed for RawRwLock {
    fn try_lock_shared_recursive_for(&self, timeout: Duration) -> bool {
        self.read_recursive(0, Some(&Deadline::after(timeout)))
            .is_ok()
    }

    fn try_lock_shared_recursive_until(&self, timeout: Instant) -> bool {
        self.read_recursive(0, Some(&at(timeout))).is_ok()
    }
}

// SAFETY: one thread at most has the claim, and nobody writes meanwhile.
unsafe impl lock_api::RawRwLockUpgrade for RawRwLock {
    #[inline]
    fn lock_upgradable(&self) {
        // Without a deadline nothing can go wrong.
        let _ = self.acquire_upgradable(None);
    }

    #[inline]
    fn try_lock_upgradable(&self) -> bool {
        self.enter_upgradable()
    }

    #[inline]
    unsafe fn unlock_upgradable(&self) {
        self.release_upgradable();
    }

    #[inline]
    unsafe fn upgrade(&self) {
        // Without a deadline nothing can go wrong.
        let _ = self.become_writer(0, None);
    }

    unsafe fn try_upgrade(&self) -> bool {
        self.try_take_over(0)
    }
}

// SAFETY: gives back as `RawRwLockUpgrade` does.
unsafe impl lock_api::RawRwLockUpgradeFair for RawRwLock {
    unsafe fn unlock_upgradable_fair(&self) {
        self.release_fairly(Release::Claim);
    }
}

// SAFETY: no writer comes between.
unsafe impl lock_api::RawRwLockUpgradeDowngrade for RawRwLock {
    unsafe fn downgrade_upgradable(&self) {
        self.release_claim(Release::ClaimToReader);
    }

    unsafe fn downgrade_to_upgradable(&self) {
        self.release_exclusive_to(Release::WriterToClaim);
    }
}

// SAFETY: takes as `RawRwLockUpgrade` does.
unsafe impl lock_api::RawRwLockUpgradeTimed for RawRwLock {
    fn try_lock_upgradable_for(&self, timeout: Duration) -> bool {
        self.read_upgradably(Some(&Deadline::after(timeout)))
            .is_ok()
    }

    fn try_lock_upgradable_until(&self, timeout: Instant) -> bool {
        self.enter_upgradable() || self.read_upgradably(Some(&at(timeout))).is_ok()
    }

    unsafe fn try_upgrade_for(&self, timeout: Duration) -> bool {
        self.become_writer(0, Some(&Deadline::after(timeout)))
            .is_ok()
    }

    unsafe fn try_upgrade_until(&self, timeout: Instant) -> bool {
        self.become_writer(0, Some(&at(timeout))).is_ok()
    }
}
