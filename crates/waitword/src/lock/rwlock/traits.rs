//! The lock as `lock_api` and programs that use `parking_lot` know it.

use super::state::{Release, Right, WRITER};
use super::{Preference, RawRwLock};
use crate::deadlock::{self, LockKind, Taking, Way};
use crate::futex::Scope;
use crate::lock::GuardMarker;
use crate::sys::clock::Deadline;
use std::time::{Duration, Instant};

/// A lock for many readers or one writer, and the data that it guards: `parking_lot`'s interface, on [`RawRwLock`].
///
/// It prefers readers, and no writer starves ([`Preference`](crate::Preference)); so `read` may be called again by
/// a thread that reads. A lock that prefers writers, or lies in shared memory: [`RwLockOptions`].
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

/// What [`RwLock`] to make.
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
    /// For a private lock that prefers readers.
    pub const fn new() -> Self {
        Self {
            preference: Preference::Reader,
            scope: Scope::Private,
        }
    }

    /// Which class goes first.
    pub const fn preference(self, preference: Preference) -> Self {
        Self { preference, ..self }
    }

    /// Whether threads of other processes, in whose memory it lies too, lock it.
    pub const fn scope(self, scope: Scope) -> Self {
        Self { scope, ..self }
    }

    /// Such a lock, free, without data.
    pub const fn build_raw(self) -> RawRwLock {
        RawRwLock::with(self.preference, self.scope)
    }

    /// Such a lock, free, around a value.
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

/// The calling thread is about to take it so.
#[inline(always)]
#[cfg_attr(feature = "deadlock_detection", track_caller)]
fn taking(lock: &RawRwLock, way: Way) -> Taking {
    Taking::of(lock, LockKind::RwLock, way)
}

// SAFETY: a hold begins with a read-modify-write that finds the word, or the slots, without holds
// that exclude it (`state.rs`, `slots.rs`, and the models under loom), or is handed over by a
// release that has left such a word. `lock_shared` tries again until it has one. `lock_exclusive`
// cannot fail: the errors of a wait are a deadline, and a number of the caller that is not 0.
unsafe impl lock_api::RawRwLock for RawRwLock {
    const INIT: Self = Self::new();

    // Sound either way: a writer says no owner here, and a reader's slot is found by any thread
    // (`slots.rs`, invariant 2).
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
                // Without a deadline and a number for the caller nothing can go wrong.
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

// SAFETY: each gives back one hold of its kind, exactly as `RawRwLock`'s unlocks do, to a waiter if
// there is one.
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

// SAFETY: the step that gives up writing counts the caller as a reader, so no writer comes between.
unsafe impl lock_api::RawRwLockDowngrade for RawRwLock {
    unsafe fn downgrade(&self) {
        deadlock::weaken(self, Way::Exclusive, Way::Shared);
        self.release_exclusive_to(Release::WriterToReader);
    }
}

// SAFETY: true is returned only if `try_read`, `enter_exclusive` or a wait without an error has
// taken the lock as `RawRwLock` does.
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

// SAFETY: a reader that may be one already still comes in only while no thread writes:
// `Right::Holder` passes waiters, and no writer.
unsafe impl lock_api::RawRwLockRecursive for RawRwLock {
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn lock_shared_recursive(&self) {
        let taking = taking(self, Way::Shared);
        taking.lock(
            || self.try_enter_shared(Right::Holder).ok(),
            || self.take_shared(Right::Holder),
        );
        taking.taken();
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_shared_recursive(&self) -> bool {
        taking(self, Way::Shared).taken_if(self.try_enter_shared(Right::Holder).is_ok())
    }
}

// SAFETY: true is returned only if the wait has taken the lock, as `lock_shared_recursive` does.
unsafe impl lock_api::RawRwLockRecursiveTimed for RawRwLock {
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_shared_recursive_for(&self, timeout: Duration) -> bool {
        taking(self, Way::Shared).taken_if(
            self.read_recursive(0, Some(&Deadline::after(timeout)))
                .is_ok(),
        )
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_shared_recursive_until(&self, timeout: Instant) -> bool {
        taking(self, Way::Shared).taken_if(self.read_recursive(0, Some(&at(timeout))).is_ok())
    }
}

// SAFETY: the claim is one bit, which a read-modify-write sets where it is not set and no thread
// writes; readers may be there. `upgrade` goes on to writing with the claim in hand, once no reader
// is left, and cannot fail: the errors of a wait are a deadline, and a number of the caller that is
// not 0.
unsafe impl lock_api::RawRwLockUpgrade for RawRwLock {
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn lock_upgradable(&self) {
        let taking = taking(self, Way::Upgradable);
        taking.lock(
            || self.enter_upgradable().then_some(()),
            || {
                // Without a deadline nothing can go wrong.
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
            || self.try_take_over(0).then_some(()),
            || {
                // Without a deadline nothing can go wrong.
                let _ = self.become_writer(0, None);
            },
        );
        taking.taken();
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    unsafe fn try_upgrade(&self) -> bool {
        taking(self, Way::Upgrade).taken_if(self.try_take_over(0))
    }
}

// SAFETY: it gives the claim back as `unlock_upgradable` does, to a waiter if there is one.
unsafe impl lock_api::RawRwLockUpgradeFair for RawRwLock {
    unsafe fn unlock_upgradable_fair(&self) {
        deadlock::give_back(self, Way::Upgradable);
        self.release_fairly(Release::Claim);
    }
}

// SAFETY: the step that gives up the claim counts the caller as a reader, and the one that gives up
// writing sets the claim: so no writer comes between.
unsafe impl lock_api::RawRwLockUpgradeDowngrade for RawRwLock {
    unsafe fn downgrade_upgradable(&self) {
        deadlock::weaken(self, Way::Upgradable, Way::Shared);
        self.release_claim(Release::ClaimToReader);
    }

    unsafe fn downgrade_to_upgradable(&self) {
        deadlock::weaken(self, Way::Exclusive, Way::Upgradable);
        self.release_exclusive_to(Release::WriterToClaim);
    }
}

// SAFETY: true is returned only if a step or a wait without an error has taken the claim, or gone
// from it to writing; after false the caller still has what it had.
unsafe impl lock_api::RawRwLockUpgradeTimed for RawRwLock {
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_upgradable_for(&self, timeout: Duration) -> bool {
        taking(self, Way::Upgradable).taken_if(
            self.read_upgradably(Some(&Deadline::after(timeout)))
                .is_ok(),
        )
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_upgradable_until(&self, timeout: Instant) -> bool {
        taking(self, Way::Upgradable)
            .taken_if(self.enter_upgradable() || self.read_upgradably(Some(&at(timeout))).is_ok())
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    unsafe fn try_upgrade_for(&self, timeout: Duration) -> bool {
        taking(self, Way::Upgrade).taken_if(
            self.become_writer(0, Some(&Deadline::after(timeout)))
                .is_ok(),
        )
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    unsafe fn try_upgrade_until(&self, timeout: Instant) -> bool {
        taking(self, Way::Upgrade).taken_if(self.become_writer(0, Some(&at(timeout))).is_ok())
    }
}
