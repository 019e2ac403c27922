//! Mutexes whose lock may refuse: error-checking ones and priority-inheriting ones, each with its
//! condition variable.
//!
//! | file | what it knows |
//! |------|---------------|
//! | `raw.rs` | what such a mutex promises, and the two that keep it |
//! | `mutex.rs` | the data and its guard |
//! | `condvar.rs` | the condition variable: one mutex at a time, and no guard without its lock |
//! | `serialized.rs` | the mutex as serde sees it |
//!
//! `lock_api` has no place for them: its `lock` cannot fail, and returns a guard whatever happens.
//! Here each way to the data returns a [`LockError`](super::LockError) instead, and an error never
//! comes with access.
//!
//! # A guard proves nothing about its thread
//!
//! `mem::forget` and `Box::leak` are safe, so a thread may end with its guard leaked and the borrow
//! in another thread's hands. Nothing frees an error-checking mutex then: it stays locked. But the
//! kernel hands a priority-inheriting one to the next waiter, and a mutex without waiters names a
//! thread that is gone. Both are found out (`OWNER_DIED` in the word; `ESRCH`), and from then on
//! every lock of that mutex returns [`OwnerDied`](super::LockError::OwnerDied): there may be a
//! borrow, so there is no access. A mutex that outlives its owner's *process* is a
//! [`RobustMutex`](crate::RobustMutex).

mod condvar;
mod mutex;
mod raw;
#[cfg(feature = "serde")]
mod serialized;

pub use condvar::FallibleCondvar;
pub use mutex::{FallibleMutex, FallibleMutexGuard};
pub use raw::{RawCheckedMutex, RawFallibleMutex, RawPiMutex};

/// A mutex that refuses what a plain one waits for in vain: a second lock by its owner.
///
/// `lock` returns [`Deadlock`](super::LockError::Deadlock) where a [`Mutex`](crate::Mutex) would
/// hang. That costs a store of the owner's number with each lock and unlock. For other flavours and
/// scopes: [`MutexOptions::build_checked`](crate::MutexOptions::build_checked). Source: POSIX's
/// `PTHREAD_MUTEX_ERRORCHECK`.
///
/// ```
/// use waitword::{CheckedMutex, LockError};
///
/// static TOTAL: CheckedMutex<u32> = CheckedMutex::new(0);
///
/// let mut total = TOTAL.lock()?;
/// *total += 1;
/// assert_eq!(TOTAL.lock().unwrap_err(), LockError::Deadlock);
/// assert_eq!(TOTAL.try_lock().unwrap_err(), LockError::Busy);
/// # Ok::<(), LockError>(())
/// ```
pub type CheckedMutex<T> = FallibleMutex<RawCheckedMutex, T>;

/// Holds a [`CheckedMutex`] until it is dropped.
pub type CheckedMutexGuard<'a, T> = FallibleMutexGuard<'a, RawCheckedMutex, T>;

/// A condition variable for [`CheckedMutex`].
pub type CheckedCondvar = FallibleCondvar<RawCheckedMutex>;

/// A mutex whose holder runs with the priority of the threads that wait for it. The kernel hands it
/// over in the order of their priorities (FUTEX_LOCK_PI). For real-time threads; slow for all
/// others.
///
/// `lock` returns [`Deadlock`](super::LockError::Deadlock) if the calling thread holds it, or if
/// owners would wait for each other in a ring, and [`OwnerDied`](super::LockError::OwnerDied) once
/// a thread has ended that held it. Source: POSIX's `PTHREAD_PRIO_INHERIT`; the kernel's
/// `Documentation/locking/rt-mutex.rst`.
///
/// ```
/// use waitword::{LockError, PiCondvar, PiMutex};
///
/// static READY: PiMutex<bool> = PiMutex::new(false);
/// static CHANGED: PiCondvar = PiCondvar::new();
///
/// let other = std::thread::spawn(|| {
///     *READY.lock()? = true;
///     CHANGED.notify_one();
///     Ok::<(), LockError>(())
/// });
/// let mut ready = READY.lock()?;
/// while !*ready {
///     ready = CHANGED.wait(ready)?;
/// }
/// # drop(ready);
/// other.join().unwrap()?;
/// # Ok::<(), LockError>(())
/// ```
pub type PiMutex<T> = FallibleMutex<RawPiMutex, T>;

/// Holds a [`PiMutex`] until it is dropped.
pub type PiMutexGuard<'a, T> = FallibleMutexGuard<'a, RawPiMutex, T>;

/// A condition variable for [`PiMutex`]. Its signals wake waiters in the order of their priorities,
/// and a woken waiter lends its priority to the mutex's holder.
pub type PiCondvar = FallibleCondvar<RawPiMutex>;
