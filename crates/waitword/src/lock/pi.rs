//! The priority-inheritance word: what a mutex with the protocol "inherit" stands on (POSIX's
//! `PTHREAD_PRIO_INHERIT`).
//!
//! A thread of low priority holds the lock, one of high priority waits for it, and one of middle priority keeps
//! the first from running: the highest then waits for the middle one, for as long as that likes. The remedy
//! is to lend the holder the priority of those who wait for it, and only the scheduler can do that. So the
//! queue of this lock is the kernel's, and the word has the kernel's format:
//!
//! | bits | name | meaning |
//! |------|------|---------|
//! | 0-29 | [`TID_MASK`] | the number of the thread that holds it; 0 is nobody |
//! | 30 | [`OWNER_DIED`] | an owner has ended without unlocking, and the kernel gave or will give the lock on |
//! | 31 | [`WAITERS`] | the kernel keeps a queue for this word: only the kernel may free it |
//!
//! ```text
//!                        try_lock, lock: CAS                    lock: FUTEX_LOCK_PI (sets WAITERS, sleeps)
//!   free (0)  ----------------------------------->  held (TID)  ------------------->  queued (TID|WAITERS)
//!             <-----------------------------------                                     |        ^
//!                        unlock: CAS                                                   '--------'
//!                                                             unlock: FUTEX_UNLOCK_PI writes the next one's TID
//! ```
//!
//! # Invariants
//!
//! 1. User space makes two changes only: 0 to its own TID, and its own TID to 0. All others are the kernel's. (A
//!    robust mutex also clears `OWNER_DIED` in a word that it holds: `robust/word.rs`.)
//! 2. With `WAITERS` set the lock is never free: unlock hands it to the waiter of highest priority, who wakes as
//!    its owner. So nobody barges past a waiter, and under contention each change of owner costs a sleep and a
//!    wake-up. That is the price of this protocol.
//! 3. The last that an unlock does to the word is to free it or give it away. Whoever takes it next may free the
//!    memory.
//!
//! # Orderings
//!
//! The two CASes are Acquire and Release, as in any lock. A hand-over happens inside a system call on both
//! sides, under the kernel's own locks, which order everything.
//!
//! # Numbers, processes, forks
//!
//! The TID is what the kernel finds the owner by, so all users of a word live in one PID namespace. A forked
//! child has another TID than its parent's thread and owns none of its locks. A word in private memory that was
//! held as the child was made names a thread of the parent: to lock it there is to wait until
//! that thread ends (then [`Acquired::OwnerDied`]), or [`PiError::OwnerGone`] if it has.

use crate::atomic::{AtomicU32, Ordering};
use crate::futex::Scope;
#[cfg(not(loom))]
use crate::lock::condvar::Slept;
#[cfg(not(loom))]
use crate::lock::interrupter::wait_in_kernel;
use crate::stats::{self, Event};
use crate::sys::clock::Deadline;
#[cfg(not(loom))]
use crate::sys::moving_time::Time;
use crate::sys::tid::tid;
use crate::sys::{Errno, futex_pi};
#[cfg(not(loom))]
use core::cell::Cell;
use core::fmt;

#[cfg(all(test, not(loom)))]
mod priority_tests;
#[cfg(all(test, not(loom)))]
mod tests;
#[cfg(all(test, not(loom)))]
pub(crate) mod watchdog;

/// Somebody waits in the kernel.
pub(crate) const WAITERS: u32 = 0x8000_0000;
/// An owner has died.
pub(crate) const OWNER_DIED: u32 = 0x4000_0000;
/// The owner's number.
pub(crate) const TID_MASK: u32 = 0x3fff_ffff;
/// Nobody holds it.
pub(crate) const FREE: u32 = 0;

/// How the lock was had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Acquired {
    /// As it should be.
    Clean,
    /// An owner before has ended without unlocking it. The word says so ([`OWNER_DIED`]) until it is unlocked.
    OwnerDied,
}

/// Why the lock was not had, or not given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PiError {
    /// Another thread holds it; or, to `try_lock`, the caller (`EBUSY`).
    Busy,
    /// The caller holds it already, or the kernel has found that owners wait for each other in a ring (`EDEADLK`).
    Deadlock,
    /// The word names an owner that there is not: a thread that ended without unlocking while nobody waited
    /// (`ESRCH`). Nobody will ever unlock it; POSIX leaves this open, glibc sleeps for ever.
    OwnerGone,
    /// The deadline has passed (`ETIMEDOUT`).
    TimedOut,
    /// An unlock by a thread that does not hold it; a lock of a word that names a kernel thread (`EPERM`).
    NotOwner,
    /// The kernel has no memory for its queue (`ENOMEM`).
    OutOfMemory,
    /// The kernel was built without priority inheritance, or a sandbox refuses it (`ENOSYS`).
    Unsupported,
    /// The kernel refused for another reason: `EINVAL` if the word does not say what the kernel remembers of it
    /// (it was overwritten, or somebody waits on it as on a plain futex), `EFAULT` if it is not writable.
    Kernel(i32),
}

impl PiError {
    /// POSIX's number for it.
    pub(crate) fn raw_os_error(self) -> i32 {
        let errno = match self {
            Self::Busy => Errno::BUSY,
            Self::Deadlock => Errno::DEADLK,
            Self::OwnerGone => Errno::SRCH,
            Self::TimedOut => Errno::TIMEDOUT,
            Self::NotOwner => Errno::PERM,
            Self::OutOfMemory => Errno::NOMEM,
            Self::Unsupported => Errno::NOSYS,
            Self::Kernel(code) => return code,
        };
        errno.raw_os_error()
    }
}

impl From<Errno> for PiError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::DEADLK => Self::Deadlock,
            Errno::SRCH => Self::OwnerGone,
            Errno::TIMEDOUT => Self::TimedOut,
            Errno::PERM => Self::NotOwner,
            Errno::NOMEM => Self::OutOfMemory,
            Errno::NOSYS => Self::Unsupported,
            other => Self::Kernel(other.raw_os_error()),
        }
    }
}

impl fmt::Display for PiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        std::io::Error::from_raw_os_error(self.raw_os_error()).fmt(f)
    }
}

#[inline]
fn is_private(scope: Scope) -> bool {
    scope == Scope::Private
}

/// How a word that the caller holds was had: by what the kernel left in it.
#[inline]
fn acquired(word: &AtomicU32) -> Acquired {
    // Relaxed: the owner reads what was written before it became owner.
    match word.load(Ordering::Relaxed) & OWNER_DIED {
        0 => Acquired::Clean,
        _ => Acquired::OwnerDied,
    }
}

/// Whether the calling thread holds it.
#[inline]
pub(crate) fn is_mine(word: &AtomicU32) -> bool {
    // Relaxed: only this thread writes its own number, or takes it out.
    word.load(Ordering::Relaxed) & TID_MASK == tid()
}

/// Takes the lock if nobody holds it (`pthread_mutex_trylock`).
///
/// # Errors
/// [`PiError::Busy`], also if the caller holds it itself. `OutOfMemory`, `Unsupported`, `Kernel` where the word has
/// a dead owner.
#[inline]
pub(crate) fn try_lock(word: &AtomicU32, scope: Scope) -> Result<Acquired, PiError> {
    match word.compare_exchange(FREE, tid(), Ordering::Acquire, Ordering::Relaxed) {
        Ok(_) => Ok(Acquired::Clean),
        Err(seen) if seen & TID_MASK != 0 => Err(PiError::Busy),
        Err(_) => try_lock_of_the_dead(word, scope),
    }
}

/// No owner, and yet not free: an owner has died. Only the kernel knows whether it has given the lock on.
#[cold]
fn try_lock_of_the_dead(word: &AtomicU32, scope: Scope) -> Result<Acquired, PiError> {
    loop {
        match futex_pi::try_lock(word, is_private(scope)) {
            Ok(()) => return Ok(acquired(word)),
            Err(Errno::AGAIN | Errno::BUSY | Errno::DEADLK) => return Err(PiError::Busy),
            Err(Errno::INTR) => {}
            Err(other) => return Err(other.into()),
        }
    }
}

/// Takes the lock if it is free, by no more than one step; whether it has.
#[inline]
pub(crate) fn lock_at_once(word: &AtomicU32) -> bool {
    word.compare_exchange(FREE, tid(), Ordering::Acquire, Ordering::Relaxed)
        .is_ok()
}

/// Gives the lock back if the caller holds it and nobody waits; whether it has.
#[inline]
pub(crate) fn unlock_at_once(word: &AtomicU32) -> bool {
    word.compare_exchange(tid(), FREE, Ordering::Release, Ordering::Relaxed)
        .is_ok()
}

/// Takes the lock; waits for it as long as need be (`pthread_mutex_lock`). While it waits, the holder runs at
/// least at the caller's priority.
///
/// Signals do not end the wait. Not for signal handlers.
///
/// # Errors
/// [`PiError::Deadlock`], [`PiError::OwnerGone`]; `NotOwner` if the word names a thread of the kernel;
/// `OutOfMemory`, `Unsupported`, `Kernel`.
#[inline]
pub(crate) fn lock(word: &AtomicU32, scope: Scope) -> Result<Acquired, PiError> {
    match word.compare_exchange(FREE, tid(), Ordering::Acquire, Ordering::Relaxed) {
        Ok(_) => Ok(Acquired::Clean),
        Err(_) => lock_contended(word, scope, None),
    }
}

/// [`lock`], until the deadline on either clock (`pthread_mutex_timedlock`, `pthread_mutex_clocklock`). A lock that
/// is free is had even if the deadline has passed.
///
/// # Errors
/// [`PiError::TimedOut`], and those of [`lock`].
#[inline]
pub(crate) fn lock_until(
    word: &AtomicU32,
    scope: Scope,
    deadline: &Deadline,
) -> Result<Acquired, PiError> {
    match word.compare_exchange(FREE, tid(), Ordering::Acquire, Ordering::Relaxed) {
        Ok(_) => Ok(Acquired::Clean),
        Err(_) => lock_contended(word, scope, Some(deadline)),
    }
}

/// [`lock`] or [`lock_until`], after one attempt that failed. Inlined, as all between a system call
/// and its caller (`sys/mod.rs`).
///
/// # Errors
/// As [`lock_until`].
#[inline]
pub(crate) fn lock_contended(
    word: &AtomicU32,
    scope: Scope,
    deadline: Option<&Deadline>,
) -> Result<Acquired, PiError> {
    stats::count(Event::Contended);
    stats::count(Event::Sleeps);
    loop {
        match wait(word, is_private(scope), deadline) {
            Ok(()) => return Ok(acquired(word)),
            // The owner is just ending, and the kernel has not yet seen to its locks. (Kernels wait for that
            // themselves since 5.5.) A sleep, since the owner may be of lower priority on the same CPU.
            Err(Errno::AGAIN) => crate::sys::sched::sleep_nanoseconds(50_000),
            // The kernel restarts the call itself; to be sure.
            Err(Errno::INTR) => {}
            Err(other) => return Err(other.into()),
        }
    }
}

/// Waits in the kernel, for the lock or until the deadline, which may be brought forward meanwhile.
#[inline]
fn wait(word: &AtomicU32, private: bool, deadline: Option<&Deadline>) -> Result<(), Errno> {
    #[cfg(not(loom))]
    if let Some(deadline) = deadline.filter(|deadline| deadline.ender.is_some()) {
        return wait_until_ended(word, private, deadline);
    }
    futex_pi::lock(word, private, deadline)
}

#[cfg(not(loom))]
fn wait_until_ended(word: &AtomicU32, private: bool, deadline: &Deadline) -> Result<(), Errno> {
    let Some(ender) = deadline.ender else {
        return futex_pi::lock(word, private, Some(deadline));
    };
    let answer = Cell::new(Ok(()));
    let lock = |time: &Time, clock| {
        answer.set(futex_pi::lock_by_time(word, private, time, clock));
        answer.get()
    };
    match wait_in_kernel(
        ender.by,
        false,
        Some(deadline),
        || deadline.is_ended(),
        lock,
    ) {
        Slept::Interrupted => Err(Errno::TIMEDOUT),
        // A kernel that knows no times of this clock: then it ends in time, and not before.
        _ if answer.get() == Err(Errno::NOSYS) => futex_pi::lock(word, private, Some(deadline)),
        _ => answer.get(),
    }
}

/// Gives the lock back, or to the waiter of highest priority (`pthread_mutex_unlock`). Does not block.
///
/// # Errors
/// [`PiError::NotOwner`] if the caller does not hold it; `Kernel` if the word was overwritten.
#[inline]
pub(crate) fn unlock(word: &AtomicU32, scope: Scope) -> Result<(), PiError> {
    let me = tid();
    match word.compare_exchange(me, FREE, Ordering::Release, Ordering::Relaxed) {
        Ok(_) => Ok(()),
        Err(seen) if seen & TID_MASK != me => Err(PiError::NotOwner),
        Err(_) => unlock_contended(word, scope),
    }
}

#[cold]
fn unlock_contended(word: &AtomicU32, scope: Scope) -> Result<(), PiError> {
    loop {
        match futex_pi::unlock(word, is_private(scope)) {
            Ok(()) => {
                stats::count(Event::Wakes);
                return Ok(());
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(other) => return Err(other.into()),
        }
    }
}
