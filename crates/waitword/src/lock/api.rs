//! The mutex under `lock_api`'s names, so that it is a drop-in for parking_lot's types.

use super::mutex::RawMutex;
use crate::sys::clock::Deadline;
use core::num::NonZeroUsize;
use core::time::Duration;
use std::time::Instant;

// SAFETY: between a lock that succeeds and the unlock, no other lock does: a second one by the holder of a recursive
// mutex, which `lock_api` would give a second exclusive reference, is refused here.
unsafe impl lock_api::RawMutex for RawMutex {
    const INIT: Self = Self::new();

    // A guard stays with its thread: kinds with an owner need that.
    type GuardMarker = lock_api::GuardNoSend;

    #[inline]
    fn lock(&self) {
        if let Err(seen) = self.try_fast() {
            self.lock_once(seen);
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.try_fast().is_ok() || self.try_lock_once()
    }

    #[inline]
    unsafe fn unlock(&self) {
        // SAFETY: the caller's promise.
        unsafe { Self::unlock(self) };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        Self::is_locked(self)
    }
}

// SAFETY: as above; a fair unlock is an unlock.
unsafe impl lock_api::RawMutexFair for RawMutex {
    #[inline]
    unsafe fn unlock_fair(&self) {
        // SAFETY: the caller's promise.
        unsafe { Self::unlock_fair(self) };
    }

    #[inline]
    unsafe fn bump(&self) {
        // SAFETY: the caller's promise.
        unsafe { Self::bump(self) };
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawMutexTimed for RawMutex {
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    fn try_lock_for(&self, timeout: Duration) -> bool {
        // Most often it is free, and then the clock is not asked.
        self.try_fast().is_ok() || self.lock_once_until(Deadline::after(timeout))
    }

    #[inline]
    fn try_lock_until(&self, timeout: Instant) -> bool {
        self.try_fast().is_ok() || self.lock_once_until(Deadline::from(timeout))
    }
}

/// Tells threads apart, for [`ReentrantMutex`].
#[derive(Debug)]
pub struct RawThreadId;

// SAFETY: the address of a thread-local variable is not that of any other living thread's.
unsafe impl lock_api::GetThreadId for RawThreadId {
    const INIT: Self = Self;

    fn nonzero_thread_id(&self) -> NonZeroUsize {
        thread_local! {
            static HERE: u8 = const { 0 };
        }
        HERE.with(|here| NonZeroUsize::MIN.saturating_add(core::ptr::from_ref(here).addr() - 1))
    }
}

/// A mutual-exclusion lock that chooses for itself how to wait.
///
/// The interface is `lock_api`'s, and so parking_lot's: `lock`, `try_lock`, `try_lock_for`, `try_lock_until`, fair
/// unlocks, mapped guards; no poisoning. Other [flavours](crate::Flavour): [`MutexOptions`](crate::MutexOptions).
///
/// ```
/// use std::sync::Arc;
/// use waitword::Mutex;
///
/// let total = Arc::new(Mutex::new(0));
/// let threads: Vec<_> = (0..4)
///     .map(|_| {
///         let total = total.clone();
///         std::thread::spawn(move || *total.lock() += 1)
///     })
///     .collect();
/// threads.into_iter().for_each(|thread| thread.join().unwrap());
/// assert_eq!(*total.lock(), 4);
/// ```
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;

/// Holds a [`Mutex`] until it is dropped.
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;

/// Holds a [`Mutex`] for a part of what it protects.
pub type MappedMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawMutex, T>;

/// A mutex that its holder may lock again; it gives shared access only.
///
/// ```
/// use std::cell::Cell;
/// use waitword::ReentrantMutex;
///
/// let depth = ReentrantMutex::new(Cell::new(0));
/// let outer = depth.lock();
/// depth.lock().set(1);
/// assert_eq!(outer.get(), 1);
/// ```
pub type ReentrantMutex<T> = lock_api::ReentrantMutex<RawMutex, RawThreadId, T>;

/// Holds a [`ReentrantMutex`] until it is dropped.
pub type ReentrantMutexGuard<'a, T> = lock_api::ReentrantMutexGuard<'a, RawMutex, RawThreadId, T>;

/// Holds a [`ReentrantMutex`] for a part of what it protects.
pub type MappedReentrantMutexGuard<'a, T> =
    lock_api::MappedReentrantMutexGuard<'a, RawMutex, RawThreadId, T>;

/// A [`Mutex`] in a constant: parking_lot's name for [`Mutex::new`](lock_api::Mutex::new).
pub const fn const_mutex<T>(value: T) -> Mutex<T> {
    Mutex::from_raw(RawMutex::new(), value)
}

impl super::MutexOptions {
    /// Such a mutex around a value. One that is [error-checking](super::Kind::ErrorChecking) or [priority-inheriting](super::Flavour::PriorityInheriting)
    /// panics where it would otherwise wait for itself.
    ///
    /// # Panics
    /// For the recursive kind: to lock twice would give two exclusive references. That is [`ReentrantMutex`].
    pub const fn build<T>(self, value: T) -> Mutex<T> {
        assert!(
            !self.is_recursive(),
            "a recursive Mutex would give two exclusive references: use ReentrantMutex"
        );
        Mutex::from_raw(self.build_raw(), value)
    }
}
