//! The condition variable with parking_lot's interface.

use super::word::RawCondvar;
use crate::lock::{LockError, MutexGuard};
use crate::sys::clock::Deadline;
use core::time::Duration;
use std::time::Instant;

/// Whether a timed wait ended by its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    pub(in crate::lock) fn new(timed_out: bool) -> Self {
        Self(timed_out)
    }

    /// Returns whether the deadline passed. (The caller was then not signalled.)
    #[inline]
    pub fn timed_out(self) -> bool {
        self.0
    }
}

/// A condition variable. Threads wait in it, with a [`Mutex`](crate::Mutex) of any flavour, until
/// another thread changes something.
///
/// The interface is parking_lot's. Waiters are signalled in order of arrival, and a broadcast
/// causes no thundering herd: see [`RawCondvar`].
///
/// ```
/// use std::sync::Arc;
/// use waitword::{Condvar, Mutex};
///
/// let ready = Arc::new((Mutex::new(false), Condvar::new()));
/// let there = ready.clone();
/// let thread = std::thread::spawn(move || {
///     *there.0.lock() = true;
///     there.1.notify_one();
/// });
/// let mut is_ready = ready.0.lock();
/// while !*is_ready {
///     ready.1.wait(&mut is_ready);
/// }
/// # drop(is_ready);
/// thread.join().unwrap();
/// ```
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Condvar {
    raw: RawCondvar,
}

impl Condvar {
    /// Creates a condition variable without waiters.
    #[inline]
    pub const fn new() -> Self {
        Self { raw: RawCondvar::new() }
    }

    /// Wakes the thread that has waited longest. Returns whether there was one.
    #[inline]
    pub fn notify_one(&self) -> bool {
        self.raw.notify_one()
    }

    /// Wakes all waiters, each as the mutex becomes free for it. Returns how many.
    #[inline]
    pub fn notify_all(&self) -> usize {
        self.raw.notify_all()
    }

    /// Unlocks the mutex, waits to be woken, and locks it again. May return spuriously. Blocks.
    ///
    /// # Panics
    /// If threads wait here with another mutex. The guard then still holds its mutex.
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>) {
        self.wait_with(guard, None);
    }

    /// [`wait`](Self::wait), but until `timeout` at the latest.
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn wait_until<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        timeout: Instant,
    ) -> WaitTimeoutResult {
        self.wait_with(guard, Some(Deadline::from(timeout)))
    }

    /// [`wait`](Self::wait), but for at most `timeout`.
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn wait_for<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        timeout: Duration,
    ) -> WaitTimeoutResult {
        self.wait_with(guard, Some(Deadline::after(timeout)))
    }

    /// [`wait`](Self::wait), but until a deadline on either clock, if there is one.
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn wait_with<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        deadline: Option<Deadline>,
    ) -> WaitTimeoutResult {
        // SAFETY: the raw mutex is unlocked through this reference only by the wait below, which
        // locks it again before it returns.
        let mutex = unsafe { MutexGuard::mutex(guard).raw() };
        let ended = mutex.while_given_back(|mutex| {
            // SAFETY: the guard holds the mutex, and is borrowed exclusively until the wait returns
            // with the mutex held. The mutex is of a kind that can always be locked again. A wait
            // with a second mutex is refused while the caller still holds that mutex.
            unsafe { self.raw.wait(mutex, deadline.as_ref()) }
        });
        match ended {
            Ok(()) => WaitTimeoutResult(false),
            Err(LockError::TimedOut) => WaitTimeoutResult(true),
            Err(_) => panic!("{}", LockError::OtherMutex),
        }
    }

    /// Waits while `condition` holds.
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn wait_while<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) {
        while condition(guard) {
            self.wait(guard);
        }
    }

    /// Waits while `condition` holds, until `timeout` at the latest.
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn wait_while_until<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        condition: impl FnMut(&mut T) -> bool,
        timeout: Instant,
    ) -> WaitTimeoutResult {
        self.wait_while_with(guard, condition, Deadline::from(timeout))
    }

    /// Waits while `condition` holds, for at most `timeout`.
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn wait_while_for<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        condition: impl FnMut(&mut T) -> bool,
        timeout: Duration,
    ) -> WaitTimeoutResult {
        self.wait_while_with(guard, condition, Deadline::after(timeout))
    }

    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn wait_while_with<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        mut condition: impl FnMut(&mut T) -> bool,
        deadline: Deadline,
    ) -> WaitTimeoutResult {
        while condition(guard) {
            if self.wait_with(guard, Some(deadline)).timed_out() {
                return WaitTimeoutResult(condition(guard));
            }
        }
        WaitTimeoutResult(false)
    }
}
