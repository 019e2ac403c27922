//! What is wrong with a count that a semaphore, a barrier or a latch was given.

use core::fmt;

/// A count that a semaphore, a barrier or a latch cannot have. [`raw_os_error`](Self::raw_os_error) gives POSIX's
/// number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CountError {
    /// To begin with: zero where there must be somebody, or more than the maximum (`EINVAL`).
    Invalid,
    /// A post would bring a semaphore above its maximum (`EOVERFLOW`). It has not been changed.
    Overflow,
    /// More is counted off a latch than is left (`EINVAL`). It has not been changed.
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
