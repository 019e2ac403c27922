//! The errors of the counts given to semaphores, barriers and latches.

use core::fmt;

/// A count that a semaphore, a barrier or a latch cannot have. [`raw_os_error`](Self::raw_os_error)
/// returns POSIX's error number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CountError {
    /// The initial count is above the maximum, or zero where at least one thread is needed
    /// (`EINVAL`).
    Invalid,
    /// A post would raise a semaphore above its maximum (`EOVERFLOW`). The semaphore is unchanged.
    Overflow,
    /// A latch would be counted down below zero (`EINVAL`). The latch is unchanged.
    Underflow,
}

impl CountError {
    /// The error number: `EINVAL` or `EOVERFLOW`.
    pub const fn raw_os_error(self) -> i32 {
        match self {
            CountError::Invalid | CountError::Underflow => libc::EINVAL,
            CountError::Overflow => libc::EOVERFLOW,
        }
    }
}

impl fmt::Display for CountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CountError::Invalid => "the count is zero or above the maximum",
            CountError::Overflow => "the semaphore would rise above its maximum",
            CountError::Underflow => "more is counted off than is left",
        })
    }
}

impl core::error::Error for CountError {}

impl From<CountError> for std::io::Error {
    fn from(error: CountError) -> Self {
        std::io::Error::from_raw_os_error(error.raw_os_error())
    }
}
