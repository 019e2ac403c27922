//! Why an operation failed.

use crate::private::OutOfMemory;
use crate::sys::Errno;
use core::fmt;

/// Why an operation failed. [`raw_os_error`](Self::raw_os_error) returns the kernel's number for
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Error {
    /// The word does not hold the expected value (`EAGAIN`).
    Mismatch,
    /// The deadline passed before the waiter was woken (`ETIMEDOUT`).
    TimedOut,
    /// A signal handler ran (`EINTR`). As described in signal(7), this ends a wait if the handler
    /// was installed without `SA_RESTART` or if the wait has a deadline. Where the kernel's
    /// `futex_waitv` does the waiting (a shared 64-bit word, or [`wait_any`](crate::wait_any) with
    /// a shared word), a wait with a deadline is restarted too. A wait in a child that was forked
    /// by the handler also ends this way. While there is no memory for a place to sleep in, signals
    /// do not end a wait.
    Interrupted,
    /// The running kernel cannot do this for a process-shared word of this size (`ENOSYS`): see
    /// [`Futex::shared`](crate::Futex::shared).
    Unsupported,
    /// The machine has no such NUMA node (`EINVAL`).
    NoSuchNode,
    /// An operation on two words was given a private and a shared one (`EINVAL`).
    DifferentScopes,
    /// No words to wait for (`EINVAL`).
    NoWords,
    /// More words than one call can wait for (`EINVAL`): see [`wait_any`](crate::wait_any).
    TooManyWords,
    /// Out of memory (`ENOMEM`).
    OutOfMemory,
    /// The kernel refused for another reason, for instance `EFAULT` for memory that cannot be
    /// shared.
    Kernel(i32),
}

impl Error {
    /// The error number: `EAGAIN`, `ETIMEDOUT`, ...
    pub fn raw_os_error(self) -> i32 {
        Errno::from(self).raw_os_error()
    }

    /// For the recorder, which tells the ends of waits apart.
    pub(crate) fn is_timeout(&self) -> bool {
        *self == Self::TimedOut
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::Mismatch => "the word does not hold the expected value",
            Error::TimedOut => "the deadline has passed",
            Error::Interrupted => "interrupted by a signal handler",
            Error::Unsupported => {
                "the kernel cannot do this for a process-shared word of this size"
            }
            Error::NoSuchNode => "no such NUMA node",
            Error::DifferentScopes => "a private and a process-shared word in one operation",
            Error::NoWords => "no words to wait for",
            Error::TooManyWords => "too many words to wait for",
            Error::OutOfMemory => "out of memory",
            Error::Kernel(code) => {
                return write!(
                    f,
                    "the kernel refused: {}",
                    std::io::Error::from_raw_os_error(*code)
                );
            }
        })
    }
}

impl core::error::Error for Error {}

impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        std::io::Error::from_raw_os_error(error.raw_os_error())
    }
}

impl From<Error> for Errno {
    fn from(error: Error) -> Self {
        match error {
            Error::Mismatch => Errno::AGAIN,
            Error::TimedOut => Errno::TIMEDOUT,
            Error::Interrupted => Errno::INTR,
            Error::Unsupported => Errno::NOSYS,
            Error::NoSuchNode | Error::DifferentScopes | Error::NoWords | Error::TooManyWords => {
                Errno::INVAL
            }
            Error::OutOfMemory => Errno::NOMEM,
            Error::Kernel(code) => Errno::from_raw_os_error(code),
        }
    }
}

impl From<Errno> for Error {
    fn from(error: Errno) -> Self {
        match error {
            Errno::AGAIN => Error::Mismatch,
            Errno::TIMEDOUT => Error::TimedOut,
            Errno::INTR => Error::Interrupted,
            Errno::NOSYS => Error::Unsupported,
            Errno::NOMEM => Error::OutOfMemory,
            other => Error::Kernel(other.raw_os_error()),
        }
    }
}

impl From<OutOfMemory> for Error {
    fn from(_: OutOfMemory) -> Self {
        Error::OutOfMemory
    }
}

impl From<crate::park::Ended> for Error {
    fn from(ended: crate::park::Ended) -> Self {
        match ended {
            crate::park::Ended::TimedOut => Error::TimedOut,
            crate::park::Ended::Interrupted => Error::Interrupted,
        }
    }
}
