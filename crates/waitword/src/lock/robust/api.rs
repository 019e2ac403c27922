//! The robust mutex with its data.
//!
//! # Access by closure, not by guard
//!
//! `mem::forget` and `Box::leak` are safe, so a guard can outlive its thread in another thread's
//! hands, as a `&mut T`. The kernel sees only that the thread has ended, and gives the mutex to the
//! next one: two exclusive references. So there is no guard. [`RobustMutex::with`] lends the data
//! to a closure, for a lifetime that the closure cannot name, and unlocks when the closure has
//! returned or unwound. A thread cannot end in between, except together with its whole process, and
//! then no borrow is left.
//!
//! For the same reason the mutex needs no `Pin`, although the holder's list points to it while it
//! is locked: `with` borrows it for as long.

use super::error::{RobustError, RobustLocked};
use super::raw::{RawRobustMutex, RobustKind, RobustProtocol};
use crate::sys::clock::Deadline;
use core::cell::{Cell, UnsafeCell};
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::time::Duration;

/// A mutex whose holder's process may be killed: the next thread to lock it learns of the death.
///
/// It works between the threads of one process, and between processes that map its memory
/// ([`at`](Self::at)). In the latter case the protected data must be plain, without addresses. A
/// panic does not poison the mutex: the closure unwinds, the mutex is unlocked, and that does not
/// count as a death.
///
/// ```
/// use waitword::{RobustAccess, RobustError, RobustMutex};
///
/// /// Two numbers that are equal whenever no thread holds the mutex.
/// static PAIR: RobustMutex<(u32, u32)> = RobustMutex::new((1, 1));
///
/// let sum = PAIR.with(|mut pair| {
///     if RobustAccess::owner_died(&pair) {
///         // A process was killed between the two changes. Without a repair, no thread could
///         // ever lock the mutex again.
///         pair.1 = pair.0;
///         RobustAccess::mark_consistent(&mut pair);
///     }
///     pair.0 += 1;
///     pair.1 += 1;
///     pair.0 + pair.1
/// })?;
/// assert_eq!(sum, 4);
/// # Ok::<(), RobustError>(())
/// ```
///
/// Robust mutexes are specified by POSIX (`pthread_mutexattr_setrobust`); the kernel's part is
/// described in its `Documentation/locking/robust-futexes.rst`. For what is guaranteed and what is
/// not, see [`RawRobustMutex`].
#[repr(C)]
pub struct RobustMutex<T: ?Sized> {
    raw: RawRobustMutex,
    value: UnsafeCell<T>,
}

// SAFETY: to send the mutex is to send the value, which `T: Send` allows. No list points to a mutex
// that is being sent: `with` borrows it for as long as it is locked.
unsafe impl<T: ?Sized + Send> Send for RobustMutex<T> {}
// SAFETY: a shared mutex lends the value to one thread after another, exclusively, which is what
// `T: Send` allows.
unsafe impl<T: ?Sized + Send> Sync for RobustMutex<T> {}

impl<T> RobustMutex<T> {
    /// An unlocked mutex.
    pub const fn new(value: T) -> Self {
        Self::with_protocol(value, RobustProtocol::None)
    }

    /// An unlocked mutex, with or without priority inheritance.
    pub const fn with_protocol(value: T, protocol: RobustProtocol) -> Self {
        Self {
            // Detecting a second lock by the holder costs nothing, and a second lock could do
            // nothing else useful.
            raw: RawRobustMutex::new(RobustKind::ErrorChecking, protocol),
            value: UnsafeCell::new(value),
        }
    }

    /// The mutex at this address, in memory that other processes may map too.
    ///
    /// # Safety
    /// A whole mutex lies there, written from [`new`](Self::new) by one of the processes before the
    /// others access it, with a value that is valid in all of them. It is never moved, and is
    /// mapped for `'a`. This process maps it at this one address only. What other processes do to
    /// the memory is the caller's responsibility.
    pub unsafe fn at<'a>(address: *const Self) -> &'a Self {
        // SAFETY: forwards this function's own contract: it points to a mutex that is valid for 'a.
        unsafe { &*address }
    }

    /// Consumes the mutex and returns the value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> RobustMutex<T> {
    /// Locks the mutex, waiting as long as necessary, and calls `section` with the data. Blocks;
    /// signals do not end the wait. Not for signal handlers.
    ///
    /// If a holder has died, `section` has to [repair](RobustAccess::mark_consistent) the data. If
    /// it does not, or panics first, the mutex can never be locked again.
    ///
    /// # Errors
    /// `section` was not called. [`RobustError::NotRecoverable`];
    /// [`Deadlock`](RobustError::Deadlock) from within a section of the same mutex;
    /// [`Unsupported`](RobustError::Unsupported); with inheritance
    /// [`OutOfMemory`](RobustError::OutOfMemory), [`Kernel`](RobustError::Kernel).
    #[inline]
    pub fn with<R>(
        &self,
        section: impl FnOnce(RobustAccess<'_, T>) -> R,
    ) -> Result<R, RobustError> {
        // SAFETY: `self` is borrowed until `enter` has unlocked it again.
        self.enter(unsafe { self.raw.lock() }, section)
    }

    /// [`with`](Self::with), if the mutex is free. Does not wait for the mutex.
    ///
    /// # Errors
    /// [`RobustError::Busy`], also from within a section of the same mutex; those of
    /// [`with`](Self::with) except `Deadlock`.
    #[inline]
    pub fn try_with<R>(
        &self,
        section: impl FnOnce(RobustAccess<'_, T>) -> R,
    ) -> Result<R, RobustError> {
        // SAFETY: `self` is borrowed until `enter` has unlocked it again.
        self.enter(unsafe { self.raw.try_lock() }, section)
    }

    /// [`with`](Self::with) that waits for the mutex until `deadline` at the latest: an
    /// [`Instant`](std::time::Instant), or a time on either clock. A free mutex is locked whatever
    /// the deadline.
    ///
    /// # Errors
    /// [`RobustError::TimedOut`], and those of [`with`](Self::with).
    #[inline]
    pub fn with_until<R>(
        &self,
        deadline: impl Into<Deadline>,
        section: impl FnOnce(RobustAccess<'_, T>) -> R,
    ) -> Result<R, RobustError> {
        // SAFETY: `self` is borrowed until `enter` has unlocked it again.
        self.enter(unsafe { self.raw.lock_until(deadline.into()) }, section)
    }

    /// [`with_until`](Self::with_until) with a deadline this long from now, on the monotonic clock.
    ///
    /// # Errors
    /// As [`with_until`](Self::with_until).
    pub fn with_for<R>(
        &self,
        timeout: Duration,
        section: impl FnOnce(RobustAccess<'_, T>) -> R,
    ) -> Result<R, RobustError> {
        self.with_until(Deadline::after(timeout), section)
    }

    /// The value. The exclusive borrow makes a lock unnecessary.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Calls `section` if the mutex was locked, and unlocks it again, even if `section` panics.
    #[inline]
    fn enter<R>(
        &self,
        locked: Result<RobustLocked, RobustError>,
        section: impl FnOnce(RobustAccess<'_, T>) -> R,
    ) -> Result<R, RobustError> {
        let owner_died = locked? == RobustLocked::OwnerDied;
        let held = Held { raw: &self.raw, is_held: Cell::new(true) };
        Ok(section(RobustAccess {
            held: &held,
            value: &self.value,
            owner_died,
            not_send: PhantomData,
        }))
    }
}

impl<T: Default> Default for RobustMutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for RobustMutex<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized> fmt::Debug for RobustMutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RobustMutex").field("raw", &self.raw).finish_non_exhaustive()
    }
}

/// Unlocks when a section ends, unless a wait in it could not lock the mutex again.
struct Held<'a> {
    raw: &'a RawRobustMutex,
    is_held: Cell<bool>,
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.is_held.get() {
            // Fails only in a forked child, where the parent's thread holds the mutex.
            // SAFETY: this thread has locked the mutex: a section does not leave the thread that
            // began it.
            let _ = unsafe { self.raw.unlock() };
        }
    }
}

/// The data of a locked [`RobustMutex`], for as long as the closure that received it runs. Dropping
/// it does not unlock.
#[must_use = "what it lends cannot be reached otherwise"]
pub struct RobustAccess<'a, T: ?Sized> {
    held: &'a Held<'a>,
    value: &'a UnsafeCell<T>,
    owner_died: bool,
    /// The thread that locked the mutex also unlocks it, and releases it in waits.
    not_send: PhantomData<*const ()>,
}

// SAFETY: shared access to `Self` gives shared access to the value, which `T: Sync` allows, and to
// nothing else: it does not lead to the mutex, and the cell in `held` is used only by methods that
// consume `Self`.
unsafe impl<T: ?Sized + Sync> Sync for RobustAccess<'_, T> {}

impl<T: ?Sized> RobustAccess<'_, T> {
    /// Whether a holder has died, and this is the first section since. The value may be half
    /// changed then.
    #[inline]
    pub fn owner_died(access: &Self) -> bool {
        access.owner_died
    }

    /// Declares that the value is consistent again after a holder's death. Does nothing if there
    /// was none.
    #[inline]
    pub fn mark_consistent(access: &mut Self) {
        let _ = access.held.raw.mark_consistent();
    }

    /// Runs `wait`, which releases the mutex and locks it again, or fails without having locked it.
    /// After an error there is no access, and the section does not unlock at its end.
    pub(in crate::lock) fn while_unlocked<R>(
        self,
        wait: impl FnOnce(&RawRobustMutex) -> Result<(RobustLocked, R), RobustError>,
    ) -> Result<(Self, R), RobustError> {
        match wait(self.held.raw) {
            Ok((locked, result)) => {
                let owner_died = locked == RobustLocked::OwnerDied;
                Ok((Self { owner_died, ..self }, result))
            }
            Err(error) => {
                self.held.is_held.set(self.held.raw.is_mine());
                Err(error)
            }
        }
    }
}

impl<T: ?Sized> Deref for RobustAccess<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this thread holds the mutex while `self` exists: a wait that loses it consumes
        // `self`. There is one access per section, and the borrow of the value borrows it.
        unsafe { &*self.value.get() }
    }
}

impl<T: ?Sized> DerefMut for RobustAccess<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread holds the mutex while `self` exists: a wait that loses it consumes
        // `self`. `self`, the only access of the section, is borrowed exclusively for as long as
        // the value.
        unsafe { &mut *self.value.get() }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RobustAccess<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for RobustAccess<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
