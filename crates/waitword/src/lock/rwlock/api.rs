//! The lock behind the interfaces of `lock_api` and `parking_lot`.

use super::word::{Release, Right, WRITER};
use super::{Preference, RawRwLock};
use crate::deadlock::{self, LockKind, Taking, Way};
use crate::futex::Scope;
use crate::lock::GuardMarker;
use crate::sys::clock::Deadline;
use std::time::{Duration, Instant};

/// A readers-writer lock and the data that it protects: `parking_lot`'s interface on [`RawRwLock`].
///
/// It prefers readers, and no writer starves ([`Preference`](crate::Preference)). So a thread that
/// holds the lock for reading may call `read` again. Use [`RwLockOptions`] for a lock that prefers
/// writers or lies in shared memory.
///
/// ```
/// use waitword::{RwLock, RwLockUpgradableReadGuard};
///
/// static TABLE: RwLock<Vec<u32>> = RwLock::new(Vec::new());
///
/// TABLE.write().push(7);
/// let (one, other) = (TABLE.read(), TABLE.read());
/// assert_eq!(*one, *other);
/// assert!(TABLE.try_write().is_none());
/// drop((one, other));
///
/// let guard = TABLE.upgradable_read();
/// let guard = RwLockUpgradableReadGuard::upgrade(guard);
/// assert_eq!(*guard, [7]);
/// ```
pub type RwLock<T> = lock_api::RwLock<RawRwLock, T>;

/// A reader's guard of a [`RwLock`].
///
/// ```
/// let lock = waitword::RwLock::new((1, 2));
/// let first: waitword::MappedRwLockReadGuard<'_, i32> =
///     waitword::RwLockReadGuard::map(lock.read(), |pair| &pair.0);
/// assert_eq!(*first, 1);
/// ```
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLock, T>;

/// A writer's guard of a [`RwLock`].
///
/// ```
/// let lock = waitword::RwLock::new(1);
/// let mut guard: waitword::RwLockWriteGuard<'_, i32> = lock.write();
/// *guard += 1;
/// let guard = waitword::RwLockWriteGuard::downgrade(guard);
/// assert_eq!((*guard, *lock.read()), (2, 2));
/// ```
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwLock, T>;

/// An upgradable reader's guard of a [`RwLock`]. Readers can share the lock with it, but no other
/// upgradable reader can.
///
/// ```
/// let lock = waitword::RwLock::new(1);
/// let guard: waitword::RwLockUpgradableReadGuard<'_, i32> = lock.upgradable_read();
/// assert!(lock.try_read().is_some() && lock.try_upgradable_read().is_none());
/// ```
pub type RwLockUpgradableReadGuard<'a, T> = lock_api::RwLockUpgradableReadGuard<'a, RawRwLock, T>;

/// A reader's guard of part of the data of a [`RwLock`]: see [`RwLockReadGuard`].
///
/// ```
/// let lock = waitword::RwLock::new((1, 2));
/// let second: waitword::MappedRwLockReadGuard<'_, i32> =
///     waitword::RwLockReadGuard::map(lock.read(), |pair| &pair.1);
/// assert_eq!(*second, 2);
/// ```
pub type MappedRwLockReadGuard<'a, T> = lock_api::MappedRwLockReadGuard<'a, RawRwLock, T>;

/// A writer's guard of part of the data of a [`RwLock`].
///
/// ```
/// let lock = waitword::RwLock::new((1, 2));
/// let second: waitword::MappedRwLockWriteGuard<'_, i32> =
///     waitword::RwLockWriteGuard::map(lock.write(), |pair| &mut pair.1);
/// assert_eq!(*second, 2);
/// ```
pub type MappedRwLockWriteGuard<'a, T> = lock_api::MappedRwLockWriteGuard<'a, RawRwLock, T>;

/// Creates a [`RwLock`] for a `static`, under `parking_lot`'s name.
/// [`RwLock::new`](lock_api::RwLock::new) does the same.
///
/// ```
/// static LOCK: waitword::RwLock<u8> = waitword::const_rwlock(1);
/// assert_eq!(*LOCK.read(), 1);
/// ```
pub const fn const_rwlock<T>(value: T) -> RwLock<T> {
    RwLock::from_raw(RawRwLock::new(), value)
}

/// Options for a new [`RwLock`].
///
/// ```
/// use waitword::{Preference, RwLock, RwLockOptions};
///
/// static TABLE: RwLock<Vec<u32>> = RwLockOptions::new()
///     .preference(Preference::Writer)
///     .build(Vec::new());
/// TABLE.write().push(1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct RwLockOptions {
    preference: Preference,
    scope: Scope,
}

impl RwLockOptions {
    /// Options for a private lock that prefers readers.
    pub const fn new() -> Self {
        Self { preference: Preference::Reader, scope: Scope::Private }
    }

    /// Sets which class of threads the lock prefers.
    pub const fn preference(self, preference: Preference) -> Self {
        Self { preference, ..self }
    }

    /// Sets whether threads of other processes lock it too, in memory that they share.
    pub const fn scope(self, scope: Scope) -> Self {
        Self { scope, ..self }
    }

    /// Creates an unlocked lock with these options, without data.
    pub const fn build_raw(self) -> RawRwLock {
        RawRwLock::with(self.preference, self.scope)
    }

    /// Creates an unlocked lock with these options, around a value.
    pub const fn build<T>(self, value: T) -> RwLock<T> {
        RwLock::from_raw(self.build_raw(), value)
    }
}

impl Default for RwLockOptions {
    fn default() -> Self {
        Self::new()
    }
}

fn at(instant: Instant) -> Deadline {
    Deadline::after(instant.saturating_duration_since(Instant::now()))
}

/// Records that the calling thread is about to acquire the lock in this mode.
#[inline(always)]
#[cfg_attr(feature = "deadlock_detection", track_caller)]
fn taking(lock: &RawRwLock, way: Way) -> Taking {
    Taking::of(lock, LockKind::RwLock, way)
}

// SAFETY: a hold begins with a read-modify-write that finds no excluding hold in the word or the
// slots (`word.rs`, `visible_readers.rs`, and the loom models), or is handed off by a release that
// has left such a word. `lock_shared` retries until it has a hold. `lock_exclusive` cannot fail:
// the errors of a wait are a deadline, and a nonzero number of the caller.
unsafe impl lock_api::RawRwLock for RawRwLock {
    const INIT: Self = Self::new();

    // Sound either way: a writer gives no owner number here, and any thread finds a reader's slot
    // (`visible_readers.rs`, invariant 2).
    type GuardMarker = GuardMarker;

    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn lock_shared(&self) {
        let taking = taking(self, Way::Shared);
        taking.lock(
            || self.try_enter_shared(Right::Newcomer).ok(),
            || self.take_shared(Right::Newcomer),
        );
        taking.taken();
    }

    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_shared(&self) -> bool {
        taking(self, Way::Shared).taken_if(self.try_read().is_ok())
    }

    #[inline]
    unsafe fn unlock_shared(&self) {
        deadlock::give_back(self, Way::Shared);
        self.release_shared();
    }

    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn lock_exclusive(&self) {
        let taking = taking(self, Way::Exclusive);
        taking.lock(
            || self.enter_exclusive(0).then_some(()),
            || {
                // Cannot fail without a deadline and a number for the caller.
                let _ = self.acquire_exclusive(0, None);
            },
        );
        taking.taken();
    }

    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_exclusive(&self) -> bool {
        taking(self, Way::Exclusive).taken_if(self.enter_exclusive(0))
    }

    #[inline]
    unsafe fn unlock_exclusive(&self) {
        deadlock::give_back(self, Way::Exclusive);
        self.release_exclusive();
    }

    fn is_locked(&self) -> bool {
        self.is_held()
    }

    fn is_locked_exclusive(&self) -> bool {
        self.state().has(WRITER)
    }
}

// SAFETY: each releases one hold of its kind, as `RawRwLock`'s unlocks do, to a waiter if there is
// one.
unsafe impl lock_api::RawRwLockFair for RawRwLock {
    unsafe fn unlock_shared_fair(&self) {
        deadlock::give_back(self, Way::Shared);
        self.release_fairly(Release::Reader);
    }

    unsafe fn unlock_exclusive_fair(&self) {
        deadlock::give_back(self, Way::Exclusive);
        self.release_fairly(Release::Writer);
    }
}

// SAFETY: the step that gives up writing counts the caller as a reader, so no writer can come
// between.
unsafe impl lock_api::RawRwLockDowngrade for RawRwLock {
    unsafe fn downgrade(&self) {
        deadlock::weaken(self, Way::Exclusive, Way::Shared);
        self.release_exclusive_to(Release::WriterToReader);
    }
}

// SAFETY: true is returned only if `try_read`, `enter_exclusive` or a wait without an error has
// acquired the lock, as `RawRwLock` does.
unsafe impl lock_api::RawRwLockTimed for RawRwLock {
    type Duration = Duration;
    type Instant = Instant;

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_shared_for(&self, timeout: Duration) -> bool {
        taking(self, Way::Shared).taken_if(
            self.try_read().is_ok() || self.lock_shared_until(Deadline::after(timeout)).is_ok(),
        )
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_shared_until(&self, timeout: Instant) -> bool {
        taking(self, Way::Shared)
            .taken_if(self.try_read().is_ok() || self.lock_shared_until(at(timeout)).is_ok())
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_exclusive_for(&self, timeout: Duration) -> bool {
        taking(self, Way::Exclusive).taken_if(
            self.enter_exclusive(0) || self.lock_exclusive_until(Deadline::after(timeout)).is_ok(),
        )
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_exclusive_until(&self, timeout: Instant) -> bool {
        taking(self, Way::Exclusive)
            .taken_if(self.enter_exclusive(0) || self.lock_exclusive_until(at(timeout)).is_ok())
    }
}

// SAFETY: a thread that may be a reader already still enters only while no writer holds the lock:
// `Right::Holder` passes waiters, but no writer.
unsafe impl lock_api::RawRwLockRecursive for RawRwLock {
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn lock_shared_recursive(&self) {
        let taking = taking(self, Way::Shared);
        taking
            .lock(|| self.try_enter_shared(Right::Holder).ok(), || self.take_shared(Right::Holder));
        taking.taken();
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_shared_recursive(&self) -> bool {
        taking(self, Way::Shared).taken_if(self.try_enter_shared(Right::Holder).is_ok())
    }
}

// SAFETY: true is returned only if the wait has acquired the lock, as `lock_shared_recursive` does.
unsafe impl lock_api::RawRwLockRecursiveTimed for RawRwLock {
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_shared_recursive_for(&self, timeout: Duration) -> bool {
        taking(self, Way::Shared)
            .taken_if(self.read_recursive(0, Some(&Deadline::after(timeout))).is_ok())
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_shared_recursive_until(&self, timeout: Instant) -> bool {
        taking(self, Way::Shared).taken_if(self.read_recursive(0, Some(&at(timeout))).is_ok())
    }
}

// SAFETY: `UPGRADABLE` is one bit. A read-modify-write sets it where it is not set and no writer
// holds the lock; readers may hold it. `upgrade` goes on to writing with `UPGRADABLE` held, once no
// reader is left. It cannot fail: the errors of a wait are a deadline, and a nonzero number of the
// caller.
unsafe impl lock_api::RawRwLockUpgrade for RawRwLock {
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn lock_upgradable(&self) {
        let taking = taking(self, Way::Upgradable);
        taking.lock(
            || self.enter_upgradable().then_some(()),
            || {
                // Cannot fail without a deadline.
                let _ = self.acquire_upgradable(None);
            },
        );
        taking.taken();
    }

    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_upgradable(&self) -> bool {
        taking(self, Way::Upgradable).taken_if(self.enter_upgradable())
    }

    #[inline]
    unsafe fn unlock_upgradable(&self) {
        deadlock::give_back(self, Way::Upgradable);
        self.release_upgradable();
    }

    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    unsafe fn upgrade(&self) {
        let taking = taking(self, Way::Upgrade);
        taking.lock(
            || self.try_become_writer(0).then_some(()),
            || {
                // Cannot fail without a deadline.
                let _ = self.become_writer(0, None);
            },
        );
        taking.taken();
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    unsafe fn try_upgrade(&self) -> bool {
        taking(self, Way::Upgrade).taken_if(self.try_become_writer(0))
    }
}

// SAFETY: it releases the upgradable lock as `unlock_upgradable` does, to a waiter if there is one.
unsafe impl lock_api::RawRwLockUpgradeFair for RawRwLock {
    unsafe fn unlock_upgradable_fair(&self) {
        deadlock::give_back(self, Way::Upgradable);
        self.release_fairly(Release::Upgradable);
    }
}

// SAFETY: the step that gives up the upgradable lock counts the caller as a reader, and the step
// that gives up writing sets `UPGRADABLE`. So no writer can come between.
unsafe impl lock_api::RawRwLockUpgradeDowngrade for RawRwLock {
    unsafe fn downgrade_upgradable(&self) {
        deadlock::weaken(self, Way::Upgradable, Way::Shared);
        self.release_upgradable_to(Release::UpgradableToReader);
    }

    unsafe fn downgrade_to_upgradable(&self) {
        deadlock::weaken(self, Way::Exclusive, Way::Upgradable);
        self.release_exclusive_to(Release::WriterToUpgradable);
    }
}

// SAFETY: true is returned only if a step or a wait without an error has acquired the upgradable
// lock, or upgraded it to writing. After false the caller still holds what it held.
unsafe impl lock_api::RawRwLockUpgradeTimed for RawRwLock {
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_upgradable_for(&self, timeout: Duration) -> bool {
        taking(self, Way::Upgradable)
            .taken_if(self.read_upgradably(Some(&Deadline::after(timeout))).is_ok())
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_upgradable_until(&self, timeout: Instant) -> bool {
        taking(self, Way::Upgradable)
            .taken_if(self.enter_upgradable() || self.read_upgradably(Some(&at(timeout))).is_ok())
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    unsafe fn try_upgrade_for(&self, timeout: Duration) -> bool {
        taking(self, Way::Upgrade)
            .taken_if(self.become_writer(0, Some(&Deadline::after(timeout))).is_ok())
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    unsafe fn try_upgrade_until(&self, timeout: Instant) -> bool {
        taking(self, Way::Upgrade).taken_if(self.become_writer(0, Some(&at(timeout))).is_ok())
    }
}
