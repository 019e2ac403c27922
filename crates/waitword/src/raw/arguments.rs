//! The arguments that both interfaces take: times, counts, and addresses, which are checked as the
//! kernel checks them, as far as that is possible without touching memory.

use crate::futex::{RawFutex, Scope};
use crate::sys::Errno;

/// The kernel's `struct timespec`, as both interfaces take it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Timespec {
    /// Seconds.
    pub tv_sec: i64,
    /// Nanoseconds, from 0 to 999,999,999.
    pub tv_nsec: i64,
}

impl Timespec {
    /// Converts to the type that `sys` uses.
    #[inline]
    pub(super) fn for_sys(self) -> rustix::time::Timespec {
        rustix::time::Timespec { tv_sec: self.tv_sec, tv_nsec: self.tv_nsec }
    }
}

/// The count of both interfaces: futex(2) and futex2 wake one waiter if the count is negative.
pub(super) fn at_least_one(count: i32) -> usize {
    count.max(1) as usize
}

/// What a call does with an address: decides which bad addresses are detected without touching
/// them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// The word will be read.
    Read,
    /// Only the address itself matters.
    Key,
}

impl Access {
    /// The access that finding the waiters takes. For a shared word, the kernel looks up the
    /// memory; for a private word it uses only the address.
    pub(super) fn of_key(scope: Scope) -> Self {
        match scope {
            Scope::Private => Access::Key,
            Scope::Shared => Access::Read,
        }
    }
}

/// The kernel's checks of an address, in its order.
pub(super) fn check_address(futex: RawFutex, access: Access) -> Result<(), Errno> {
    let address = futex.word.address.addr();
    let span = futex.word.size.bytes() << u32::from(futex.numa);
    if address & (span - 1) != 0 {
        return Err(Errno::INVAL);
    }
    let read = access == Access::Read || futex.numa;
    if address > isize::MAX as usize || (read && address < FIRST_PAGE) {
        return Err(Errno::FAULT);
    }
    Ok(())
}

const FIRST_PAGE: usize = 4096;

/// The same for a time or a list that is not null. It may be misaligned: the kernel copies it.
pub(super) fn check_argument<T>(argument: *const T) -> Result<(), Errno> {
    let readable = (FIRST_PAGE..=isize::MAX as usize).contains(&argument.addr());
    readable.then_some(()).ok_or(Errno::FAULT)
}
