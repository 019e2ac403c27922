//! The contract of a mutex whose lock may be refused, and the two types that fulfil it.

use crate::futex::Scope;
use crate::lock::condvar::Waited;
use crate::lock::pi::Acquired;
use crate::lock::{Kind, LockError, PosixFlavour, PosixMutexOptions, RawCondvar, RawPosixMutex};
use crate::sys::clock::Deadline;
use core::sync::atomic::{AtomicBool, Ordering};

/// Prevents other implementations: each one is a promise about this crate's own locks.
mod sealed {
    use crate::deadlock::LockKind;

    pub trait Sealed {
        /// Its name in the deadlock detection.
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
/// A lock that returns `Ok` has given the mutex to the calling thread alone, until that thread
/// unlocks it, even if the thread ends before that. A lock that returns an error has not.
pub unsafe trait RawFallibleMutex: sealed::Sealed {
    /// A free, private mutex.
    const INIT: Self;

    /// Locks the mutex, waiting until `deadline` at the latest, if there is one. Blocks. A free
    /// mutex is locked whatever the deadline.
    ///
    /// # Errors
    /// [`LockError::TimedOut`], and the reasons why it can never be locked.
    fn lock(&self, deadline: Option<&Deadline>) -> Result<(), LockError>;

    /// Locks the mutex if that needs no waiting. Does not block.
    ///
    /// # Errors
    /// [`LockError::Busy`], even if the caller holds it; and the reasons why it can never be
    /// locked.
    fn try_lock(&self) -> Result<(), LockError>;

    /// Unlocks the mutex. Does nothing in a forked child, whose thread is not the parent's.
    ///
    /// # Safety
    /// The calling thread locked it, and has not unlocked it since.
    unsafe fn unlock(&self);

    /// Whether the mutex was held at the time of the call.
    fn is_locked(&self) -> bool;

    /// Unlocks the mutex, waits on the condition variable, and locks the mutex again.
    ///
    /// # Safety
    /// The calling thread holds it, and all threads that wait on `condvar` at the same time use
    /// this mutex.
    #[doc(hidden)]
    unsafe fn wait(&self, condvar: &RawCondvar, deadline: Option<&Deadline>) -> Waited;
}

/// A mutex that knows its owner, without the data: see [`CheckedMutex`](crate::CheckedMutex).
#[derive(Debug)]
#[repr(transparent)]
pub struct RawCheckedMutex(RawPosixMutex);

impl RawCheckedMutex {
    /// Creates one of this flavour and scope.
    pub(in crate::lock) const fn with(options: PosixMutexOptions) -> Self {
        Self(options.kind(Kind::ErrorChecking).build_raw())
    }
}

// SAFETY: `RawPosixMutex` gives a free word to one thread. The owner's TID stays in it until that
// thread unlocks, so after a thread has ended, no other thread takes the mutex.
unsafe impl RawFallibleMutex for RawCheckedMutex {
    #[allow(clippy::declare_interior_mutable_const, reason = "each use makes a new mutex")]
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
        // SAFETY: the caller locked it, by this function's contract. In a forked child it did so as
        // another thread; the mutex still records that owner and returns `NotOwner`.
        let _ = unsafe { self.0.unlock_checked() };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }

    unsafe fn wait(&self, condvar: &RawCondvar, deadline: Option<&Deadline>) -> Waited {
        // SAFETY: forwards this function's own contract.
        unsafe { condvar.wait_and_report(&self.0, deadline.into()) }
    }
}

/// A priority-inheriting mutex without the data: see [`PiMutex`](crate::PiMutex).
#[derive(Debug)]
pub struct RawPiMutex {
    posix: RawPosixMutex,
    /// An owner ended without unlocking. Set by a thread that then holds the mutex, and never
    /// cleared.
    owner_died: AtomicBool,
}

impl RawPiMutex {
    /// Creates a mutex for the threads of this process, or of all processes that map its memory.
    pub const fn with_scope(scope: Scope) -> Self {
        Self {
            posix: PosixMutexOptions::new()
                .flavour(PosixFlavour::PriorityInheriting)
                .scope(scope)
                .build_raw(),
            owner_died: AtomicBool::new(false),
        }
    }

    /// Decides whether the calling thread, which has the kernel's lock, keeps it: only if no owner
    /// has ever died.
    #[inline]
    fn admit(&self, owner_died: bool) -> Result<(), LockError> {
        // Relaxed, also below: written and read with the lock held.
        if !owner_died && !self.owner_died.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.refuse();
        Err(LockError::OwnerDied)
    }

    #[cold]
    fn refuse(&self) {
        self.owner_died.store(true, Ordering::Relaxed);
        // SAFETY: `admit`'s caller has just locked it and has no guard yet. After this, it gets an
        // error.
        unsafe { self.unlock() };
    }
}

// SAFETY: the kernel gives the word to one thread at a time. It passes the word on without an
// unlock only when the owner has ended, and reports that to the thread that takes it next. `admit`
// refuses that thread and all later ones.
unsafe impl RawFallibleMutex for RawPiMutex {
    #[allow(clippy::declare_interior_mutable_const, reason = "each use makes a new mutex")]
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
        // SAFETY: the caller locked it, by this function's contract. In a forked child it did so as
        // another thread; the mutex still records that owner and returns `NotOwner`.
        let _ = unsafe { self.posix.unlock_checked() };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.posix.is_locked()
    }

    unsafe fn wait(&self, condvar: &RawCondvar, deadline: Option<&Deadline>) -> Waited {
        // SAFETY: forwards this function's own contract.
        match unsafe { condvar.wait_and_report(&self.posix, deadline.into()) } {
            Waited::Held { owner_died, .. } if self.admit(owner_died).is_err() => {
                Waited::NotHeld(LockError::OwnerDied)
            }
            waited => waited,
        }
    }
}
