//! Why a readers-writer lock was not acquired.

use core::fmt;

/// Why a [`RawRwLock`](crate::RawRwLock) was not acquired or released.
/// [`raw_os_error`](Self::raw_os_error) returns POSIX's error number.
///
/// ```
/// use waitword::{RawRwLock, RwLockError};
///
/// let lock = RawRwLock::new();
/// lock.try_write(0)?;
/// assert_eq!(lock.try_read(), Err(RwLockError::Busy));
/// # Ok::<(), RwLockError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RwLockError {
    /// The lock is held, and the call does not wait (`EBUSY`).
    Busy,
    /// The deadline has passed (`ETIMEDOUT`).
    TimedOut,
    /// The maximum number of readers, 2^31 - 1, hold the lock (`EAGAIN`).
    TooManyReaders,
    /// The caller already holds the lock for writing (`EDEADLK`).
    Deadlock,
    /// No thread holds the lock, so it cannot be released (`EPERM`).
    NotLocked,
}

impl RwLockError {
    /// Returns the error number: `EBUSY`, `ETIMEDOUT`, ...
    pub fn raw_os_error(self) -> i32 {
        match self {
            Self::Busy => libc::EBUSY,
            Self::TimedOut => libc::ETIMEDOUT,
            Self::TooManyReaders => libc::EAGAIN,
            Self::Deadlock => libc::EDEADLK,
            Self::NotLocked => libc::EPERM,
        }
    }
}

impl fmt::Display for RwLockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Busy => "the lock is held",
            Self::TimedOut => "the deadline has passed",
            Self::TooManyReaders => "too many readers hold the lock",
            Self::Deadlock => "the caller holds the lock for writing already",
            Self::NotLocked => "the lock is not held",
        })
    }
}

impl core::error::Error for RwLockError {}
