//! The condition variable: no thundering herd, order of arrival, any flavour of mutex.
//!
//! | file | for |
//! |------|-----|
//! | `word.rs` | the sixteen bytes; where a condvar's waiters are |
//! | `private.rs` | private: waiters sit in the waiter table, later in their mutex's queue there |
//! | `priority.rs` | private, with a priority-inheriting mutex: waiters sleep in the kernel |
//! | `counted.rs` | how those sleep there, and how they are signalled |
//! | `shared.rs` | process-shared: waiters sleep in the kernel |
//! | `robust.rs` | process-shared, with a robust mutex |
//! | `api.rs` | parking_lot's interface |

#[cfg(not(loom))]
mod api;
#[cfg_attr(loom, expect(dead_code, reason = "a model has no priorities"))]
pub(crate) mod counted;
#[cfg(all(test, not(loom)))]
mod counted_tests;
#[cfg(not(loom))]
mod priority;
mod private;
#[cfg(not(loom))]
mod robust;
mod shared;
mod word;
#[cfg(all(test, not(loom)))]
mod wraps;

#[cfg(not(loom))]
pub use api::{Condvar, WaitTimeoutResult};
pub(crate) use word::Waited;
pub use word::{RawCondvar, Wakeup};

#[cfg(not(loom))]
use super::interrupter::Interrupter;
use super::mutex::after_wait::Stands;
use super::{LockError, RawPosixMutex};
use crate::park::Until;
use crate::record;
use crate::sys::clock::Deadline;
use word::BY_PRIORITY;
#[cfg(not(loom))]
use word::KEPT;

impl RawCondvar {
    /// Unlocks the mutex, waits for a signal, and locks the mutex again. From the unlock on, a
    /// signal finds the caller. The wait may also end spuriously, so check your condition again.
    /// Blocks. (POSIX: `pthread_cond_wait` and, with a deadline on either clock,
    /// `pthread_cond_clockwait`.)
    ///
    /// One level of a recursive mutex is unlocked. If the caller holds more levels, the mutex stays
    /// held, and only threads that do not need it can signal.
    ///
    /// # Errors
    /// With [`TimedOut`](LockError::TimedOut), [`NotOwner`](LockError::NotOwner) and
    /// [`Invalid`](LockError::Invalid), the mutex is as it was before the call. With any other
    /// error, which only a priority-inheriting mutex returns, **the caller does not hold it**: it
    /// could not be locked again. ([`PiCondvar`](crate::PiCondvar) expresses the difference in its
    /// types.)
    ///
    /// [`LockError::TimedOut`] if the deadline passed and no signal was consumed;
    /// [`LockError::NotOwner`] if the mutex has an owner and that is not the caller;
    /// [`LockError::Invalid`] if threads wait here with another mutex.
    ///
    /// # Safety
    /// The caller holds the mutex. All threads that wait at the same time use the same mutex.
    pub unsafe fn wait(
        &self,
        mutex: &RawPosixMutex,
        deadline: Option<&Deadline>,
    ) -> Result<(), LockError> {
        // SAFETY: forwards this function's own contract.
        unsafe { self.wait_until(mutex, deadline.into()) }.map(|_| ())
    }

    /// [`wait`](Self::wait) that another thread can also end, with the interrupter `by`: what a
    /// cancellation point needs. The mutex is held again afterwards, and no signal was consumed. It
    /// does not end waits on a process-shared condvar.
    ///
    /// # Errors
    /// Those of [`wait`](Self::wait).
    ///
    /// # Safety
    /// As for [`wait`](Self::wait).
    #[cfg(not(loom))]
    pub(crate) unsafe fn wait_interruptible(
        &self,
        mutex: &RawPosixMutex,
        deadline: Option<&Deadline>,
        by: &Interrupter,
    ) -> Result<Wakeup, LockError> {
        if let (false, Stands::ByPriority) = (self.is_shared(), mutex.waiters_stand()) {
            return priority::wait(self, mutex, deadline, Some(by)).into_result();
        }
        // SAFETY: forwards this function's own contract.
        unsafe { self.wait_until(mutex, by.until(deadline)) }
    }

    /// Waits with a mutex of another library, which lies at `address`. Calls `unlock` to unlock it
    /// once a signal can find the caller. The caller must lock it again afterwards. For private
    /// condvars. Every signal wakes.
    ///
    /// # Errors
    /// [`LockError::TimedOut`]. [`LockError::Invalid`] if the condvar is process-shared, if threads
    /// wait here with another mutex, or if this is a signal handler that interrupted a wait;
    /// `unlock` was not called then.
    ///
    /// # Safety
    /// `unlock` may be called on this thread, once, and does not panic.
    #[cfg(not(loom))]
    pub(crate) unsafe fn wait_with(
        &self,
        address: usize,
        unlock: impl Fn(),
        deadline: Option<&Deadline>,
        by: &Interrupter,
    ) -> Result<Wakeup, LockError> {
        if self.is_shared() {
            return Err(LockError::Invalid);
        }
        match private::wait_in_table(self, address as u64 | KEPT, unlock, by.until(deadline)) {
            private::Ended::Signalled(_) => Ok(Wakeup::Signalled),
            private::Ended::TimedOut => Err(LockError::TimedOut),
            private::Ended::Interrupted => Ok(Wakeup::Interrupted),
            private::Ended::OtherMutex | private::Ended::InHandler => Err(LockError::Invalid),
        }
    }

    /// # Safety
    /// As for [`wait`](Self::wait).
    pub(crate) unsafe fn wait_until(
        &self,
        mutex: &RawPosixMutex,
        until: Until<'_>,
    ) -> Result<Wakeup, LockError> {
        // SAFETY: forwards this function's own contract.
        unsafe { self.wait_and_report(mutex, until) }.into_result()
    }

    /// [`wait`](Self::wait). Also reports whether the mutex is held afterwards.
    ///
    /// # Safety
    /// As for [`wait`](Self::wait).
    pub(in crate::lock) unsafe fn wait_and_report(
        &self,
        mutex: &RawPosixMutex,
        until: Until<'_>,
    ) -> Waited {
        if self.is_shared() {
            let ended = shared::wait(self, mutex, until.deadline);
            return Waited::clean(ended.map(|()| Wakeup::Signalled));
        }
        match mutex.waiters_stand() {
            #[cfg(not(loom))]
            Stands::ByPriority => priority::wait(self, mutex, until.deadline, None),
            _ => Waited::clean(record::waiting_with(
                self.address(),
                mutex.address(),
                until.deadline.is_some(),
                || private::wait(self, mutex, until),
                |waited| matches!(waited, Ok(Wakeup::Signalled)),
                |waited| {
                    let is_held = matches!(waited, Ok(_) | Err(LockError::TimedOut));
                    // A recursive mutex may have stayed held all the time.
                    is_held && !mutex.is_held_more_than_once() && mutex.sees_to_a_long_unlock()
                },
            )),
        }
    }

    /// Signals the waiter that has waited longest. Returns whether there was one. Does not block.
    /// (POSIX: `pthread_cond_signal`.)
    #[inline]
    pub fn notify_one(&self) -> bool {
        // Relaxed: a thread that began to wait before this call has since unlocked the mutex, which
        // publishes the store.
        self.bound_to() != 0 && self.notify(1) != 0
    }

    /// Signals all waiters. Returns how many. Does not block. (POSIX: `pthread_cond_broadcast`.)
    #[inline]
    pub fn notify_all(&self) -> usize {
        if self.bound_to() == 0 {
            return 0;
        }
        self.notify(usize::MAX)
    }

    fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    #[cold]
    #[inline(never)]
    fn notify(&self, count: usize) -> usize {
        if self.is_shared() {
            return shared::notify(self, count);
        }
        loop {
            let bound_to = self.bound_to();
            if bound_to == 0 {
                return 0;
            }
            #[cfg(not(loom))]
            if bound_to & BY_PRIORITY != 0 {
                return priority::notify(self, count);
            }
            record::signalling(self.address());
            // `None` means that the waiters, or their mutex, have changed since.
            if let Some(signalled) = private::notify(self, bound_to, count) {
                return signalled;
            }
        }
    }

    /// Makes sure that no thread uses the condvar any longer. A private one without waiters needs
    /// nothing. For a process-shared one, blocks until all signalled waiters have left. (POSIX:
    /// `pthread_cond_destroy`.)
    ///
    /// # Errors
    /// [`LockError::Busy`] if threads wait on a private one.
    #[cfg(not(loom))]
    pub fn destroy(&self) -> Result<(), LockError> {
        if self.is_shared() {
            shared::wait_until_left(self);
            return Ok(());
        }
        let bound_to = self.bound_to();
        if bound_to != 0 && bound_to & BY_PRIORITY == 0 && !private::unbind_if_empty(self) {
            return Err(LockError::Busy);
        }
        Ok(())
    }
}
