//! The robust mutex with its data.
//!
//! While it is locked, the holder's list leads to it, and the kernel and the thread's next lock write through that. So
//! it must not move or go while it is locked, and a guard may be forgotten. Hence `Pin`: what is pinned stays until
//! it is dropped, and our `drop` takes it out of the list. (It cannot take it out of another thread's list; it
//! ends the process then, which is no error that a program can go on from.)

use super::error::{RobustError, RobustLocked};
use super::raw::{RawRobustMutex, RobustKind, RobustProtocol};
use crate::sys::clock::Deadline;
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::{PhantomData, PhantomPinned};
use core::ops::{Deref, DerefMut};
use core::pin::Pin;
use core::time::Duration;

/// A mutex whose holder may die: its thread may end, or its process be killed, and the next to lock it is told.
///
/// It works the same between threads and between processes that map its memory. What it protects must then be
/// plain data without addresses. Nothing is poisoned by a panic: the guard unlocks, and that is not a death.
///
/// A mutex is locked where it is pinned: a `static` with [`Pin::static_ref`], a local with [`pin!`](core::pin::pin), on
/// the heap with `Box::pin`, in shared memory with [`at`](Self::at).
///
/// ```
/// use std::pin::pin;
/// use waitword::{RobustError, RobustGuard, RobustMutex};
///
/// /// Two numbers that are equal whenever nobody holds the mutex.
/// struct Pair(u32, u32);
///
/// let pair = pin!(RobustMutex::new(Pair(1, 1)));
/// let pair = pair.into_ref();
///
/// std::thread::scope(|scope| {
///     let dies = scope.spawn(|| {
///         let mut guard = pair.lock().unwrap();
///         guard.0 = 2;
///         // The thread ends in the middle of its work.
///         std::mem::forget(guard);
///     });
///     dies.join().unwrap();
/// });
///
/// let mut guard = pair.lock()?;
/// assert!(RobustGuard::owner_died(&guard));
/// guard.1 = guard.0;
/// // Without this, it could never be locked again once the guard is gone.
/// RobustGuard::mark_consistent(&mut guard);
/// drop(guard);
///
/// assert!(!RobustGuard::owner_died(&pair.lock()?));
/// # Ok::<(), RobustError>(())
/// ```
///
/// Robust mutexes are POSIX's (`pthread_mutexattr_setrobust`); the kernel's part is described in its
/// `Documentation/locking/robust-futexes.rst`. What is guaranteed, and what is not: [`RawRobustMutex`].
#[repr(C)]
pub struct RobustMutex<T: ?Sized> {
    raw: RawRobustMutex,
    pinned: PhantomPinned,
    value: UnsafeCell<T>,
}

// SAFETY: the value goes where the mutex goes.
unsafe impl<T: ?Sized + Send> Send for RobustMutex<T> {}
// SAFETY: one thread at a time has the value.
unsafe impl<T: ?Sized + Send> Sync for RobustMutex<T> {}

impl<T> RobustMutex<T> {
    /// An unlocked mutex.
    pub const fn new(value: T) -> Self {
        Self::with_protocol(value, RobustProtocol::None)
    }

    /// An unlocked mutex, with or without priority inheritance.
    pub const fn with_protocol(value: T, protocol: RobustProtocol) -> Self {
        Self {
            // To lock it twice would cost nothing to notice, and is of no use.
            raw: RawRobustMutex::new(RobustKind::ErrorChecking, protocol),
            pinned: PhantomPinned,
            value: UnsafeCell::new(value),
        }
    }

    /// The mutex that lies at this address, in memory that other processes may map too.
    ///
    /// # Safety
    /// A whole mutex lies there, written from [`new`](Self::new) by one of the processes before the others look, with a
    /// value that is valid in all of them. It is never moved, and is mapped for `'a` and until no thread of
    /// this process holds it any more. Processes that write the memory otherwise are the caller's matter.
    pub unsafe fn at<'a>(address: *const Self) -> Pin<&'a Self> {
        // SAFETY: the caller's promise.
        unsafe { Pin::new_unchecked(&*address) }
    }
}

impl<T: ?Sized> RobustMutex<T> {
    /// Locks it; waits for that as long as need be. Blocks; signals do not end the wait. Not for signal handlers.
    ///
    /// # Errors
    /// [`RobustError::NotRecoverable`], [`Deadlock`](RobustError::Deadlock) if the caller holds it,
    /// [`Unsupported`](RobustError::Unsupported); with inheritance [`OutOfMemory`](RobustError::OutOfMemory),
    /// [`Kernel`](RobustError::Kernel).
    #[inline]
    pub fn lock(self: Pin<&Self>) -> Result<RobustGuard<'_, T>, RobustError> {
        // SAFETY: pinned: it stays until it is dropped, and `drop` takes it out of the list.
        self.guard(unsafe { self.raw.lock() })
    }

    /// Locks it if nobody holds it. Does not block.
    ///
    /// # Errors
    /// [`RobustError::Busy`], also if the caller holds it; those of [`lock`](Self::lock) but for `Deadlock`.
    #[inline]
    pub fn try_lock(self: Pin<&Self>) -> Result<RobustGuard<'_, T>, RobustError> {
        // SAFETY: as above.
        self.guard(unsafe { self.raw.try_lock() })
    }

    /// Locks it; waits no longer than to the deadline. A mutex that can be had without waiting is had even if the
    /// deadline has passed.
    ///
    /// # Errors
    /// [`RobustError::TimedOut`], and those of [`lock`](Self::lock).
    #[inline]
    pub fn lock_until(
        self: Pin<&Self>,
        deadline: Deadline,
    ) -> Result<RobustGuard<'_, T>, RobustError> {
        // SAFETY: as above.
        self.guard(unsafe { self.raw.lock_until(deadline) })
    }

    /// [`lock_until`](Self::lock_until) that long from now, on the monotonic clock.
    ///
    /// # Errors
    /// As there.
    pub fn lock_for(
        self: Pin<&Self>,
        patience: Duration,
    ) -> Result<RobustGuard<'_, T>, RobustError> {
        self.lock_until(Deadline::after(patience))
    }

    #[inline]
    fn guard(
        self: Pin<&Self>,
        locked: Result<RobustLocked, RobustError>,
    ) -> Result<RobustGuard<'_, T>, RobustError> {
        Ok(RobustGuard {
            owner_died: locked? == RobustLocked::OwnerDied,
            mutex: self.get_ref(),
            not_send: PhantomData,
        })
    }
}

impl<T: ?Sized> Drop for RobustMutex<T> {
    fn drop(&mut self) {
        if self.raw.is_locked() {
            self.raw.abandon();
        }
    }
}

impl<T: ?Sized> fmt::Debug for RobustMutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RobustMutex")
            .field("raw", &self.raw)
            .finish_non_exhaustive()
    }
}

/// A locked [`RobustMutex`]; unlocks it when it goes.
///
/// If a holder had died and the mutex was not [marked](Self::mark_consistent) consistent since, it can never be
/// locked again after that. (So it is if the one who repairs it panics.)
///
/// In a forked child, a guard that came along from the parent does nothing: the parent's thread holds the mutex.
#[must_use = "the mutex is unlocked when the guard goes"]
pub struct RobustGuard<'a, T: ?Sized> {
    mutex: &'a RobustMutex<T>,
    owner_died: bool,
    /// The thread that has locked it unlocks it.
    not_send: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives shared access to the value, and no more.
unsafe impl<T: ?Sized + Sync> Sync for RobustGuard<'_, T> {}

impl<T: ?Sized> RobustGuard<'_, T> {
    /// Whether a holder has died, and this is the first guard since. The value may be half changed then.
    #[inline]
    pub fn owner_died(guard: &Self) -> bool {
        guard.owner_died
    }

    /// Says that the value is whole again after a holder's death. Does nothing if there was none.
    #[inline]
    pub fn mark_consistent(guard: &mut Self) {
        let _ = guard.mutex.raw.mark_consistent();
    }
}

impl<'a, T: ?Sized> RobustGuard<'a, T> {
    /// Runs `wait`, which gives the mutex back and takes it again, or fails without it; a guard of the mutex as it was had.
    pub(in crate::lock) fn while_unlocked<R>(
        self,
        wait: impl FnOnce(&RawRobustMutex) -> Result<(RobustLocked, R), RobustError>,
    ) -> Result<(Self, R), RobustError> {
        // After an error the guard goes, and unlocks what may be held still.
        let (locked, result) = wait(&self.mutex.raw)?;
        let mut again = self;
        again.owner_died = locked == RobustLocked::OwnerDied;
        Ok((again, result))
    }
}

impl<T: ?Sized> Deref for RobustGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: locked by us as long as the guard is there.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: ?Sized> DerefMut for RobustGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed alone.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: ?Sized> Drop for RobustGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // Refused in a forked child only.
        let _ = self.mutex.raw.unlock();
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RobustGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
