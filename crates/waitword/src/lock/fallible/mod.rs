//! Mutexes whose lock may be refused: error-checking ones and priority-inheriting ones, each with
//! its condition variable.
//!
//! | file | contents |
//! |------|----------|
//! | `raw.rs` | the contract of such a mutex, and the two that fulfil it |
//! | `api.rs` | the data and its guard |
//! | `condvar.rs` | the condition variable: one mutex at a time, and no guard without its lock |
//! | `serialized.rs` | the mutex as serde sees it |
//!
//! `lock_api` has no place for them: its `lock` cannot fail and always returns a guard. Here every
//! way to the data returns a [`LockError`](super::LockError) instead, and an error never comes with
//! access.
//!
//! # A guard proves nothing about its thread
//!
//! `mem::forget` and `Box::leak` are safe, so a thread may end with its guard leaked and the borrow
//! in another thread's hands. An error-checking mutex then stays locked. But the kernel hands a
//! priority-inheriting one to the next waiter, and without waiters the mutex names a thread that is
//! gone. Both cases are detected (`OWNER_DIED` in the word; `ESRCH`). From then on, every lock of
//! that mutex returns [`OwnerDied`](super::LockError::OwnerDied): a borrow may exist, so there is
//! no access. For a mutex that outlives its owner's *process*, use
//! [`RobustMutex`](crate::RobustMutex).

mod api;
mod condvar;
mod raw;
#[cfg(feature = "serde")]
mod serialized;

pub use api::{FallibleMutex, FallibleMutexGuard};
pub use condvar::FallibleCondvar;
pub use raw::{RawCheckedMutex, RawFallibleMutex, RawPiMutex};

/// A mutex that refuses a second lock by its owner, for which a plain one would wait in vain.
///
/// `lock` returns [`Deadlock`](super::LockError::Deadlock) where a [`Mutex`](crate::Mutex) would
/// hang. That costs a store of the owner's TID with each lock and unlock. For other flavours and
/// scopes, use [`MutexOptions::build_checked`](crate::MutexOptions::build_checked). Source: POSIX's
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
/// off in order of priority (FUTEX_LOCK_PI). For real-time threads; slow for all others.
///
/// `lock` returns [`Deadlock`](super::LockError::Deadlock) if the calling thread holds it or
/// waiting would close a cycle of owners, and [`OwnerDied`](super::LockError::OwnerDied) once a
/// thread has ended while holding it. Source: POSIX's `PTHREAD_PRIO_INHERIT`; the kernel's
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

/// A condition variable for [`PiMutex`]. Its signals wake waiters in order of priority, and a woken
/// waiter lends its priority to the mutex's holder.
pub type PiCondvar = FallibleCondvar<RawPiMutex>;
