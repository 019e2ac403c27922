//! The condition variable: no thundering herd, order of arrival, any flavour of mutex.
//!
//! | file | for |
//! |------|-----|
//! | `private.rs` | private: waiters sit in the waiter table, later in their mutex's queue there |
//! | `priority.rs` | private, with a priority-inheriting mutex: waiters sleep in the kernel |
//! | `counted.rs` | how those sleep there, and how they are signalled |
//! | `shared.rs` | process-shared: waiters sleep in the kernel |
//! | `robust.rs` | process-shared, with a robust mutex |
//! | `api.rs` | parking_lot's interface |
//!
//! # Sixteen bytes
//!
//! | offset | name | `private.rs` | `priority.rs` | `shared.rs` |
//! |--------|------|-----------|---------------|-------------|
//! | 0 | `mutex` | the waiters' mutex; 0: none | BY_PRIORITY | low half: `relay`; high: count |
//! | 8 | `sequence` | | counts signals; waiters sleep on it | the same |
//! | 12 | `traits` | | | SHARED |
//!
//! In `shared.rs`, `relay` is the word to which a broadcast moves waiters, and the high half counts
//! the waiters. All zeros is a private condvar without waiters.
//!
//! # The binding of a private condvar
//!
//! `mutex` alone tells where the waiters of a private condvar are, so that a signaller always
//! interprets the address correctly, whenever it reads it:
//!
//! | bit 0, BY_PRIORITY | bit 1 | the other bits |
//! |---|---|---|
//! | 0 | KEPT: waiters cannot be moved to the mutex's queue (`private.rs`) | the mutex |
//! | 1 | 0 | 0 |
//!
//! Without BY_PRIORITY, `mutex` is nonzero if and only if a waiter is queued in the table, and it
//! changes only under the bucket lock. The exception is a child of `fork`, where it may name a
//! mutex for which no thread waits. With BY_PRIORITY, it does not tell whether threads wait, and
//! the next thread that waits in the table overwrites it.

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
#[cfg(all(test, not(loom)))]
mod wraps;

#[cfg(not(loom))]
pub use api::{Condvar, WaitTimeoutResult};
pub(super) use counted::Slept;

#[cfg(not(loom))]
use super::interrupter::Interrupter;
use super::mutex::after_wait::Stands;
use super::{LockError, RawPosixMutex};
use crate::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::futex::Scope;
use crate::park::Until;
use crate::sys::clock::Deadline;

/// A condition variable that does not know what its mutex protects. [`Condvar`](crate::Condvar) and
/// the C API's `ww_cond_t` are built on it.
///
/// Waiters are signalled in order of arrival, except that threads under a real-time scheduling
/// policy come first, by priority. A signal or broadcast that finds the mutex held wakes no thread:
/// it moves the waiters to the mutex, whose unlocks wake them one by one. (With a
/// priority-inheriting mutex, each signal wakes a waiter, the highest priority first.)
///
/// Sixteen bytes, no destructor. All bytes zero is a private condvar without waiters. A private one
/// may be freed as soon as all waiters have been signalled: threads on their way back do not touch
/// it. A process-shared one must be [destroyed](Self::destroy) first.
///
/// Not for signal handlers. In a child of `fork` there are no waiters.
#[repr(C)]
#[derive(Debug)]
pub struct RawCondvar {
    mutex: AtomicU64,
    sequence: AtomicU32,
    traits: AtomicU32,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<RawCondvar>() == 16);

#[cfg(loom)]
const FREED: u64 = 0x_dead_dead_dead_dead;

const SHARED: u32 = 1;

/// The bits of `mutex`, see the module's table.
#[cfg_attr(loom, allow(dead_code, reason = "a model has no priorities"))]
const BY_PRIORITY: u64 = 1;
const KEPT: u64 = 2;

/// Why a wait ended, other than by its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wakeup {
    /// The caller was signalled, or woken spuriously.
    Signalled,
    /// Another thread interrupted the wait. No signal was consumed.
    Interrupted,
}

/// How a wait ended, and whether the caller holds the mutex. It always does, except possibly with a
/// priority-inheriting mutex.
#[cfg(not(loom))]
#[derive(Debug)]
pub enum Waited {
    /// The caller holds it.
    Held {
        /// A previous owner ended without unlocking it.
        owner_died: bool,
        /// Why the wait ended or did not begin.
        ended: Result<Wakeup, LockError>,
    },
    /// The mutex could not be locked again.
    NotHeld(LockError),
}

#[cfg(not(loom))]
impl Waited {
    fn clean(ended: Result<Wakeup, LockError>) -> Self {
        Self::Held {
            owner_died: false,
            ended,
        }
    }

    fn into_result(self) -> Result<Wakeup, LockError> {
        match self {
            Self::Held { ended, .. } => ended,
            Self::NotHeld(error) => Err(error),
        }
    }
}

impl RawCondvar {
    /// Creates a private condvar.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self::with_scope(Scope::Private)
    }

    /// Creates a condvar for the threads of this process, or of all processes that map its memory.
    #[cfg(not(loom))]
    pub const fn with_scope(scope: Scope) -> Self {
        let traits = match scope {
            Scope::Private => 0,
            Scope::Shared => SHARED,
        };
        Self {
            mutex: AtomicU64::new(0),
            sequence: AtomicU32::new(0),
            traits: AtomicU32::new(traits),
        }
    }

    /// The same for a model, which cannot make atomics in constants.
    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self::with_scope(Scope::Private)
    }

    /// The same for a model, which cannot make atomics in constants.
    #[cfg(loom)]
    pub(crate) fn with_scope(scope: Scope) -> Self {
        Self {
            mutex: AtomicU64::new(0),
            sequence: AtomicU32::new(0),
            traits: AtomicU32::new(match scope {
                Scope::Private => 0,
                Scope::Shared => SHARED,
            }),
        }
    }

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
        match private::stand(self, address as u64 | KEPT, unlock, by.until(deadline)) {
            private::Ended::Signalled(_) => Ok(Wakeup::Signalled),
            private::Ended::TimedOut => Err(LockError::TimedOut),
            private::Ended::Interrupted => Ok(Wakeup::Interrupted),
            private::Ended::OtherMutex | private::Ended::InHandler => Err(LockError::Invalid),
        }
    }

    /// # Safety
    /// As for [`wait`](Self::wait).
    #[cfg(not(loom))]
    pub(crate) unsafe fn wait_until(
        &self,
        mutex: &RawPosixMutex,
        until: Until<'_>,
    ) -> Result<Wakeup, LockError> {
        // SAFETY: forwards this function's own contract.
        unsafe { self.wait_and_tell(mutex, until) }.into_result()
    }

    /// The same for a model, which has no priorities.
    #[cfg(loom)]
    pub(crate) unsafe fn wait_until(
        &self,
        mutex: &RawPosixMutex,
        until: Until<'_>,
    ) -> Result<Wakeup, LockError> {
        match self.is_shared() {
            true => shared::wait(self, mutex, until.deadline).map(|()| Wakeup::Signalled),
            false => private::wait(self, mutex, until),
        }
    }

    /// [`wait`](Self::wait). Also tells whether the mutex is held afterwards.
    ///
    /// # Safety
    /// As for [`wait`](Self::wait).
    #[cfg(not(loom))]
    pub(in crate::lock) unsafe fn wait_and_tell(
        &self,
        mutex: &RawPosixMutex,
        until: Until<'_>,
    ) -> Waited {
        if self.is_shared() {
            let ended = shared::wait(self, mutex, until.deadline);
            return Waited::clean(ended.map(|()| Wakeup::Signalled));
        }
        match mutex.waiters_stand() {
            Stands::ByPriority => priority::wait(self, mutex, until.deadline, None),
            _ => Waited::clean(private::wait(self, mutex, until)),
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

    /// Whether threads may be waiting.
    #[inline]
    pub(crate) fn may_have_waiters(&self) -> bool {
        self.bound_to() != 0
    }

    /// The value of `mutex`. Relaxed: it changes under the bucket lock. (Of a process-shared
    /// condvar: 0 if there are no waiters.)
    #[inline]
    fn bound_to(&self) -> u64 {
        let bound_to = self.mutex.load(Ordering::Relaxed);
        #[cfg(loom)]
        assert_ne!(bound_to, FREED, "a condvar is used after it was freed");
        bound_to
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
            // `None` means that the waiters, or their mutex, have changed since.
            if let Some(signalled) = private::notify(self, bound_to, count) {
                return signalled;
            }
        }
    }

    fn is_shared(&self) -> bool {
        self.traits.load(Ordering::Relaxed) & SHARED != 0
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
        if bound_to != 0 && bound_to & BY_PRIORITY == 0 && !private::forget_the_dead(self) {
            return Err(LockError::Busy);
        }
        Ok(())
    }
}

#[cfg(loom)]
impl RawCondvar {
    /// For models: no thread may use the condvar from now on, as if its memory had been freed.
    pub(crate) fn pretend_to_free(&self) {
        self.mutex.store(FREED, Ordering::Relaxed);
    }
}

#[cfg(not(loom))]
impl Default for RawCondvar {
    fn default() -> Self {
        Self::new()
    }
}
