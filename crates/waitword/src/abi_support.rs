//! What the C ABI (`waitword-c`) and the pthread drop-in (`waitword-pthread`) need of this crate, and no other program. It is
//! not part of the crate's interface: it may change with any version.
//!
//! The parts of a lock that are inlined into a C function, with the rest out of line; waits that a cancellation ends;
//! settings of a whole process. As traits, so that a call reads like a method of the type.

use crate::lock::{
    CountError, LockError, Once, PosixFlavour, RawCondvar, RawPosixMutex, RawRwLock, Semaphore,
};
use crate::sys::clock::Deadline;
use crate::{Error, stats};

pub use crate::door::classic::{answer_of_pi, futex_interruptible};
pub use crate::lock::condvar::Wakeup;
pub use crate::lock::interrupter::{Interrupter, SetAside};
pub use crate::lock::mutex::{GivenBack, LateWaiter};
pub use crate::lock::once::OnceRun;
pub use crate::lock::tokens::PostedTo;
pub use stats::add_locks;

/// Registers the handler of `pthread_atfork` that clears in a child what the kernel does not
/// (`sys/fork.rs`). Handlers that the program registers later may use locks in the child.
pub fn register_fork_handler() {
    crate::sys::fork::register();
}

/// Halves of lock and unlock.
pub trait MutexHalves {
    /// Takes it if it keeps no owner, is free, and no thread waits. False: nothing has been done.
    fn lock_plain_at_once(&self) -> bool;

    /// Takes it past threads that wait if it keeps no owner and is free, and returns whether it did. The caller may be
    /// unwound or left from any instruction of this, as of the part before.
    fn barge_plain(&self) -> bool;

    /// Gives it back if it keeps no owner and no thread waits; whether it did.
    ///
    /// # Safety
    /// The caller holds it.
    unsafe fn unlock_plain_at_once(&self) -> bool;

    /// Gives it back if it keeps no owner and no thread has to be woken, and returns whether it did. The caller may be left
    /// from any instruction of this.
    ///
    /// # Safety
    /// The caller holds it.
    unsafe fn unlock_plain_to_the_awake(&self) -> bool;

    /// Takes it if it keeps an owner, is private, and is free or the caller's to be locked once more. False: nothing has been
    /// done; the whole call knows why.
    fn lock_owned_at_once(&self) -> bool;

    /// Gives it back, or one level of it, if it keeps an owner and no thread waits.
    ///
    /// # Safety
    /// The caller holds it, or it has an owner and can tell.
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
        // SAFETY: forwards this function's own contract.
        unsafe { self.unlock_plain_at_once() }
    }

    #[inline(always)]
    unsafe fn unlock_plain_to_the_awake(&self) -> bool {
        // SAFETY: forwards this function's own contract.
        unsafe { self.unlock_plain_to_the_awake() }
    }

    #[inline(always)]
    fn lock_owned_at_once(&self) -> bool {
        self.lock_owned_at_once()
    }

    #[inline(always)]
    unsafe fn unlock_owned_at_once(&self) -> GivenBack<'_> {
        // SAFETY: forwards this function's own contract.
        unsafe { self.unlock_owned_at_once() }
    }
}

/// Parts of taking and giving back that are most often enough.
pub trait RwLockHalves {
    /// Takes it for reading if one compare-and-swap of its word does that. False: nothing has been done.
    fn read_at_once(&self) -> bool;

    /// The same after `read_at_once` has failed, if it failed since another CPU had just changed the word.
    fn read_past_others(&self) -> bool;

    /// The same for a writer that does not say who it is.
    fn write_at_once(&self) -> bool;

    /// Gives back what a reader holds by the word, if the queue needs no look. Returns false if it has done nothing.
    ///
    /// # Safety
    /// If it is held for reading, the caller holds it.
    unsafe fn unlock_read_at_once(&self) -> bool;

    /// Gives back what a writer holds that has not said who it is, if the word says nothing else. False: nothing has been
    /// done.
    ///
    /// # Safety
    /// If it is held for writing, the caller holds it.
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
        // SAFETY: forwards this function's own contract.
        unsafe { self.unlock_read_at_once() }
    }

    #[inline(always)]
    unsafe fn unlock_write_at_once(&self) -> bool {
        // SAFETY: forwards this function's own contract.
        unsafe { self.unlock_write_at_once() }
    }
}

/// Waits that another thread may end, as a cancellation point needs, and waits with another library's mutex.
pub trait CancellableCondvar {
    /// [`wait`](RawCondvar::wait) that ends, too, when another thread interrupts it `by` this. The mutex is held again then, and
    /// no signal was spent on the caller. A process-shared condition variable's waits are not ended.
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

    /// Waits with a mutex of another library, which lies at `address`: `unlock` gives it back once the caller can be found by
    /// a signal. When this returns it is for the caller to lock it again. For private condition variables; each signal wakes.
    ///
    /// # Errors
    /// [`LockError::TimedOut`]. [`LockError::Invalid`]: threads wait here with another mutex, or this is a signal handler that
    /// interrupted a wait; then `unlock` was not called.
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
        // SAFETY: forwards this function's own contract.
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
        // SAFETY: forwards this function's own contract.
        unsafe { self.wait_with(address, unlock, deadline, by) }
    }
}

/// Waits that another thread may end.
pub trait CancellableSemaphore {
    /// [`wait_interruptible`](Semaphore::wait_interruptible) that ends, too, when another thread interrupts it `by` this. For
    /// private semaphores; in a process-shared one only signals end a wait. Blocks.
    ///
    /// # Errors
    /// As [`wait_interruptible`](Semaphore::wait_interruptible). The interrupter says whether it was by that or by a signal.
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

/// [`Once::execute`] in two steps, for a caller whose function may be left in ways that run no destructors: begins, or waits
/// for the thread that has begun, until the deadline. `None` if it has been done. Blocks.
///
/// # Errors
/// [`Error::TimedOut`].
pub fn begin_executing<'a>(
    once: &'a Once,
    deadline: Option<&Deadline>,
) -> Result<Option<OnceRun<'a>>, Error> {
    once.begin_executing(deadline)
}

/// Parts of a post and of a signal that are most often enough.
pub trait SemaphoreHalves {
    /// [`post`](Semaphore::post), up to the wake-up, which is left to the caller if there may be somebody to wake.
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

/// Of a condition variable.
pub trait CondvarHalves {
    /// Whether there may be somebody to signal, by one load.
    fn may_have_waiters(&self) -> bool;
}

impl CondvarHalves for RawCondvar {
    #[inline(always)]
    fn may_have_waiters(&self) -> bool {
        self.may_have_waiters()
    }
}

/// Has all mutexes of the adaptive flavour in this process wait as those of `flavour` do;
/// [`Adaptive`](PosixFlavour::Adaptive) takes that back. Best called before the first lock.
///
/// # Errors
/// [`LockError::Invalid`] for [`PriorityInheriting`](PosixFlavour::PriorityInheriting): such a mutex is made of other words.
pub fn stand_in_for_adaptive(flavour: PosixFlavour) -> Result<(), LockError> {
    flavour.stand_in_for_adaptive()
}
