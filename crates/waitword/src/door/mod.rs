//! The operations with futex(2)'s and futex2's own arguments and answers: raw addresses, numbers, flags, and the
//! kernel's errors in the kernel's order. What a C ABI, a drop-in or an emulator calls.
//!
//! * [`futex`] takes what the system call `futex` takes. A private word's wait, wake, requeue and
//!   wake_op are served here; everything else (shared words, the PI family, unknown operations)
//!   goes to the kernel. Operations of the PI family and others refuse each other's waiters on one
//!   private word, as in the kernel.
//! * [`futex_wait`], [`futex_wake`], [`futex_requeue`], [`futex_waitv`] take what the futex2 calls take, for
//!   words of all four sizes; [`futex_wake_op`] is what futex2 lacks. Shared words go to the kernel as
//!   [`Futex::shared`](crate::Futex::shared) says.
//!
//! # Where the answers differ from the kernel's
//!
//! * A bad address is read like any other: the process gets SIGSEGV where the kernel says `EFAULT`. Only
//!   addresses in the first page and in the kernel's half are told apart, and answered with `EFAULT`.
//! * `FUTEX_WAKE_OP` with an unknown comparison leaves the word alone; the kernel changes it first. Both say `ENOSYS`.
//! * Sizes other than 32 bits work.
//! * futex2's `MPOL` flag is accepted for private words and has no effect: it only says where waiters are to stand.
//! * Where waiters of the PI family and others stand on one private word, the kernel goes by their
//!   order, and refuses what comes upon a waiter of the other kind. Here each operation finds its
//!   own kind first.
//! * A handler that has interrupted this library inside a bucket gets `EINTR` from a wait, and 0 from a
//!   wake that will be made as the bucket is left.
//!
//! All functions are safe to call in a forked child, and all but the waits in signal handlers. None touches
//! `errno` or the heap.

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

/// `struct timespec` of the kernel, as both doors take it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Timespec {
    /// Seconds.
    pub tv_sec: i64,
    /// Nanoseconds, from 0 to 999,999,999.
    pub tv_nsec: i64,
}

impl Timespec {
    /// The same for `sys`.
    #[inline]
    fn for_sys(self) -> rustix::time::Timespec {
        rustix::time::Timespec {
            tv_sec: self.tv_sec,
            tv_nsec: self.tv_nsec,
        }
    }
}

/// Addresses that can be told to be bad without touching them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    /// The word will be read.
    Read,
    /// Only its address counts.
    Key,
}

impl Access {
    /// What finding the waiters takes: the kernel looks up the memory of a shared word, and of a private
    /// one only the address.
    fn of_key(scope: Scope) -> Self {
        match scope {
            Scope::Private => Access::Key,
            Scope::Shared => Access::Read,
        }
    }
}

/// What the kernel finds wrong with an address, in its order.
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

/// The same for a time or a list, which is not null. It may be misaligned: the kernel copies it.
fn check_argument<T>(argument: *const T) -> Result<(), Errno> {
    let readable = (FIRST_PAGE..=isize::MAX as usize).contains(&argument.addr());
    readable.then_some(()).ok_or(Errno::FAULT)
}

/// Both doors' way to count: futex(2) and futex2 wake one if told to wake a negative number.
fn at_least_one(count: i32) -> usize {
    count.max(1) as usize
}
