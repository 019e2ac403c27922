//! The raw futex interface: the operations with the arguments and results of futex(2) and futex2,
//! that is, raw addresses, numbers, flags, and the kernel's errors in the kernel's order. For a C
//! ABI, a drop-in or an emulator.
//!
//! * [`futex`] takes what the system call `futex` takes. Wait, wake, requeue and wake_op on a
//!   private word are served here. Everything else (shared words, the PI family, unknown
//!   operations) goes to the kernel. As in the kernel, an operation of the PI family refuses a
//!   plain waiter on the same private word, and the other way round.
//! * [`futex_wait`], [`futex_wake`], [`futex_requeue`], [`futex_waitv`] take what the futex2 calls
//!   take, for words of all four sizes. [`futex_wake_op`] is missing in futex2. Shared words go to
//!   the kernel as described at [`Futex::shared`](crate::Futex::shared).
//!
//! # Differences from the kernel
//!
//! * A bad address is read like any other: the process gets SIGSEGV where the kernel returns
//!   `EFAULT`. Only addresses in the first page and in the kernel's half are detected; they get
//!   `EFAULT`.
//! * `FUTEX_WAKE_OP` with an unknown comparison leaves the word alone; the kernel changes it first.
//!   Both return `ENOSYS`.
//! * Sizes other than 32 bits work.
//! * futex2's `MPOL` flag is accepted for private words and has no effect: it only sets where
//!   waiters are queued.
//! * If PI waiters and plain waiters are queued on one private word, the kernel goes by their order
//!   and refuses an operation that reaches a waiter of the other kind. Here each operation finds
//!   its own kind first.
//! * A handler that has interrupted this library in a bucket section gets `EINTR` from a wait. From
//!   a wake it gets 0; the wake is made as the section ends.
//!
//! All functions are safe to call in a forked child, and all but the waits in signal handlers. None
//! touches `errno` or the heap.

pub(crate) mod classic;
mod futex2;
mod pi;

pub use crate::sys::Errno;
pub use crate::sys::futex::Waitv;
pub use classic::futex;
pub use futex2::{
    MPOL, NUMA, PRIVATE, SIZE_U8, SIZE_U16, SIZE_U32, SIZE_U64, futex_requeue, futex_wait,
    futex_waitv, futex_wake, futex_wake_op,
};

use crate::futex::{RawFutex, Scope};

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
    fn for_sys(self) -> rustix::time::Timespec {
        rustix::time::Timespec {
            tv_sec: self.tv_sec,
            tv_nsec: self.tv_nsec,
        }
    }
}

/// What a call does with an address: decides which bad addresses are detected without touching
/// them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    /// The word will be read.
    Read,
    /// Only the address itself matters.
    Key,
}

impl Access {
    /// The access that finding the waiters takes. For a shared word, the kernel looks up the
    /// memory; for a private word it uses only the address.
    fn of_key(scope: Scope) -> Self {
        match scope {
            Scope::Private => Access::Key,
            Scope::Shared => Access::Read,
        }
    }
}

/// The kernel's checks of an address, in its order.
fn check_address(futex: RawFutex, access: Access) -> Result<(), Errno> {
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
fn check_argument<T>(argument: *const T) -> Result<(), Errno> {
    let readable = (FIRST_PAGE..=isize::MAX as usize).contains(&argument.addr());
    readable.then_some(()).ok_or(Errno::FAULT)
}

/// The count of both interfaces: futex(2) and futex2 wake one waiter if the count is negative.
fn at_least_one(count: i32) -> usize {
    count.max(1) as usize
}
