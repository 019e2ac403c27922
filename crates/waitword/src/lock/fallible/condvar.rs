//! The condition variable for mutexes whose lock may be refused.
//!
//! # No guard without its lock
//!
//! A wait takes the guard and returns it with the mutex locked. If the mutex cannot be locked again
//! (a cycle of owners that wait for each other, an owner that died), the wait returns the error and
//! no guard. So no code is left that believes it holds the lock.
//!
//! # One mutex at a time
//!
//! `bound` is the mutex of the waiting threads, and `waiters` is their number. Both change only
//! while the changing thread holds that mutex. So threads with the same mutex take turns, and a
//! thread with another mutex is refused before it waits:
//!
//! ```text
//!   thread with A (it holds A)             thread with B (it holds B)
//!   ──────────────────────────             ──────────────────────────
//!   bound: null → A     (CAS)              bound: null → B?  fails: A
//!   waiters += 1                           → OtherMutex
//!   wait: unlock A ... lock A
//!   waiters -= 1
//!   0? bound = null     (Release)          bound: null → B   (Acquire: sees waiters = 0)
//! ```
//!
//! A thread that could not lock its mutex again counts itself off, but without the mutex it must
//! not unbind. The condition variable stays bound to that mutex until a later wait with it returns.

use super::api::FallibleMutexGuard;
use super::raw::RawFallibleMutex;
use crate::lock::condvar::Waited;
use crate::lock::{LockError, RawCondvar, WaitTimeoutResult};
use crate::sys::clock::Deadline;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use core::time::Duration;

/// A condition variable for [`CheckedMutex`](crate::CheckedMutex) or [`PiMutex`](crate::PiMutex).
///
/// A wait consumes the guard and returns it with the mutex locked again. After an error there is no
/// guard, and this thread does not hold the mutex. All threads that wait at the same time must use
/// the same mutex; a wait with another one returns [`LockError::OtherMutex`] at once.
///
/// A wait may end without a signal, so check your condition again. Not for signal handlers. In a
/// child of `fork` no thread waits, but the condition variable stays bound to the mutex of the
/// parent's waiters.
pub struct FallibleCondvar<R> {
    raw: RawCondvar,
    bound: AtomicPtr<()>,
    waiters: AtomicU32,
    mutexes: PhantomData<fn(R)>,
}

impl<R: RawFallibleMutex> FallibleCondvar<R> {
    /// Creates a condition variable without waiters.
    pub const fn new() -> Self {
        Self {
            raw: RawCondvar::new(),
            bound: AtomicPtr::new(null_mut()),
            waiters: AtomicU32::new(0),
            mutexes: PhantomData,
        }
    }

    /// Wakes one waiter: the first that arrived, or for a [`PiCondvar`](crate::PiCondvar) the one
    /// of the highest priority. Returns whether there was one. Does not block.
    pub fn notify_one(&self) -> bool {
        self.raw.notify_one()
    }

    /// Wakes all waiters, each as the mutex becomes free for it; returns how many. Does not block.
    pub fn notify_all(&self) -> usize {
        self.raw.notify_all()
    }

    /// Unlocks the mutex, waits for a signal, and locks the mutex again. Blocks.
    ///
    /// # Errors
    /// The guard is gone after any error. [`LockError::OtherMutex`] if threads wait here with
    /// another mutex; the call does not wait then. For a [`PiMutex`](crate::PiMutex) also those of
    /// [`lock`](crate::FallibleMutex::lock), if the mutex could not be locked again.
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn wait<'a, T: ?Sized>(
        &self,
        guard: FallibleMutexGuard<'a, R, T>,
    ) -> Result<FallibleMutexGuard<'a, R, T>, LockError> {
        self.wait_with(guard, None).map(|(guard, _)| guard)
    }

    /// [`wait`](Self::wait), but until `deadline` at the latest: an
    /// [`Instant`](std::time::Instant), or a time on either clock.
    ///
    /// # Errors
    /// As [`wait`](Self::wait). A passed deadline is not an error.
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn wait_until<'a, T: ?Sized>(
        &self,
        guard: FallibleMutexGuard<'a, R, T>,
        deadline: impl Into<Deadline>,
    ) -> Result<(FallibleMutexGuard<'a, R, T>, WaitTimeoutResult), LockError> {
        self.wait_with(guard, Some(deadline.into()))
    }

    /// [`wait`](Self::wait), but for at most `timeout`, on the monotonic clock.
    ///
    /// # Errors
    /// As [`wait_until`](Self::wait_until).
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn wait_for<'a, T: ?Sized>(
        &self,
        guard: FallibleMutexGuard<'a, R, T>,
        timeout: Duration,
    ) -> Result<(FallibleMutexGuard<'a, R, T>, WaitTimeoutResult), LockError> {
        self.wait_with(guard, Some(Deadline::after(timeout)))
    }

    /// Waits while `condition` holds.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn wait_while<'a, T: ?Sized>(
        &self,
        mut guard: FallibleMutexGuard<'a, R, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> Result<FallibleMutexGuard<'a, R, T>, LockError> {
        while condition(&mut guard) {
            guard = self.wait(guard)?;
        }
        Ok(guard)
    }

    /// Waits while `condition` holds, until `deadline` at the latest.
    ///
    /// # Errors
    /// As [`wait_until`](Self::wait_until).
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn wait_while_until<'a, T: ?Sized>(
        &self,
        mut guard: FallibleMutexGuard<'a, R, T>,
        mut condition: impl FnMut(&mut T) -> bool,
        deadline: impl Into<Deadline>,
    ) -> Result<(FallibleMutexGuard<'a, R, T>, WaitTimeoutResult), LockError> {
        let deadline = deadline.into();
        let mut timed_out = false;
        while condition(&mut guard) {
            if timed_out {
                return Ok((guard, WaitTimeoutResult::new(true)));
            }
            let (again, timeout) = self.wait_with(guard, Some(deadline))?;
            guard = again;
            timed_out = timeout.timed_out();
        }
        Ok((guard, WaitTimeoutResult::new(false)))
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn wait_with<'a, T: ?Sized>(
        &self,
        guard: FallibleMutexGuard<'a, R, T>,
        deadline: Option<Deadline>,
    ) -> Result<(FallibleMutexGuard<'a, R, T>, WaitTimeoutResult), LockError> {
        self.bind(guard.raw())?;
        let waited = guard.while_given_back(|mutex| {
            // SAFETY: the guard, which this function owns, holds the mutex. `bind` refuses all
            // waits with another mutex until this one is over.
            unsafe { mutex.wait(&self.raw, deadline.as_ref()) }
        });
        match waited {
            Waited::Held { ended, .. } => {
                self.unbind();
                match ended {
                    Ok(_) => Ok((guard, WaitTimeoutResult::new(false))),
                    Err(LockError::TimedOut) => Ok((guard, WaitTimeoutResult::new(true))),
                    Err(error) => Err(error),
                }
            }
            Waited::NotHeld(error) => {
                // Dropping it would unlock a mutex that this thread does not hold.
                core::mem::forget(guard);
                // Relaxed: the count publishes nothing else.
                self.waiters.fetch_sub(1, Ordering::Relaxed);
                Err(error)
            }
        }
    }

    /// Counts the calling thread in. It holds this mutex.
    fn bind(&self, mutex: &R) -> Result<(), LockError> {
        let mutex: *mut () = core::ptr::from_ref(mutex).cast_mut().cast();
        // Acquire: sees that the last waiter with another mutex has counted itself off.
        let bound =
            self.bound.compare_exchange(null_mut(), mutex, Ordering::Acquire, Ordering::Relaxed);
        if bound.is_err_and(|other| other != mutex) {
            return Err(LockError::OtherMutex);
        }
        // Relaxed: the mutex orders the threads that use the same one.
        self.waiters.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Counts the calling thread off. It holds the mutex.
    fn unbind(&self) {
        // Relaxed: the mutex orders the threads that use the same one. A thread that counts itself
        // off without the mutex only lowers the number.
        if self.waiters.fetch_sub(1, Ordering::Relaxed) == 1 {
            // Release: publishes the number for a thread with another mutex.
            self.bound.store(null_mut(), Ordering::Release);
        }
    }
}

impl<R: RawFallibleMutex> Default for FallibleCondvar<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R> fmt::Debug for FallibleCondvar<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FallibleCondvar").finish_non_exhaustive()
    }
}
