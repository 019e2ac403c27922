//! The condition variable: no herd, order of arrival, any flavour of mutex.
//!
//! | file | for |
//! |------|-----|
//! | `table.rs` | private ones: waiters stand in our table and are moved to their mutex's queue there |
//! | `priority.rs` | private ones, with a priority-inheriting mutex: waiters stand in the kernel |
//! | `counted.rs` | how those sleep there, and are signalled |
//! | `shared.rs` | process-shared ones: waiters stand in the kernel |
//! | `robust.rs` | the same with a robust mutex |
//! | `api.rs` | parking_lot's names |
//!
//! # Sixteen bytes
//!
//! | offset | name | `table.rs` | `priority.rs` | `shared.rs` |
//! |--------|------|-----------|---------------|-------------|
//! | 0 | `mutex` | the mutex of those who wait now; 0 if nobody does | BY_PRIORITY | low half: what a broadcast's waiters wait on; high half: how many wait |
//! | 8 | `sequence` | | counts signals: the word that waiters sleep on | the same |
//! | 12 | `traits` | | | SHARED |
//!
//! All zeros is a private one that nobody waits on.
//!
//! # What a private one is bound to
//!
//! Where the waiters of a private one stand is told by `mutex` alone, so that a signaller that comes at any moment takes
//! the address for what it is:
//!
//! | bit 0, BY_PRIORITY | bit 1 | the other bits |
//! |---|---|---|
//! | 0 | KEPT: one of them holds the mutex still, a recursive one that it had more than once | the mutex |
//! | 1 | 0 | 0 |
//!
//! Without BY_PRIORITY it is not 0 if and only if somebody stands in the table, and is changed under the bucket's lock;
//! only in a child of `fork` it may name a mutex for which nobody waits there. With BY_PRIORITY it says nothing
//! of whether somebody waits, and whoever waits next in the table overwrites it.

#[cfg(not(loom))]
mod api;
#[cfg_attr(loom, expect(dead_code, reason = "a model has no priorities"))]
pub(crate) mod counted;
#[cfg(all(test, not(loom)))]
mod counted_tests;
#[cfg(not(loom))]
mod priority;
#[cfg(not(loom))]
mod robust;
mod shared;
mod table;
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

/// A condition variable without a type for what its mutex protects: what [`Condvar`](crate::Condvar) and the C API's `ww_cond_t` work on.
///
/// Threads that wait are signalled in the order in which they came, those under a real-time
/// scheduling policy first, by priority. A signal or broadcast that finds the mutex held wakes
/// nobody: it moves the waiters to the mutex, whose unlocks wake them one by one. (With a
/// priority-inheriting mutex each signal wakes, the highest priority first.)
///
/// Sixteen bytes, no destructor; all bytes zero is a private one that nobody waits on. A private one may be freed as soon
/// as everybody has been signalled: those who are on their way back do not touch it. A process-shared one must be
/// [destroyed](Self::destroy) first.
///
/// Not for signal handlers. In a child of `fork` nobody waits.
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

/// The bits of `mutex`, see above.
#[cfg_attr(loom, allow(dead_code, reason = "a model has no priorities"))]
const BY_PRIORITY: u64 = 1;
const KEPT: u64 = 2;

/// Why a wait that was not too long ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wakeup {
    /// The caller was signalled, or woken for no reason.
    Signalled,
    /// Another thread interrupted it, and no signal was spent on it.
    Interrupted,
}

/// How a wait ended, and whether the caller holds the mutex. Only of a priority-inheriting one it
/// may not.
#[cfg(not(loom))]
#[derive(Debug)]
pub enum Waited {
    /// It does.
    Held {
        /// An owner before it ended without unlocking it.
        owner_died: bool,
        /// Why the wait ended, or did not begin.
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
    /// A private one.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self::with_scope(Scope::Private)
    }

    /// One for the threads of this process, or of all that map its memory.
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

    /// The same for a model, in which atomics are not made in constants.
    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self::with_scope(Scope::Private)
    }

    /// The same for a model, in which atomics are not made in constants.
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

    /// Gives the mutex back, waits to be signalled, and takes the mutex again; all that waits between those two is
    /// found by a signal. It may also return for no reason; look at what you wait for again. Blocks. (POSIX: `pthread_cond_wait`
    /// and, with a deadline on either clock, `pthread_cond_clockwait`.)
    ///
    /// Of a recursive mutex one level is given back: if the caller holds it more than once, it stays held, and only
    /// those who do not need it can signal.
    ///
    /// # Errors
    /// The mutex is as it was before the call with [`TimedOut`](LockError::TimedOut),
    /// [`NotOwner`](LockError::NotOwner) and [`Invalid`](LockError::Invalid). With any other error,
    /// which only a priority-inheriting mutex gives, **the caller does not hold it**: it could not
    /// be locked again. ([`PiCondvar`](crate::PiCondvar) keeps that apart by types.)
    ///
    /// [`LockError::TimedOut`] if the deadline passed and no signal was spent on the caller;
    /// [`LockError::NotOwner`] if the mutex has an owner and that is not the caller;
    /// [`LockError::Invalid`] if others wait here with another mutex.
    ///
    /// # Safety
    /// The caller holds the mutex. Whoever waits at the same time does so with the same one.
    pub unsafe fn wait(
        &self,
        mutex: &RawPosixMutex,
        deadline: Option<&Deadline>,
    ) -> Result<(), LockError> {
        // SAFETY: forwards this function's own contract.
        unsafe { self.wait_until(mutex, deadline.into()) }.map(|_| ())
    }

    /// [`wait`](Self::wait) that ends, too, when another thread interrupts it `by` this: what a cancellation point needs. The
    /// mutex is held again then, and no signal was spent on the caller. A process-shared condvar's waits are not ended.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    ///
    /// # Safety
    /// As [`wait`](Self::wait).
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

    /// Waits with a mutex of another library, which lies at `address`: `unlock` gives it back once the caller can be found by a
    /// signal. When this returns it is for the caller to lock it again. For private condvars; each signal wakes.
    ///
    /// # Errors
    /// [`LockError::TimedOut`]. [`LockError::Invalid`]: others wait here with another mutex, or this is a signal handler that
    /// interrupted a wait; then `unlock` was not called.
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
        match table::stand(self, address as u64 | KEPT, unlock, by.until(deadline)) {
            table::Ended::Signalled(_) => Ok(Wakeup::Signalled),
            table::Ended::TimedOut => Err(LockError::TimedOut),
            table::Ended::Interrupted => Ok(Wakeup::Interrupted),
            table::Ended::OtherMutex | table::Ended::InHandler => Err(LockError::Invalid),
        }
    }

    /// # Safety
    /// As [`wait`](Self::wait).
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
            false => table::wait(self, mutex, until),
        }
    }

    /// [`wait`](Self::wait); says whether the mutex is held afterwards.
    ///
    /// # Safety
    /// As [`wait`](Self::wait).
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
            _ => Waited::clean(table::wait(self, mutex, until)),
        }
    }

    /// Signals the one who has waited longest; whether there was one. Does not block. (POSIX: `pthread_cond_signal`.)
    #[inline]
    pub fn notify_one(&self) -> bool {
        // Relaxed: whoever waited before this was called has let go of the mutex that made it known.
        self.bound_to() != 0 && self.notify(1) != 0
    }

    /// Signals all who wait; how many. Does not block. (POSIX: `pthread_cond_broadcast`.)
    #[inline]
    pub fn notify_all(&self) -> usize {
        if self.bound_to() == 0 {
            return 0;
        }
        self.notify(usize::MAX)
    }

    /// Whether somebody may wait.
    #[inline]
    pub(crate) fn may_have_waiters(&self) -> bool {
        self.bound_to() != 0
    }

    /// What stands in `mutex`. Relaxed: it is changed under the bucket's lock. (Of a process-shared
    /// one: 0 if nobody waits.)
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
            // Or else who waits, and with which mutex, has changed since.
            if let Some(signalled) = table::notify(self, bound_to, count) {
                return signalled;
            }
        }
    }

    fn is_shared(&self) -> bool {
        self.traits.load(Ordering::Relaxed) & SHARED != 0
    }

    /// Makes sure that nobody uses it any more. Nothing is to be done for a private one that nobody waits on; a
    /// process-shared one waits until all who have been signalled are gone. (POSIX: `pthread_cond_destroy`.)
    ///
    /// # Errors
    /// [`LockError::Busy`] if somebody waits on a private one.
    #[cfg(not(loom))]
    pub fn destroy(&self) -> Result<(), LockError> {
        if self.is_shared() {
            shared::wait_until_left(self);
            return Ok(());
        }
        let bound_to = self.bound_to();
        if bound_to != 0 && bound_to & BY_PRIORITY == 0 && !table::forget_the_dead(self) {
            return Err(LockError::Busy);
        }
        Ok(())
    }
}

#[cfg(loom)]
impl RawCondvar {
    /// In a model: from now on nobody may use it, as if its memory had been freed.
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
