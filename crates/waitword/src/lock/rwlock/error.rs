//! Why a reader/writer lock was not taken.

use core::fmt;

/// Why a [`RawRwLock`](crate::RawRwLock) was not taken or given back. [`raw_os_error`](Self::raw_os_error) gives POSIX's number.
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
    /// It is held, and the call does not wait (`EBUSY`).
    Busy,
    /// The deadline has passed (`ETIMEDOUT`).
    TimedOut,
    /// As many readers hold it as can be counted, 2^31 - 1 (`EAGAIN`).
    TooManyReaders,
    /// The caller holds it for writing already (`EDEADLK`).
    Deadlock,
    /// Nobody holds it, so nobody can give it back (`EPERM`).
    NotLocked,
}

impl RwLockError {
    /// The error number: `EBUSY`, `ETIMEDOUT`, ...
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
            Self::NotLocked => "nobody holds the lock",
        })
    }
}

impl core::error::Error for RwLockError {}
