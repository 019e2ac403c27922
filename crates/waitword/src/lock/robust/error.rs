//! What a robust mutex answers.

use crate::lock::pi::PiError;
use crate::sys::Errno;
use core::fmt;

/// How a robust mutex was had. Either way the caller holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum RobustLocked {
    /// As it should be (0).
    Clean,
    /// A holder has died, and the caller is the first to hold it since (`EOWNERDEAD`). What the mutex protects may
    /// be half changed: repair it and mark it consistent before unlocking.
    OwnerDied,
}

impl RobustLocked {
    /// POSIX's number for it: 0 or `EOWNERDEAD`.
    pub fn raw_os_error(self) -> i32 {
        match self {
            Self::Clean => 0,
            Self::OwnerDied => Errno::OWNERDEAD.raw_os_error(),
        }
    }
}

/// Why a robust mutex did not do what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RobustError {
    /// Somebody who had it after a holder's death has unlocked it without marking it consistent. It will never be
    /// lockable again (`ENOTRECOVERABLE`).
    NotRecoverable,
    /// A `try_lock`, and somebody holds it (`EBUSY`).
    Busy,
    /// The deadline has passed (`ETIMEDOUT`).
    TimedOut,
    /// The caller holds it already, or holders with priority inheritance wait for each other in a ring (`EDEADLK`).
    Deadlock,
    /// A recursive mutex is held as many times as can be counted, 2^32 - 1 (`EAGAIN`).
    TooDeep,
    /// An unlock by a thread that does not hold it (`EPERM`).
    NotOwner,
    /// Marked consistent by a thread that does not hold it, or while it was not inconsistent (`EINVAL`).
    NotInconsistent,
    /// This thread's list of robust mutexes, which the C library has registered, is laid out in another way than glibc's
    /// for 64-bit machines, so that ours cannot stand in it; or the kernel knows no robust mutexes, or no
    /// priority inheritance (`ENOTSUP`).
    Unsupported,
    /// The kernel has no memory for its queue (`ENOMEM`).
    OutOfMemory,
    /// The kernel refused for a reason of its own. `ESRCH`: priority inheritance, and the word names an owner that
    /// does not exist, for instance one that held more mutexes as it died than the kernel looks at.
    Kernel(i32),
}

impl RobustError {
    /// POSIX's number for it.
    pub fn raw_os_error(self) -> i32 {
        let errno = match self {
            Self::NotRecoverable => Errno::NOTRECOVERABLE,
            Self::Busy => Errno::BUSY,
            Self::TimedOut => Errno::TIMEDOUT,
            Self::Deadlock => Errno::DEADLK,
            Self::TooDeep => Errno::AGAIN,
            Self::NotOwner => Errno::PERM,
            Self::NotInconsistent => Errno::INVAL,
            Self::Unsupported => Errno::NOTSUP,
            Self::OutOfMemory => Errno::NOMEM,
            Self::Kernel(code) => return code,
        };
        errno.raw_os_error()
    }
}

impl fmt::Display for RobustError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotRecoverable => "the mutex cannot be recovered: it was never marked consistent",
            Self::Busy => "the mutex is held",
            Self::TimedOut => "the deadline has passed",
            Self::Deadlock => "the mutex would never be had: the caller holds it",
            Self::TooDeep => "the mutex is held too many times",
            Self::NotOwner => "the caller does not hold the mutex",
            Self::NotInconsistent => "the mutex is not inconsistent, or not held by the caller",
            Self::Unsupported => {
                "robust mutexes cannot be had beside this C library, or on this kernel"
            }
            Self::OutOfMemory => "memory is short",
            Self::Kernel(code) => {
                return write!(
                    f,
                    "the kernel refused: {}",
                    std::io::Error::from_raw_os_error(*code)
                );
            }
        })
    }
}

impl core::error::Error for RobustError {}

impl From<RobustError> for std::io::Error {
    fn from(error: RobustError) -> Self {
        Self::from_raw_os_error(error.raw_os_error())
    }
}

impl From<PiError> for RobustError {
    fn from(error: PiError) -> Self {
        match error {
            PiError::Busy => Self::Busy,
            PiError::Deadlock => Self::Deadlock,
            PiError::TimedOut => Self::TimedOut,
            PiError::OutOfMemory => Self::OutOfMemory,
            PiError::Unsupported => Self::Unsupported,
            PiError::OwnerGone | PiError::NotOwner | PiError::Kernel(_) => {
                Self::Kernel(error.raw_os_error())
            }
        }
    }
}
