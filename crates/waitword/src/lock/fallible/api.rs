//! A mutex whose lock may be refused, with its data.

use super::raw::{RawCheckedMutex, RawFallibleMutex, RawPiMutex};
use crate::deadlock::{self, Taking, Way};
use crate::futex::Scope;
use crate::lock::condvar::Waited;
use crate::lock::{LockError, MutexOptions};
use crate::sys::clock::Deadline;
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::time::Duration;

/// A mutex whose `lock` returns an error instead of a guard if it cannot be locked: a
/// [`CheckedMutex`](crate::CheckedMutex) or a [`PiMutex`](crate::PiMutex).
///
/// A panic does not poison it: the guard unlocks. Not for signal handlers. After `fork`, the
/// child's copy is held if any thread of the parent held it. The child cannot unlock it, since its
/// thread is another one.
pub struct FallibleMutex<R, T: ?Sized> {
    raw: R,
    value: UnsafeCell<T>,
}

// SAFETY: sending the mutex sends the value, which `T: Send` allows, and the raw lock, which `R:
// Send` allows. No guard borrows a mutex that is sent.
unsafe impl<R: Send, T: ?Sized + Send> Send for FallibleMutex<R, T> {}
// SAFETY: a shared mutex lends the value exclusively to one thread after another, which `T: Send`
// allows. The raw lock is shared, which `R: Sync` allows.
unsafe impl<R: Sync, T: ?Sized + Send> Sync for FallibleMutex<R, T> {}

impl<R: RawFallibleMutex, T> FallibleMutex<R, T> {
    /// Creates a free, private mutex around a value.
    #[inline]
    pub const fn new(value: T) -> Self {
        Self::from_raw(R::INIT, value)
    }

    pub(in crate::lock) const fn from_raw(raw: R, value: T) -> Self {
        Self { raw, value: UnsafeCell::new(value) }
    }

    /// Takes the value out.
    #[inline]
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T> FallibleMutex<RawPiMutex, T> {
    /// Creates a free mutex for the threads of this process, or of all processes that map its
    /// memory.
    pub const fn with_scope(value: T, scope: Scope) -> Self {
        Self::from_raw(RawPiMutex::with_scope(scope), value)
    }
}

impl MutexOptions {
    /// Creates a free error-checking mutex with these options around a value.
    pub const fn build_checked<T>(self, value: T) -> FallibleMutex<RawCheckedMutex, T> {
        FallibleMutex::from_raw(RawCheckedMutex::with(self.posix()), value)
    }
}

impl<R: RawFallibleMutex, T: ?Sized> FallibleMutex<R, T> {
    /// Locks the mutex, waiting as long as necessary. Blocks.
    ///
    /// # Errors
    /// [`LockError::Deadlock`] if the calling thread holds it. For a [`PiMutex`](crate::PiMutex)
    /// also: `Deadlock` if waiting would close a cycle of owners;
    /// [`OwnerDied`](LockError::OwnerDied); [`OutOfMemory`](LockError::OutOfMemory),
    /// [`Unsupported`](LockError::Unsupported) and [`Kernel`](LockError::Kernel) if the kernel
    /// refuses.
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn lock(&self) -> Result<FallibleMutexGuard<'_, R, T>, LockError> {
        let taking = self.taking();
        let locked = taking.lock(|| self.raw.try_lock().ok().map(Ok), || self.raw.lock(None));
        self.guard(taking, locked)
    }

    /// Locks the mutex if that needs no waiting. Does not block.
    ///
    /// # Errors
    /// [`LockError::Busy`] if a thread holds it, even if that is the calling one. Others as
    /// [`lock`](Self::lock).
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn try_lock(&self) -> Result<FallibleMutexGuard<'_, R, T>, LockError> {
        let taking = self.taking();
        self.guard(taking, self.raw.try_lock())
    }

    /// Locks the mutex, waiting until `deadline` at the latest: an [`Instant`](std::time::Instant),
    /// or a time on either clock. A free mutex is locked whatever the deadline.
    ///
    /// # Errors
    /// [`LockError::TimedOut`], and those of [`lock`](Self::lock).
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn lock_until(
        &self,
        deadline: impl Into<Deadline>,
    ) -> Result<FallibleMutexGuard<'_, R, T>, LockError> {
        let taking = self.taking();
        self.guard(taking, self.raw.lock(Some(&deadline.into())))
    }

    /// Locks the mutex, waiting for at most `timeout`, on the monotonic clock.
    ///
    /// # Errors
    /// As [`lock_until`](Self::lock_until).
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn lock_for(&self, timeout: Duration) -> Result<FallibleMutexGuard<'_, R, T>, LockError> {
        self.lock_until(Deadline::after(timeout))
    }

    /// Whether the mutex was held at the time of the call.
    #[inline]
    pub fn is_locked(&self) -> bool {
        self.raw.is_locked()
    }

    /// The value. No lock is needed: no other thread can reach it.
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    #[inline]
    fn guard(
        &self,
        taking: Taking,
        locked: Result<(), LockError>,
    ) -> Result<FallibleMutexGuard<'_, R, T>, LockError> {
        taking.taken_if(locked.is_ok());
        locked.map(|()| FallibleMutexGuard { mutex: self, not_send: PhantomData })
    }

    #[inline(always)]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn taking(&self) -> Taking {
        Taking::of(&self.raw, R::KIND, Way::Exclusive)
    }
}

impl<R: RawFallibleMutex, T: Default> Default for FallibleMutex<R, T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<R: RawFallibleMutex, T> From<T> for FallibleMutex<R, T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<R: RawFallibleMutex, T: ?Sized + fmt::Debug> fmt::Debug for FallibleMutex<R, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut mutex = f.debug_struct("FallibleMutex");
        match self.try_lock() {
            Ok(guard) => mutex.field("data", &&*guard),
            Err(error) => mutex.field("data", &format_args!("<{error}>")),
        };
        mutex.finish()
    }
}

/// Holds a [`FallibleMutex`] until it is dropped.
///
/// In a forked child, dropping the copy of a guard does nothing: the parent's thread holds the
/// mutex.
#[must_use = "the mutex is unlocked when the guard is dropped"]
pub struct FallibleMutexGuard<'a, R: RawFallibleMutex, T: ?Sized> {
    mutex: &'a FallibleMutex<R, T>,
    /// Only the thread that locked it may unlock it.
    not_send: PhantomData<*const ()>,
}

// SAFETY: a shared guard lends out the value as shared, which `T: Sync` allows. It also leads to
// its mutex, which is thereby shared: `T: Send` and `R: Sync` allow that.
unsafe impl<R, T> Sync for FallibleMutexGuard<'_, R, T>
where
    R: RawFallibleMutex + Sync,
    T: ?Sized + Send + Sync,
{
}

impl<'a, R: RawFallibleMutex, T: ?Sized> FallibleMutexGuard<'a, R, T> {
    /// Returns the mutex that the guard holds.
    pub fn mutex(guard: &Self) -> &'a FallibleMutex<R, T> {
        guard.mutex
    }

    /// Calls `wait`, which unlocks the mutex and then locks it again or fails to.
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub(super) fn while_given_back(&self, wait: impl FnOnce(&R) -> Waited) -> Waited {
        let mutex = self.mutex;
        deadlock::give_back(&mutex.raw, Way::Exclusive);
        let taking = mutex.taking();
        let waited = taking.wait(|| wait(&mutex.raw));
        taking.taken_if(matches!(waited, Waited::Held { .. }));
        waited
    }

    /// The mutex without its data. The guard still holds it.
    pub(super) fn raw(&self) -> &'a R {
        &self.mutex.raw
    }
}

impl<R: RawFallibleMutex, T: ?Sized> Deref for FallibleMutexGuard<'_, R, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this thread holds the mutex until the guard is dropped, and a mutable borrow of
        // the value borrows the guard.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<R: RawFallibleMutex, T: ?Sized> DerefMut for FallibleMutexGuard<'_, R, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread holds the mutex until the guard is dropped, and has no other borrow
        // of the guard.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<R: RawFallibleMutex, T: ?Sized> Drop for FallibleMutexGuard<'_, R, T> {
    #[inline]
    fn drop(&mut self) {
        deadlock::give_back(&self.mutex.raw, Way::Exclusive);
        // SAFETY: `guard` creates a guard only for a lock that this thread has taken. The guard is
        // not `Send`, so this is that thread. Only this unlocks, once; a wait that loses the lock
        // forgets its guard.
        unsafe { self.mutex.raw.unlock() };
    }
}

impl<R: RawFallibleMutex, T: ?Sized + fmt::Debug> fmt::Debug for FallibleMutexGuard<'_, R, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<R: RawFallibleMutex, T: ?Sized + fmt::Display> fmt::Display for FallibleMutexGuard<'_, R, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
