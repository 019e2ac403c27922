//! A call of futex(2), with its arguments as the caller passes them; for `classic.rs` and `pi.rs`.

use crate::futex::{RawFutex, Scope};
use crate::sys::{Errno, futex_raw};
use crate::word::{Size, WordPtr};

pub(super) const PRIVATE_FLAG: i32 = 128;
pub(super) const CLOCK_REALTIME: i32 = 256;

/// A call of futex(2).
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) uaddr: *mut u32,
    pub(super) op: i32,
    pub(super) val: u32,
    pub(super) timeout_or_val2: usize,
    pub(super) uaddr2: *mut u32,
    pub(super) val3: u32,
}

impl Call {
    /// Makes the system call.
    ///
    /// # Errors
    /// futex(2)'s.
    ///
    /// # Safety
    /// Everything that futex(2) requires of these arguments.
    #[inline]
    pub(super) unsafe fn send(&self) -> Result<usize, Errno> {
        // SAFETY: this function's own contract.
        unsafe {
            futex_raw::raw([
                self.uaddr.expose_provenance(),
                self.op as usize,
                self.val as usize,
                self.timeout_or_val2,
                self.uaddr2.expose_provenance(),
                self.val3 as usize,
            ])
        }
    }
}

/// A private word, as a caller of futex(2) names it.
#[inline]
pub(super) fn private_word(address: *mut u32) -> RawFutex {
    RawFutex {
        word: WordPtr { address: address.cast(), size: Size::U32 },
        scope: Scope::Private,
        numa: false,
    }
}
