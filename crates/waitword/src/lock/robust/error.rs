//! Results and errors of a robust mutex.

use crate::lock::pi::PiError;
use crate::sys::Errno;
use core::fmt;

/// How a robust mutex was acquired. Either way the caller holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum RobustLocked {
    /// Normally (0).
    Clean,
    /// A holder has died, and the caller is the first to hold the mutex since (`EOWNERDEAD`). The
    /// protected data may be half changed: repair it and mark the mutex consistent before you
    /// unlock it.
    OwnerDied,
}

impl RobustLocked {
    /// The POSIX error number: 0 or `EOWNERDEAD`.
    pub fn raw_os_error(self) -> i32 {
        match self {
            Self::Clean => 0,
            Self::OwnerDied => Errno::OWNERDEAD.raw_os_error(),
        }
    }
}

/// Why an operation on a robust mutex failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RobustError {
    /// A thread that held the mutex after a holder's death unlocked it without marking it
    /// consistent. It can never be locked again (`ENOTRECOVERABLE`).
    NotRecoverable,
    /// `try_lock` found the mutex held (`EBUSY`).
    Busy,
    /// The deadline has passed (`ETIMEDOUT`).
    TimedOut,
    /// The caller already holds the mutex, or the holders of mutexes with priority inheritance wait
    /// for each other in a cycle (`EDEADLK`).
    Deadlock,
    /// A recursive mutex is already locked the maximum number of times, 2^32 - 1 (`EAGAIN`).
    TooDeep,
    /// The unlocking thread does not hold the mutex (`EPERM`).
    NotOwner,
    /// The thread that marked the mutex consistent does not hold it, or the mutex was not
    /// inconsistent (`EINVAL`).
    NotInconsistent,
    /// The C library has registered this thread's list of robust mutexes with a layout other than
    /// glibc's for 64-bit machines, so our mutexes cannot be linked into it; or the kernel does not
    /// support robust mutexes or priority inheritance (`ENOTSUP`).
    Unsupported,
    /// The kernel has no memory for its queue (`ENOMEM`).
    OutOfMemory,
    /// The kernel returned an error of its own. `ESRCH`: with priority inheritance, the word names
    /// an owner that does not exist, for instance one that died holding more mutexes than the
    /// kernel looks at.
    Kernel(i32),
}

impl RobustError {
    /// The POSIX error number.
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
            Self::Deadlock => "the caller holds the mutex already",
            Self::TooDeep => "the mutex is held too many times",
            Self::NotOwner => "the caller does not hold the mutex",
            Self::NotInconsistent => "the mutex is not inconsistent, or not held by the caller",
            Self::Unsupported => "this C library or this kernel does not support robust mutexes",
            Self::OutOfMemory => "out of memory",
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
