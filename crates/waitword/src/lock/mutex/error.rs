//! Why a lock or an unlock failed.

use crate::sys::Errno;
use core::fmt;

/// Why a lock or an unlock failed. [`raw_os_error`](Self::raw_os_error) returns the POSIX error
/// number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LockError {
    /// The lock is held (`EBUSY`).
    Busy,
    /// The deadline has passed (`ETIMEDOUT`).
    TimedOut,
    /// The caller already holds the lock, or waiting would close a cycle of owners that wait for
    /// each other (`EDEADLK`).
    Deadlock,
    /// The caller does not hold the lock (`EPERM`).
    NotOwner,
    /// The lock cannot be taken once more: too many levels of recursion, or too many readers
    /// (`EAGAIN`).
    TooMany,
    /// The owner ended without unlocking, and the lock is not robust: it can never be locked again
    /// (`ESRCH`).
    OwnerDied,
    /// Threads are waiting on the condition variable with another mutex (`EINVAL`).
    OtherMutex,
    /// The lock has been destroyed, or the memory never held such a lock (`EINVAL`).
    Invalid,
    /// The kernel is out of memory (`ENOMEM`).
    OutOfMemory,
    /// The running kernel does not support this (`ENOSYS`).
    Unsupported,
    /// The kernel returned another error number.
    Kernel(i32),
}

impl LockError {
    /// The error number: `EBUSY`, `ETIMEDOUT`, ...
    pub fn raw_os_error(self) -> i32 {
        match self {
            Self::Busy => Errno::BUSY,
            Self::TimedOut => Errno::TIMEDOUT,
            Self::Deadlock => Errno::DEADLK,
            Self::NotOwner => Errno::PERM,
            Self::TooMany => Errno::AGAIN,
            Self::OwnerDied => Errno::SRCH,
            Self::OtherMutex | Self::Invalid => Errno::INVAL,
            Self::OutOfMemory => Errno::NOMEM,
            Self::Unsupported => Errno::NOSYS,
            Self::Kernel(code) => return code,
        }
        .raw_os_error()
    }
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Busy => "the lock is held",
            Self::TimedOut => "the deadline has passed",
            Self::Deadlock => "the caller holds the lock already, or would wait for itself",
            Self::NotOwner => "the caller does not hold the lock",
            Self::TooMany => "the lock cannot be taken once more",
            Self::OwnerDied => "the lock's owner ended without unlocking it",
            Self::OtherMutex => "threads wait on the condition variable with another mutex",
            Self::Invalid => "not a lock, or a destroyed one",
            Self::OutOfMemory => "out of memory",
            Self::Unsupported => "the kernel cannot do this",
            Self::Kernel(code) => {
                return write!(f, "{}", std::io::Error::from_raw_os_error(*code));
            }
        })
    }
}

impl core::error::Error for LockError {}
