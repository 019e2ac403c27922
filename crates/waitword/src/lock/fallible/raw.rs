//! What a mutex that may refuse promises, and the two that keep it.

use crate::futex::Scope;
use crate::lock::condvar::Waited;
use crate::lock::pi::Acquired;
use crate::lock::{Kind, LockError, PosixFlavour, PosixMutexOptions, RawCondvar, RawPosixMutex};
use crate::sys::clock::Deadline;
use core::sync::atomic::{AtomicBool, Ordering};

/// Keeps others from implementing it: each implementation is a promise about this crate's own
/// locks.
mod sealed {
    use crate::deadlock::LockKind;

    pub trait Sealed {
        /// What the deadlock detection calls it.
        const KIND: LockKind;
    }

    impl Sealed for super::RawCheckedMutex {
        const KIND: LockKind = LockKind::CheckedMutex;
    }

    impl Sealed for super::RawPiMutex {
        const KIND: LockKind = LockKind::PiMutex;
    }
}

/// A mutex without data, whose lock may be refused: [`RawCheckedMutex`] or [`RawPiMutex`].
///
/// # Safety
/// A lock that returns `Ok` has given the mutex to the calling thread alone, until that thread's
/// unlock, also if the thread ends before that. One that returns an error has not.
pub unsafe trait RawFallibleMutex: sealed::Sealed {
    /// A free private one.
    const INIT: Self;

    /// Takes it, waiting until `deadline` at the latest, if there is one. Blocks. A free one is
    /// taken whatever the deadline.
    ///
    /// # Errors
    /// [`LockError::TimedOut`], and why it can never be taken.
    fn lock(&self, deadline: Option<&Deadline>) -> Result<(), LockError>;

    /// Takes it if that needs no waiting. Does not block.
    ///
    /// # Errors
    /// [`LockError::Busy`], also if the caller holds it; and why it can never be taken.
    fn try_lock(&self) -> Result<(), LockError>;

    /// Gives it back. In a forked child, which is another thread than its parent's, this does
    /// nothing.
    ///
    /// # Safety
    /// The calling thread took it, and has not given it back since.
    unsafe fn unlock(&self);

    /// Whether it was held just now.
    fn is_locked(&self) -> bool;

    /// Gives it back, waits on the condition variable, and takes it again.
    ///
    /// # Safety
    /// The calling thread holds it, and every thread that waits on `condvar` at the same time does
    /// so with this mutex.
    #[doc(hidden)]
    unsafe fn wait(&self, condvar: &RawCondvar, deadline: Option<&Deadline>) -> Waited;
}

/// A mutex that knows its owner, without the data: see [`CheckedMutex`](crate::CheckedMutex).
#[derive(Debug)]
#[repr(transparent)]
pub struct RawCheckedMutex(RawPosixMutex);

impl RawCheckedMutex {
    /// Of this flavour and scope.
    pub(in crate::lock) const fn with(options: PosixMutexOptions) -> Self {
        Self(options.kind(Kind::ErrorChecking).build_raw())
    }
}

// SAFETY: `RawPosixMutex` gives a free word to one thread. The owner's number stays in it until
// that thread unlocks, so after a thread has ended nobody takes the mutex.
unsafe impl RawFallibleMutex for RawCheckedMutex {
    #[allow(
        clippy::declare_interior_mutable_const,
        reason = "each use makes a new mutex"
    )]
    const INIT: Self = Self::with(PosixMutexOptions::new());

    #[inline]
    fn lock(&self, deadline: Option<&Deadline>) -> Result<(), LockError> {
        match deadline {
            None => self.0.lock_checked(),
            Some(deadline) => self.0.lock_until(*deadline),
        }
    }

    #[inline]
    fn try_lock(&self) -> Result<(), LockError> {
        self.0.try_lock_checked()
    }

    #[inline]
    unsafe fn unlock(&self) {
        // SAFETY: the caller took it, by this function's contract. In a forked child it did so as
        // another thread; the mutex keeps its owner, and answers `NotOwner` there.
        let _ = unsafe { self.0.unlock_checked() };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }

    unsafe fn wait(&self, condvar: &RawCondvar, deadline: Option<&Deadline>) -> Waited {
        // SAFETY: forwards this function's own contract.
        unsafe { condvar.wait_and_tell(&self.0, deadline.into()) }
    }
}

/// A priority-inheriting mutex without the data: see [`PiMutex`](crate::PiMutex).
#[derive(Debug)]
pub struct RawPiMutex {
    posix: RawPosixMutex,
    /// An owner ended without unlocking. Set, for good, by a thread that then holds the mutex.
    owner_died: AtomicBool,
}

impl RawPiMutex {
    /// One for the threads of this process, or of all that map its memory.
    pub const fn with_scope(scope: Scope) -> Self {
        Self {
            posix: PosixMutexOptions::new()
                .flavour(PosixFlavour::PriorityInheriting)
                .scope(scope)
                .build_raw(),
            owner_died: AtomicBool::new(false),
        }
    }

    /// The calling thread has the kernel's lock: it keeps it only if no owner has ever died.
    #[inline]
    fn admit(&self, owner_died: bool) -> Result<(), LockError> {
        // Relaxed, and below: written and read with the lock held.
        if !owner_died && !self.owner_died.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.refuse();
        Err(LockError::OwnerDied)
    }

    #[cold]
    fn refuse(&self) {
        self.owner_died.store(true, Ordering::Relaxed);
        // SAFETY: `admit`'s caller has just taken it, and has no guard yet: after this it gets an
        // error.
        unsafe { self.unlock() };
    }
}

// SAFETY: the kernel gives the word to one thread at a time. It gives it away without an unlock
// only when its owner has ended, and says so to the thread that takes it next; `admit` refuses that
// thread and all that come after it.
unsafe impl RawFallibleMutex for RawPiMutex {
    #[allow(
        clippy::declare_interior_mutable_const,
        reason = "each use makes a new mutex"
    )]
    const INIT: Self = Self::with_scope(Scope::Private);

    #[inline]
    fn lock(&self, deadline: Option<&Deadline>) -> Result<(), LockError> {
        self.admit(self.posix.lock_pi(deadline)? == Acquired::OwnerDied)
    }

    #[inline]
    fn try_lock(&self) -> Result<(), LockError> {
        self.admit(self.posix.try_lock_pi()? == Acquired::OwnerDied)
    }

    #[inline]
    unsafe fn unlock(&self) {
        // SAFETY: the caller took it, by this function's contract. In a forked child it did so as
        // another thread; the mutex keeps its owner, and answers `NotOwner` there.
        let _ = unsafe { self.posix.unlock_checked() };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.posix.is_locked()
    }

    unsafe fn wait(&self, condvar: &RawCondvar, deadline: Option<&Deadline>) -> Waited {
        // SAFETY: forwards this function's own contract.
        match unsafe { condvar.wait_and_tell(&self.posix, deadline.into()) } {
            Waited::Held { owner_died, .. } if self.admit(owner_died).is_err() => {
                Waited::NotHeld(LockError::OwnerDied)
            }
            waited => waited,
        }
    }
}
