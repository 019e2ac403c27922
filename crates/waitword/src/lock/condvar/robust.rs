//! Process-shared condvars with robust mutexes.
//!
//! As in `shared.rs`, except that no waiter is moved. On the way from the condvar to the mutex, the
//! moved waiters would depend on the waiter before them, and any waiter may be killed. So a
//! broadcast wakes all waiters (`KEPT`), and they queue for the mutex.
//!
//! The effects of a death: if the thread that dies holds the mutex, the next holder is notified as
//! usual, including one that returns from a wait. If it is a waiter, a signal may be lost with it.
//! It also stays counted, so every signal makes a system call from then on, and `destroy` would
//! wait for it forever.

use super::api::WaitTimeoutResult;
use super::shared::Sleep;
use super::word::RawCondvar;
use crate::lock::robust::{RawRobustMutex, RobustAccess, RobustError, RobustLocked};
use crate::sys::clock::Deadline;

impl RawCondvar {
    /// [`wait`](Self::wait) with a robust mutex, on a process-shared condvar. Returns how the mutex
    /// was locked again, and whether the deadline passed. (POSIX: `pthread_cond_wait`,
    /// `pthread_cond_clockwait` with a robust mutex.) Blocks.
    ///
    /// A broadcast wakes all of these waiters: they cannot be moved to a queue without one
    /// depending on another. Do not [`destroy`](Self::destroy) the condvar once a process that
    /// waited on it has been killed.
    ///
    /// # Errors
    /// Before the wait, with the mutex left as it was: [`Unsupported`](RobustError::Unsupported) if
    /// the condvar is private; [`NotOwner`](RobustError::NotOwner). After the wait, if the mutex
    /// cannot be locked again and **is not held**: [`NotRecoverable`](RobustError::NotRecoverable);
    /// with priority inheritance also those of [`RawRobustMutex::lock`].
    ///
    /// # Safety
    /// The caller holds the mutex, or the mutex can tell that it does not. The contracts of
    /// [`RawRobustMutex::lock`] and [`RawRobustMutex::unlock`] apply as well.
    pub unsafe fn wait_raw_robust(
        &self,
        mutex: &RawRobustMutex,
        deadline: Option<&Deadline>,
    ) -> Result<(RobustLocked, WaitTimeoutResult), RobustError> {
        if !self.is_shared() {
            return Err(RobustError::Unsupported);
        }
        let sleep = Sleep::begin(self, true);
        // SAFETY: forwards this function's own contract.
        if let Err(error) = unsafe { mutex.unlock() } {
            sleep.leave();
            return Err(error);
        }
        let timed_out = sleep.sleep(deadline);
        // SAFETY: forwards this function's own contract.
        let locked = unsafe { mutex.lock() };
        sleep.leave();
        Ok((locked?, WaitTimeoutResult::new(timed_out)))
    }

    /// [`wait_raw_robust`](Self::wait_raw_robust) from within a section of a
    /// [`RobustMutex`](crate::RobustMutex). The returned access tells whether a holder died in the
    /// meantime.
    ///
    /// ```
    /// use std::time::Duration;
    /// use waitword::{Deadline, RawCondvar, RobustError, RobustMutex, Scope};
    ///
    /// static COUNT: RobustMutex<u32> = RobustMutex::new(0);
    /// static CHANGED: RawCondvar = RawCondvar::with_scope(Scope::Shared);
    ///
    /// let other = std::thread::spawn(|| {
    ///     COUNT.with(|mut count| *count = 1)?;
    ///     CHANGED.notify_all();
    ///     Ok::<(), RobustError>(())
    /// });
    /// COUNT.with(|mut count| {
    ///     while *count == 0 {
    ///         let soon = Deadline::after(Duration::from_secs(60));
    ///         let (again, timeout) = CHANGED.wait_robust(count, Some(&soon))?;
    ///         assert!(!timeout.timed_out());
    ///         count = again;
    ///     }
    ///     Ok::<(), RobustError>(())
    /// })??;
    /// other.join().unwrap()?;
    /// # Ok::<(), RobustError>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`wait_raw_robust`](Self::wait_raw_robust). After an error, the section no longer
    /// has access to the data.
    pub fn wait_robust<'a, T: ?Sized>(
        &self,
        access: RobustAccess<'a, T>,
        deadline: Option<&Deadline>,
    ) -> Result<(RobustAccess<'a, T>, WaitTimeoutResult), RobustError> {
        access.while_unlocked(|mutex| {
            // SAFETY: the section that lends this access holds the mutex. It also borrows the
            // mutex, which therefore stays in place until the section ends. Waits with several
            // mutexes at once do no harm: each waiter locks its own mutex, and none is moved.
            unsafe { self.wait_raw_robust(mutex, deadline) }
        })
    }
}
