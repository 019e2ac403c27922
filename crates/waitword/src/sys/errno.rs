//! The kernel's error numbers.

use core::fmt;

/// An error number of the kernel.
///
/// ```
/// use waitword::raw::Errno;
///
/// assert_eq!(Errno::AGAIN.raw_os_error(), 11);
/// assert_eq!(Errno::from_raw_os_error(22), Errno::INVAL);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Errno(rustix::io::Errno);

macro_rules! errors {
    ($($name:ident)*) => {
        impl Errno {
            $(
                #[doc = concat!("`E", stringify!($name), "`")]
                pub const $name: Self = Self(rustix::io::Errno::$name);
            )*
        }

        impl fmt::Debug for Errno {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self {
                    $(Self::$name => f.write_str(concat!("E", stringify!($name))),)*
                    other => write!(f, "Errno({})", other.raw_os_error()),
                }
            }
        }
    };
}

errors! {
    ACCESS AGAIN BUSY DEADLK FAULT INTR INVAL NOMEM NOSYS NOTRECOVERABLE NOTSUP OWNERDEAD PERM SRCH
    TIMEDOUT
}

impl Errno {
    /// The number.
    #[inline]
    pub const fn raw_os_error(self) -> i32 {
        self.0.raw_os_error()
    }

    /// The error with this number, from 1 to 4095.
    #[inline]
    pub const fn from_raw_os_error(number: i32) -> Self {
        Self(rustix::io::Errno::from_raw_os_error(number))
    }

    /// The error returned by a system call.
    #[inline]
    pub(super) fn of(error: rustix::io::Errno) -> Self {
        Self(error)
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        std::io::Error::from_raw_os_error(self.raw_os_error()).fmt(f)
    }
}

impl core::error::Error for Errno {}

impl From<Errno> for std::io::Error {
    fn from(error: Errno) -> Self {
        Self::from_raw_os_error(error.raw_os_error())
    }
}
