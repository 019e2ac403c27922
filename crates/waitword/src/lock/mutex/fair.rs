//! The fair mutex: each unlock hands it to the thread that has waited longest.
//!
//! It is a wait-wake mutex (`wait_wake.rs`): a thread that finds it taken parks at once, so the
//! queue is the order of arrival. What differs is the unlock. It never leaves the mutex free while
//! a thread is parked, so no newcomer can take it past one.

use super::api::{Flavour, MutexOptions, RawMutex};
use crate::lock::GuardMarker;
use std::time::{Duration, Instant};

/// A mutex without data that each unlock hands over: what [`FairMutex`] stands on. Eight bytes, no
/// destructor.
///
/// ```
/// use waitword::RawFairMutex;
/// use waitword::lock_api::RawMutex as _;
///
/// let mutex = RawFairMutex::INIT;
/// mutex.lock();
/// assert!(!mutex.try_lock());
/// // SAFETY: locked just above.
/// unsafe { mutex.unlock() };
/// ```
#[repr(transparent)]
#[derive(Debug)]
pub struct RawFairMutex(RawMutex);

impl RawFairMutex {
    const fn new() -> Self {
        Self(MutexOptions::new().flavour(Flavour::WaitWake).build_raw())
    }
}

impl Default for RawFairMutex {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: a lock that returns has changed the word from free to LOCKED, or was handed it by the
// thread that held it, and no other does before the unlock: the mutex has neither an owner that may
// come in again nor a lock that fails.
unsafe impl lock_api::RawMutex for RawFairMutex {
    // A constant is what the trait asks for; each use of it makes a new mutex.
    #[allow(
        clippy::declare_interior_mutable_const,
        reason = "the trait's constant"
    )]
    const INIT: Self = Self::new();

    // Sound either way, as for `RawMutex`.
    type GuardMarker = GuardMarker;

    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn lock(&self) {
        self.0.lock();
    }

    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock(&self) -> bool {
        self.0.try_lock()
    }

    #[inline]
    unsafe fn unlock(&self) {
        // SAFETY: forwards the trait's contract: the caller holds it.
        unsafe { self.0.hand_over() };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}

// SAFETY: `unlock_fair` is `unlock`. `bump` unlocks so and locks, or does nothing: it returns with
// the lock held.
unsafe impl lock_api::RawMutexFair for RawFairMutex {
    #[inline]
    unsafe fn unlock_fair(&self) {
        // SAFETY: forwards the trait's contract: the caller holds it.
        unsafe { lock_api::RawMutex::unlock(self) };
    }

    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    unsafe fn bump(&self) {
        // SAFETY: forwards the trait's contract: the caller holds it.
        unsafe { self.0.bump() };
    }
}

// SAFETY: true is returned only with the lock taken, as by `lock`.
unsafe impl lock_api::RawMutexTimed for RawFairMutex {
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_for(&self, timeout: Duration) -> bool {
        self.0.try_lock_for(timeout)
    }

    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_until(&self, timeout: Instant) -> bool {
        self.0.try_lock_until(timeout)
    }
}

/// A mutex that goes to the thread that has waited longest, with each unlock.
///
/// A thread that unlocks and locks again stands behind all that wait. That costs a wake-up with
/// each unlock that finds a waiter, during which no thread runs in the section: use it where the
/// order matters more than the speed. The interface is that of [`Mutex`](crate::Mutex), but no
/// [`Condvar`](crate::Condvar) works with it. Its [`lock`](lock_api::Mutex::lock) blocks; a panic
/// does not poison it. Real-time threads that wait go first, by priority.
///
/// ```
/// use waitword::FairMutex;
///
/// static TURNS: FairMutex<Vec<usize>> = FairMutex::new(Vec::new());
///
/// std::thread::scope(|threads| {
///     for thread in 0..4 {
///         threads.spawn(move || TURNS.lock().push(thread));
///     }
/// });
/// assert_eq!(TURNS.lock().len(), 4);
/// ```
///
/// Source: `parking_lot::FairMutex`.
pub type FairMutex<T> = lock_api::Mutex<RawFairMutex, T>;

/// Holds a [`FairMutex`] until it is dropped.
pub type FairMutexGuard<'a, T> = lock_api::MutexGuard<'a, RawFairMutex, T>;

/// Holds a [`FairMutex`] for a part of what it protects.
pub type MappedFairMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawFairMutex, T>;

/// A [`FairMutex`] in a constant: parking_lot's name for [`FairMutex::new`](lock_api::Mutex::new).
pub const fn const_fair_mutex<T>(value: T) -> FairMutex<T> {
    FairMutex::from_raw(RawFairMutex::new(), value)
}
