//! The priority-inheritance word: the basis of a mutex with POSIX's protocol
//! `PTHREAD_PRIO_INHERIT`.
//!
//! A low-priority thread holds the lock and a high-priority thread waits for it. A middle-priority
//! thread keeps the holder from running, so the high-priority thread waits for the middle one,
//! without bound. The remedy is to lend the holder the priority of its waiters, and only the
//! scheduler can do that. So the queue of this lock is the kernel's, and the word has the kernel's
//! format:
//!
//! | bits | name | meaning |
//! |------|------|---------|
//! | 0-29 | [`TID_MASK`] | the TID of the owner; 0: no owner |
//! | 30 | [`OWNER_DIED`] | owner ended without unlocking; the kernel passed the lock on, or will |
//! | 31 | [`WAITERS`] | the kernel keeps a queue for this word: only the kernel may free it |
//!
//! ```text
//!             try_lock, lock: CAS                 lock: FUTEX_LOCK_PI
//!   free (0)  --------------------->  held (TID)  --------------------->  queued (TID|WAITERS)
//!             <---------------------              (sets WAITERS, sleeps)      |        ^
//!             unlock: CAS                                                     '--------'
//!                                                 unlock: FUTEX_UNLOCK_PI writes the next TID
//! ```
//!
//! # Invariants
//!
//! 1. User space makes only two changes: 0 to its own TID, and its own TID to 0. All others are the
//!    kernel's. (A robust mutex also clears `OWNER_DIED` in a word that it holds:
//!    `robust/word.rs`.)
//! 2. With `WAITERS` set, the lock is never free: unlock hands it to the waiter of highest
//!    priority, which wakes as its owner. So no thread barges past a waiter, and under contention
//!    each change of owner costs a sleep and a wake-up. That is the price of this protocol.
//! 3. An unlock's last access to the word frees it or hands it off. The next thread that takes it
//!    may free the memory.
//!
//! # Orderings
//!
//! The two CASes are Acquire and Release, as in any lock. A hand-off happens inside a system call
//! on both sides, under the kernel's own locks, which order everything.
//!
//! # TIDs, processes, forks
//!
//! The kernel finds the owner by its TID, so all users of a word must be in one PID namespace. A
//! forked child has another TID than its parent's thread and owns none of its locks. A word in
//! private memory that was held when the child was made names a thread of the parent. Locking it in
//! the child waits until that thread ends (then [`Acquired::OwnerDied`]), or returns
//! [`PiError::OwnerGone`] if it has.

use crate::atomic::{AtomicU32, Ordering};
use crate::futex::Scope;
#[cfg(not(loom))]
use crate::lock::kernel_wait::{Slept, wait_in_kernel};
use crate::record::{self, Object};
use crate::stats::{self, Event};
use crate::sys::clock::Deadline;
#[cfg(not(loom))]
use crate::sys::moving_time::Time;
use crate::sys::tid::tid;
use crate::sys::{Errno, futex_pi, robust};
#[cfg(not(loom))]
use core::cell::Cell;
use core::fmt;
use core::sync::atomic::AtomicUsize;

#[cfg(all(test, not(loom)))]
mod priority_tests;
#[cfg(all(test, not(loom)))]
mod tests;

/// Threads wait in the kernel.
pub(crate) const WAITERS: u32 = 0x8000_0000;
/// An owner has ended without unlocking.
pub(crate) const OWNER_DIED: u32 = 0x4000_0000;
/// The owner's TID.
pub(crate) const TID_MASK: u32 = 0x3fff_ffff;
/// No thread holds it.
pub(crate) const FREE: u32 = 0;

/// How the lock was acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Acquired {
    /// Normally.
    Clean,
    /// A previous owner ended without unlocking it. The word records this ([`OWNER_DIED`]) until it
    /// is unlocked.
    OwnerDied,
}

/// Why the lock could not be taken or released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PiError {
    /// Another thread holds it; or, for `try_lock`, the caller does (`EBUSY`).
    Busy,
    /// The caller holds it already, or the kernel has found a cycle of owners that wait for each
    /// other (`EDEADLK`).
    Deadlock,
    /// The word names an owner that does not exist: a thread that ended without unlocking while no
    /// thread waited (`ESRCH`). It will never be unlocked. POSIX leaves this open; glibc sleeps
    /// forever.
    OwnerGone,
    /// The deadline has passed (`ETIMEDOUT`).
    TimedOut,
    /// An unlock by a thread that does not hold it, or a lock of a word that names a kernel thread
    /// (`EPERM`).
    NotOwner,
    /// The kernel is out of memory for its queue (`ENOMEM`).
    OutOfMemory,
    /// The kernel was built without priority inheritance, or a sandbox refuses it (`ENOSYS`).
    Unsupported,
    /// The kernel refused for another reason: `EINVAL` if the word does not match the kernel's own
    /// records (it was overwritten, or a thread waits on it as on a plain futex), `EFAULT` if it is
    /// not writable.
    Kernel(i32),
}

impl PiError {
    /// POSIX's error number.
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

/// How the caller acquired this word, which it holds, by the bits that the kernel left in it.
#[inline]
fn acquired(word: &AtomicU32) -> Acquired {
    // Relaxed: the owner reads what was written before it became the owner.
    match word.load(Ordering::Relaxed) & OWNER_DIED {
        0 => Acquired::Clean,
        _ => Acquired::OwnerDied,
    }
}

/// Whether the calling thread holds it.
#[inline]
pub(crate) fn is_mine(word: &AtomicU32) -> bool {
    // Relaxed: only this thread writes its own TID or removes it.
    word.load(Ordering::Relaxed) & TID_MASK == tid()
}

/// Takes the lock if no thread holds it (`pthread_mutex_trylock`).
///
/// # Errors
/// [`PiError::Busy`], even if the caller itself holds it. `OutOfMemory`, `Unsupported` and `Kernel`
/// if the word has a dead owner.
#[inline]
pub(crate) fn try_lock(word: &AtomicU32, scope: Scope) -> Result<Acquired, PiError> {
    match word.compare_exchange(FREE, tid(), Ordering::Acquire, Ordering::Relaxed) {
        Ok(_) => Ok(Acquired::Clean),
        Err(seen) if seen & TID_MASK != 0 => Err(PiError::Busy),
        Err(_) => try_lock_of_the_dead(word, scope),
    }
}

/// The word names no owner but is not free: an owner has died. Only the kernel knows whether it has
/// passed the lock on.
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

/// Takes the lock if it is free, in a single step. Returns whether it did.
#[inline]
pub(crate) fn lock_at_once(word: &AtomicU32) -> bool {
    word.compare_exchange(FREE, tid(), Ordering::Acquire, Ordering::Relaxed).is_ok()
}

/// Releases the lock if the caller holds it and no thread waits. Returns whether it did.
#[inline]
pub(crate) fn unlock_at_once(word: &AtomicU32) -> bool {
    word.compare_exchange(tid(), FREE, Ordering::Release, Ordering::Relaxed).is_ok()
}

/// Takes the lock, waiting as long as necessary (`pthread_mutex_lock`). While the caller waits, the
/// holder runs at the caller's priority or above.
///
/// Signals do not end the wait. Not for signal handlers.
///
/// # Errors
/// [`PiError::Deadlock`], [`PiError::OwnerGone`]; `NotOwner` if the word names a kernel thread;
/// `OutOfMemory`, `Unsupported`, `Kernel`.
#[inline]
pub(crate) fn lock(word: &AtomicU32, scope: Scope) -> Result<Acquired, PiError> {
    match word.compare_exchange(FREE, tid(), Ordering::Acquire, Ordering::Relaxed) {
        Ok(_) => Ok(Acquired::Clean),
        Err(_) => lock_contended(word, scope, None),
    }
}

/// [`lock`], but until the deadline, on either clock (`pthread_mutex_timedlock`,
/// `pthread_mutex_clocklock`). Takes a free lock even if the deadline has passed.
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

/// [`lock`] or [`lock_until`], after one failed attempt. Inlined, like everything between a system
/// call and its caller (`sys/mod.rs`).
///
/// # Errors
/// As [`lock_until`].
#[inline]
pub(crate) fn lock_contended(
    word: &AtomicU32,
    scope: Scope,
    deadline: Option<&Deadline>,
) -> Result<Acquired, PiError> {
    record::waiting(Object::Mutex, address(word), deadline.is_some(), || {
        lock_contended_unrecorded(word, scope, deadline)
    })
}

/// The recorder's address of the lock: the word's.
fn address(word: &AtomicU32) -> usize {
    core::ptr::from_ref(word).addr()
}

#[inline(always)]
fn lock_contended_unrecorded(
    word: &AtomicU32,
    scope: Scope,
    deadline: Option<&Deadline>,
) -> Result<Acquired, PiError> {
    stats::count(Event::Contended);
    stats::count(Event::Sleeps);
    loop {
        match wait(word, is_private(scope), deadline) {
            Ok(()) => return Ok(acquired(word)),
            // The owner is ending, and the kernel has not handled its locks yet. (Since 5.5,
            // kernels wait for that themselves.) Sleep, since the owner may have a lower priority
            // on the same CPU.
            Err(Errno::AGAIN) => crate::sys::sched::sleep_nanoseconds(50_000),
            // Not expected: the kernel restarts the call itself.
            Err(Errno::INTR) => {}
            Err(other) => return Err(other.into()),
        }
    }
}

/// Waits in the kernel for the lock, or until the deadline, which may be brought forward meanwhile.
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
    match wait_in_kernel(ender.by, false, Some(deadline), || deadline.is_ended(), lock) {
        Slept::Interrupted => Err(Errno::TIMEDOUT),
        // The kernel does not support this clock here. An interrupter then cannot end the wait
        // before the deadline.
        _ if answer.get() == Err(Errno::NOSYS) => futex_pi::lock(word, private, Some(deadline)),
        _ => answer.get(),
    }
}

/// Releases the lock, or hands it to the waiter of highest priority (`pthread_mutex_unlock`). Does
/// not block.
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
    unlock_by(word, || futex_pi::unlock(word, is_private(scope)))
}

/// The unlock of a robust lock on which threads wait, where the kernel clears the thread's pending
/// operation in the same call.
///
/// # Errors
/// As for [`unlock`].
#[cold]
pub(crate) fn unlock_robust(word: &AtomicU32, pending: &AtomicUsize) -> Result<(), PiError> {
    match unlock_by(word, || robust::unlock_pi(word, pending)) {
        // A sandbox that knows futex(2)'s older operations only.
        Err(PiError::Unsupported) => unlock(word, Scope::Shared),
        answer => answer,
    }
}

fn unlock_by(word: &AtomicU32, call: impl Fn() -> Result<(), Errno>) -> Result<(), PiError> {
    record::releasing(address(word), || true, || true);
    loop {
        match call() {
            Ok(()) => {
                stats::count(Event::Wakes);
                return Ok(());
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(other) => return Err(other.into()),
        }
    }
}
