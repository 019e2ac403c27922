//! Process-shared condvars with robust mutexes.
//!
//! As in `shared.rs`, but nobody is moved anywhere: on the way from the condvar to the mutex others would depend on each
//! waiter, and any of them may be killed. So a broadcast wakes all (`KEPT`), who then queue for the mutex.
//!
//! What a death leaves behind: of one who holds the mutex, the next one is told, as ever, if it comes back from a wait too. Of one
//! who waits, a signal may go with it; and it stays counted, so that signals make a system call from then on, and `destroy`
//! would wait for it for ever.

use super::shared::Sleep;
use super::{RawCondvar, WaitTimeoutResult};
use crate::lock::robust::{RawRobustMutex, RobustAccess, RobustError, RobustLocked};
use crate::sys::clock::Deadline;

impl RawCondvar {
    /// [`wait`](Self::wait) with a robust mutex, on a process-shared condvar; how the mutex was had again, and whether the
    /// deadline passed. (POSIX: `pthread_cond_wait`, `pthread_cond_clockwait` with one.) Blocks.
    ///
    /// A broadcast wakes all who wait so: there is no queue that they could be moved to without one depending on the other. Do not
    /// [`destroy`](Self::destroy) the condvar once a process has been killed that waited on it.
    ///
    /// # Errors
    /// Before the wait, which leaves the mutex as it was: [`Unsupported`](RobustError::Unsupported) if the condvar is private,
    /// [`NotOwner`](RobustError::NotOwner). After it, when the mutex cannot be had again and **is not held**:
    /// [`NotRecoverable`](RobustError::NotRecoverable); of one with priority inheritance, as [`RawRobustMutex::lock`] has it.
    ///
    /// # Safety
    /// The caller holds the mutex, or can be told that it does not; and as for
    /// [`RawRobustMutex::lock`] and [`RawRobustMutex::unlock`].
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
    /// [`RobustMutex`](crate::RobustMutex). The access says afterwards whether a holder has died
    /// meanwhile.
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
    /// As [`wait_raw_robust`](Self::wait_raw_robust). After an error that section has no access to
    /// the data any longer.
    pub fn wait_robust<'a, T: ?Sized>(
        &self,
        access: RobustAccess<'a, T>,
        deadline: Option<&Deadline>,
    ) -> Result<(RobustAccess<'a, T>, WaitTimeoutResult), RobustError> {
        access.while_unlocked(|mutex| {
            // SAFETY: the section that lends this access holds the mutex, and borrows it, so that
            // it stays, until it ends. Waits with several mutexes at once do no harm: each waiter
            // locks its own mutex, and none is moved.
            unsafe { self.wait_raw_robust(mutex, deadline) }
        })
    }
}
