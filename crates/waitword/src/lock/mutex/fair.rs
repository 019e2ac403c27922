//! The fair mutex: each unlock hands it to the thread that has waited longest.
//!
//! It is a wait-wake mutex (`wait_wake.rs`): a thread that finds it taken parks at once, so the
//! queue is in the order of arrival. Only the unlock differs. It never leaves the mutex free while
//! a thread is parked, so no newcomer can take the mutex past a parked thread.

use super::api::{Flavour, MutexOptions, RawMutex};
use crate::lock::GuardMarker;
use std::time::{Duration, Instant};

/// A mutex without data that each unlock hands off: the raw mutex of [`FairMutex`]. Eight bytes, no
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

// SAFETY: a lock that returns has changed the word from free to LOCKED, or has been handed the
// mutex by the thread that held it. No other lock returns before the unlock: the mutex has no owner
// that may lock it again, and its lock cannot fail.
unsafe impl lock_api::RawMutex for RawFairMutex {
    // The trait asks for a constant; each use of it makes a new mutex.
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait's constant")]
    const INIT: Self = Self::new();

    // Either marker is sound, as for `RawMutex`.
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
        // SAFETY: forwards the trait's contract: the caller holds the mutex.
        unsafe { self.0.hand_over() };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}

// SAFETY: `unlock_fair` is `unlock`. `bump` does such an unlock and locks again, or does nothing:
// either way it returns with the mutex held.
unsafe impl lock_api::RawMutexFair for RawFairMutex {
    #[inline]
    unsafe fn unlock_fair(&self) {
        // SAFETY: forwards the trait's contract: the caller holds the mutex.
        unsafe { lock_api::RawMutex::unlock(self) };
    }

    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    unsafe fn bump(&self) {
        // SAFETY: forwards the trait's contract: the caller holds the mutex.
        unsafe { self.0.bump() };
    }
}

// SAFETY: both methods return true only with the mutex taken, as by `lock`.
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

/// A mutex whose unlock hands it to the thread that has waited longest.
///
/// A thread that unlocks and locks again queues behind all waiters. So each unlock that finds a
/// waiter costs a wake-up, during which no thread runs in the critical section: use this mutex
/// where the order matters more than the speed. The interface is that of [`Mutex`](crate::Mutex),
/// but it does not work with [`Condvar`](crate::Condvar). [`lock`](lock_api::Mutex::lock) blocks; a
/// panic does not poison the mutex. Waiting real-time threads are served first, by priority.
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

/// Holds a [`FairMutex`] and gives access to a part of its data.
pub type MappedFairMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawFairMutex, T>;

/// Creates a [`FairMutex`] in a constant: parking_lot's name for
/// [`FairMutex::new`](lock_api::Mutex::new).
pub const fn const_fair_mutex<T>(value: T) -> FairMutex<T> {
    FairMutex::from_raw(RawFairMutex::new(), value)
}
