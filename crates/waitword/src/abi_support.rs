//! What the C ABI (`waitword-c`) and the pthread drop-in (`waitword-pthread`) need of this crate.
//! Not for other programs: it is not part of the crate's interface and may change with any version.
//!
//! It contains the parts of a lock that are inlined into a C function, with the rest out of line;
//! waits that a cancellation ends; and settings of a whole process. They are traits, so that a call
//! reads like a method of the type.

use crate::lock::{
    CountError, LockError, Once, PosixFlavour, RawCondvar, RawPosixMutex, RawRwLock, Semaphore,
};
use crate::sys::clock::Deadline;
use crate::{Error, stats};

pub use crate::lock::condvar::Wakeup;
pub use crate::lock::interrupter::{Interrupter, SetAside};
pub use crate::lock::mutex::{GivenBack, LateWaiter};
pub use crate::lock::once::OnceRun;
pub use crate::lock::tokens::PostedTo;
pub use crate::raw::classic::{answer_of_pi, futex_interruptible};
pub use stats::add_locks;

/// Registers the handler of `pthread_atfork` that clears in a child what the kernel does not
/// (`sys/fork.rs`). Handlers that the program registers later may use locks in the child.
pub fn register_fork_handler() {
    crate::sys::fork::register();
}

/// The fast parts of lock and unlock.
pub trait MutexHalves {
    /// Acquires the mutex if it keeps no owner, is free and has no waiters. Returns false if it did
    /// nothing.
    fn lock_plain_at_once(&self) -> bool;

    /// Acquires the mutex, past any waiters, if it is private, keeps no owner and is free. Returns
    /// whether it did. The caller may be unwound or may leave at any instruction of this, as at any
    /// of `lock_plain_at_once`.
    fn barge_plain(&self) -> bool;

    /// Releases the mutex if it keeps no owner and has no waiters. Returns whether it did.
    ///
    /// # Safety
    /// The caller holds it.
    unsafe fn unlock_plain_at_once(&self) -> bool;

    /// Releases the mutex if it is private, keeps no owner and no thread has to be woken. Returns
    /// whether it did. The caller may leave at any instruction of this.
    ///
    /// # Safety
    /// The caller holds it.
    unsafe fn unlock_plain_to_the_awake(&self) -> bool;

    /// Acquires the mutex if it keeps an owner, is private, and is either free or held by the
    /// caller and may be locked again. Returns false if it did nothing; the full call finds out
    /// why.
    fn lock_owned_at_once(&self) -> bool;

    /// Releases the mutex, or one level of it, if it keeps an owner and no thread has to be woken.
    ///
    /// # Safety
    /// The caller holds it, or the mutex keeps an owner and so detects that the caller does not.
    unsafe fn unlock_owned_at_once(&self) -> GivenBack<'_>;
}

impl MutexHalves for RawPosixMutex {
    #[inline(always)]
    fn lock_plain_at_once(&self) -> bool {
        self.lock_plain_at_once()
    }

    #[inline(always)]
    fn barge_plain(&self) -> bool {
        self.barge_plain()
    }

    #[inline(always)]
    unsafe fn unlock_plain_at_once(&self) -> bool {
        // SAFETY: this function's own contract.
        unsafe { self.unlock_plain_at_once() }
    }

    #[inline(always)]
    unsafe fn unlock_plain_to_the_awake(&self) -> bool {
        // SAFETY: this function's own contract.
        unsafe { self.unlock_plain_to_the_awake() }
    }

    #[inline(always)]
    fn lock_owned_at_once(&self) -> bool {
        self.lock_owned_at_once()
    }

    #[inline(always)]
    unsafe fn unlock_owned_at_once(&self) -> GivenBack<'_> {
        // SAFETY: this function's own contract.
        unsafe { self.unlock_owned_at_once() }
    }
}

/// The parts of acquiring and releasing that are usually enough.
pub trait RwLockHalves {
    /// Acquires the lock for reading if one compare-and-swap of its word does that. Returns false
    /// if it did nothing.
    fn read_at_once(&self) -> bool;

    /// The same after `read_at_once` has failed, if it failed because another CPU had just changed
    /// the word.
    fn read_past_others(&self) -> bool;

    /// The same for a writer that does not record its identity.
    fn write_at_once(&self) -> bool;

    /// Releases a read lock that is held in the word, if the queue need not be looked at. Returns
    /// false if it did nothing.
    ///
    /// # Safety
    /// If the lock is held for reading, the caller holds it.
    unsafe fn unlock_read_at_once(&self) -> bool;

    /// Releases a write lock whose holder did not record its identity, if the word holds nothing
    /// else. Returns false if it did nothing.
    ///
    /// # Safety
    /// If the lock is held for writing, the caller holds it.
    unsafe fn unlock_write_at_once(&self) -> bool;
}

impl RwLockHalves for RawRwLock {
    #[inline(always)]
    fn read_at_once(&self) -> bool {
        self.read_at_once()
    }

    #[inline(always)]
    fn read_past_others(&self) -> bool {
        self.read_past_others()
    }

    #[inline(always)]
    fn write_at_once(&self) -> bool {
        self.write_at_once()
    }

    #[inline(always)]
    unsafe fn unlock_read_at_once(&self) -> bool {
        // SAFETY: this function's own contract.
        unsafe { self.unlock_read_at_once() }
    }

    #[inline(always)]
    unsafe fn unlock_write_at_once(&self) -> bool {
        // SAFETY: this function's own contract.
        unsafe { self.unlock_write_at_once() }
    }
}

/// Waits that another thread may end, as a cancellation point needs, and waits with another
/// library's mutex.
pub trait CancellableCondvar {
    /// [`wait`](RawCondvar::wait) that also ends when another thread interrupts it through `by`.
    /// The mutex is then held again, and the caller has not consumed a signal. Waits on a
    /// process-shared condition variable are not ended.
    ///
    /// # Errors
    /// As [`wait`](RawCondvar::wait).
    ///
    /// # Safety
    /// As [`wait`](RawCondvar::wait).
    unsafe fn wait_interruptible(
        &self,
        mutex: &RawPosixMutex,
        deadline: Option<&Deadline>,
        by: &Interrupter,
    ) -> Result<Wakeup, LockError>;

    /// Waits with a mutex of another library, which lies at `address`. `unlock` releases it once a
    /// signal can find the caller. After this returns, the caller must lock the mutex again. For
    /// private condition variables; each signal wakes a thread.
    ///
    /// # Errors
    /// [`LockError::TimedOut`]. [`LockError::Invalid`]: threads wait here with another mutex, or
    /// this is a signal handler that interrupted a wait; then `unlock` was not called.
    ///
    /// # Safety
    /// `unlock` may be called on this thread, once, and does not panic.
    unsafe fn wait_with(
        &self,
        address: usize,
        unlock: impl Fn(),
        deadline: Option<&Deadline>,
        by: &Interrupter,
    ) -> Result<Wakeup, LockError>;
}

impl CancellableCondvar for RawCondvar {
    #[inline(always)]
    unsafe fn wait_interruptible(
        &self,
        mutex: &RawPosixMutex,
        deadline: Option<&Deadline>,
        by: &Interrupter,
    ) -> Result<Wakeup, LockError> {
        // SAFETY: this function's own contract.
        unsafe { self.wait_interruptible(mutex, deadline, by) }
    }

    #[inline(always)]
    unsafe fn wait_with(
        &self,
        address: usize,
        unlock: impl Fn(),
        deadline: Option<&Deadline>,
        by: &Interrupter,
    ) -> Result<Wakeup, LockError> {
        // SAFETY: this function's own contract.
        unsafe { self.wait_with(address, unlock, deadline, by) }
    }
}

/// Waits that another thread may end.
pub trait CancellableSemaphore {
    /// [`wait_interruptible`](Semaphore::wait_interruptible) that also ends when another thread
    /// interrupts it through `by`. For private semaphores; in a process-shared one only signals end
    /// a wait. Blocks.
    ///
    /// # Errors
    /// As [`wait_interruptible`](Semaphore::wait_interruptible). The interrupter knows whether it
    /// or a signal ended the wait.
    fn wait_interruptible_by(
        &self,
        deadline: Option<Deadline>,
        by: &Interrupter,
    ) -> Result<(), Error>;
}

impl CancellableSemaphore for Semaphore {
    #[inline(always)]
    fn wait_interruptible_by(
        &self,
        deadline: Option<Deadline>,
        by: &Interrupter,
    ) -> Result<(), Error> {
        self.wait_interruptible_by(deadline, by)
    }
}

/// [`Once::execute`] in two steps, for a caller whose function may be left in ways that run no
/// destructors. Begins, or waits until the deadline for the thread that has begun. Returns `None`
/// if the function has been executed. Blocks.
///
/// # Errors
/// [`Error::TimedOut`].
pub fn begin_executing<'a>(
    once: &'a Once,
    deadline: Option<&Deadline>,
) -> Result<Option<OnceRun<'a>>, Error> {
    once.begin_executing(deadline)
}

/// The part of a post that is usually enough.
pub trait SemaphoreHalves {
    /// [`post`](Semaphore::post) without the wake-up, which is left to the caller if there may be a
    /// waiter.
    ///
    /// # Errors
    /// As `post`.
    fn post_at_once(&self) -> Result<Option<PostedTo>, CountError>;
}

impl SemaphoreHalves for Semaphore {
    #[inline(always)]
    fn post_at_once(&self) -> Result<Option<PostedTo>, CountError> {
        self.post_at_once()
    }
}

/// The part of a condition variable's signal that is usually enough.
pub trait CondvarHalves {
    /// Whether there may be a waiter to signal. One load.
    fn may_have_waiters(&self) -> bool;
}

impl CondvarHalves for RawCondvar {
    #[inline(always)]
    fn may_have_waiters(&self) -> bool {
        self.may_have_waiters()
    }
}

/// Makes all mutexes of the adaptive flavour in this process wait like those of `flavour`;
/// [`Adaptive`](PosixFlavour::Adaptive) undoes that. Best called before the first lock.
///
/// # Errors
/// [`LockError::Invalid`] for [`PriorityInheriting`](PosixFlavour::PriorityInheriting): such a
/// mutex consists of different words.
pub fn stand_in_for_adaptive(flavour: PosixFlavour) -> Result<(), LockError> {
    flavour.stand_in_for_adaptive()
}
