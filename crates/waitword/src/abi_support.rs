//! What the pthread drop-in (`waitword-pthread`) and the code that it shares with the C ABI
//! (`waitword-abi`) need beyond the public interface. Not for other programs: this is not part of
//! the crate's interface and may change with any version.
//!
//! There is one trait of *hooks* for each lock, so that a call reads like a method of the lock:
//!
//! * `*_at_once` and the like: the part of an operation that is inlined into a C function and is
//!   usually enough. If it was not enough, the full operation is called, out of line.
//! * Waits that a cancellation ends, by an [`Interrupter`]; a wait with another library's mutex; a
//!   once in two steps.

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

/// A number that differs between a process and its forked children, and is never 0. Does not block;
/// async-signal-safe.
#[inline]
pub fn process_number() -> u32 {
    crate::sys::generation::generation()
}

/// [`time_slice::extend`](crate::time_slice::extend) without a guard: whether this call asked. Then
/// the same thread ends the section by [`end_time_slice_extension`].
pub fn extend_time_slice() -> bool {
    crate::sys::time_slice::request()
}

/// Ends a section in which [`extend_time_slice`] has asked.
pub fn end_time_slice_extension() {
    crate::sys::time_slice::release();
}

/// Makes all mutexes of the adaptive flavour in this process wait like those of `flavour`;
/// [`Adaptive`](PosixFlavour::Adaptive) undoes that. Best called before the first lock.
///
/// # Errors
/// [`LockError::Invalid`] for [`PriorityInheriting`](PosixFlavour::PriorityInheriting): such a
/// mutex consists of different words.
pub fn set_default_flavour(flavour: PosixFlavour) -> Result<(), LockError> {
    flavour.override_adaptive()
}

/// `hooks! { trait A for B { safe methods } unsafe { unsafe methods } }`: the trait `A`, whose
/// methods call the methods of the same names that `B` keeps to this crate.
macro_rules! hooks {
    (
        $(#[$doc:meta])*
        trait $hooks:ident for $lock:ident {$(
            $(#[$safe_doc:meta])*
            fn $safe:ident(&self $(, $safe_argument:ident: $safe_type:ty)*) -> $safe_result:ty;
        )*}
        unsafe {$(
            $(#[$unsafe_doc:meta])*
            fn $unsafe:ident(&self $(, $argument:ident: $type:ty)*) -> $result:ty;
        )*}
    ) => {
        $(#[$doc])*
        pub trait $hooks {
            $(
                $(#[$safe_doc])*
                fn $safe(&self $(, $safe_argument: $safe_type)*) -> $safe_result;
            )*
            $(
                $(#[$unsafe_doc])*
                unsafe fn $unsafe(&self $(, $argument: $type)*) -> $result;
            )*
        }

        impl $hooks for $lock {
            $(
                #[inline(always)]
                fn $safe(&self $(, $safe_argument: $safe_type)*) -> $safe_result {
                    <$lock>::$safe(self $(, $safe_argument)*)
                }
            )*
            $(
                #[inline(always)]
                unsafe fn $unsafe(&self $(, $argument: $type)*) -> $result {
                    // SAFETY: forwards this function's own contract, that of the lock's method.
                    unsafe { <$lock>::$unsafe(self $(, $argument)*) }
                }
            )*
        }
    };
}

hooks! {
    /// Hooks of a mutex.
    trait MutexHooks for RawPosixMutex {
        /// Acquires the mutex if it keeps no owner, is free and has no waiters. Returns false if it
        /// did nothing.
        fn lock_plain_at_once(&self) -> bool;

        /// Acquires the mutex, past any waiters, if it is private, keeps no owner and is free.
        /// Returns whether it did. The caller may be unwound or may leave at any instruction of
        /// this, as at any of `lock_plain_at_once`.
        fn barge_plain(&self) -> bool;

        /// The first looks of a wait for a private mutex that keeps no owner. Returns whether the
        /// caller has it. The caller may be unwound or may leave, as for `barge_plain`.
        fn look_plain(&self) -> bool;

        /// Acquires the mutex if it keeps an owner, is private, and is either free or held by the
        /// caller and may be locked again. Returns false if it did nothing; the full call finds out
        /// why.
        fn lock_owned_at_once(&self) -> bool;

        /// Whether threads seem to wait for the mutex, and its holder holds it once.
        fn has_waiters(&self) -> bool;

        /// Whether the mutex, once released, is kept for a waiter.
        fn hands_over(&self) -> bool;
    }
    unsafe {
        /// Releases the mutex if it keeps no owner and has no waiters. Returns whether it did.
        ///
        /// # Safety
        /// The caller holds it.
        fn unlock_plain_at_once(&self) -> bool;

        /// Releases the mutex if it is private, keeps no owner and no thread has to be woken.
        /// Returns whether it did. The caller may leave at any instruction of this.
        ///
        /// # Safety
        /// The caller holds it.
        fn unlock_plain_to_the_awake(&self) -> bool;

        /// Releases the mutex, or one level of it, if it keeps an owner and no thread has to be
        /// woken.
        ///
        /// # Safety
        /// The caller holds it, or the mutex keeps an owner and so detects that the caller does
        /// not.
        fn unlock_owned_at_once(&self) -> GivenBack<'_>;
    }
}

hooks! {
    /// Hooks of an rwlock.
    trait RwLockHooks for RawRwLock {
        /// Acquires the lock for reading if one compare-and-swap of its word does that. Returns
        /// false if it did nothing.
        fn read_at_once(&self) -> bool;

        /// The same after `read_at_once` has failed, if it failed because another CPU had just
        /// changed the word.
        fn read_past_others(&self) -> bool;

        /// The same for a writer that does not record its identity.
        fn write_at_once(&self) -> bool;

        /// Whether threads seem to wait for the lock.
        fn has_waiters(&self) -> bool;
    }
    unsafe {
        /// Releases a read lock that is held in the word, if the queue need not be looked at.
        /// Returns false if it did nothing.
        ///
        /// # Safety
        /// If the lock is held for reading, the caller holds it.
        fn unlock_read_at_once(&self) -> bool;

        /// Releases a write lock whose holder did not record its identity, if the word holds
        /// nothing else. Returns false if it did nothing.
        ///
        /// # Safety
        /// If the lock is held for writing, the caller holds it.
        fn unlock_write_at_once(&self) -> bool;
    }
}

hooks! {
    /// Hooks of a condition variable.
    trait CondvarHooks for RawCondvar {
        /// Whether there may be a waiter to signal. One load.
        fn may_have_waiters(&self) -> bool;
    }
    unsafe {
        /// [`wait`](RawCondvar::wait) that also ends when another thread interrupts it through
        /// `by`. The mutex is then held again, and the caller has not consumed a signal. Waits on a
        /// process-shared condition variable are not ended.
        ///
        /// # Errors
        /// As [`wait`](RawCondvar::wait).
        ///
        /// # Safety
        /// As [`wait`](RawCondvar::wait).
        fn wait_interruptible(
            &self,
            mutex: &RawPosixMutex,
            deadline: Option<&Deadline>,
            by: &Interrupter
        ) -> Result<Wakeup, LockError>;

        /// Waits with a mutex of another library, which lies at `address`. `unlock` releases it
        /// once a signal can find the caller. After this returns, the caller must lock the mutex
        /// again. For private condition variables; each signal wakes a thread.
        ///
        /// # Errors
        /// [`LockError::TimedOut`]. [`LockError::Invalid`]: threads wait here with another mutex,
        /// or this is a signal handler that interrupted a wait; then `unlock` was not called.
        ///
        /// # Safety
        /// `unlock` may be called on this thread, once, and does not panic.
        fn wait_with(
            &self,
            address: usize,
            unlock: impl Fn(),
            deadline: Option<&Deadline>,
            by: &Interrupter
        ) -> Result<Wakeup, LockError>;
    }
}

hooks! {
    /// Hooks of a semaphore.
    trait SemaphoreHooks for Semaphore {
        /// [`post`](Semaphore::post) without the wake-up, which is left to the caller if there may
        /// be a waiter.
        ///
        /// # Errors
        /// As `post`.
        fn post_at_once(&self) -> Result<Option<PostedTo>, CountError>;

        /// [`wait_interruptible`](Semaphore::wait_interruptible) that also ends when another thread
        /// interrupts it through `by`. For private semaphores; in a process-shared one only signals
        /// end a wait. Blocks.
        ///
        /// # Errors
        /// As [`wait_interruptible`](Semaphore::wait_interruptible). The interrupter knows whether
        /// it or a signal ended the wait.
        fn wait_interruptible_by(
            &self,
            deadline: Option<Deadline>,
            by: &Interrupter
        ) -> Result<(), Error>;
    }
    unsafe {}
}

hooks! {
    /// Hooks of a once.
    trait OnceHooks for Once {
        /// [`Once::execute`] in two steps, for a caller whose function may be left in ways that run
        /// no destructors. Begins, or waits until the deadline for the thread that has begun.
        /// Returns `None` if the function has been executed. Blocks.
        ///
        /// # Errors
        /// [`Error::TimedOut`].
        fn begin_executing(
            &self,
            deadline: Option<&Deadline>
        ) -> Result<Option<OnceRun<'_>>, Error>;
    }
    unsafe {}
}
