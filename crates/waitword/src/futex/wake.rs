//! `wake`: wakes some of a word's waiters.
//!
//! Source: FUTEX_WAKE and FUTEX_WAKE_BITSET of futex(2), `futex_wake` of futex2. A count of zero
//! wakes no thread, as in futex2; the raw futex(2) interface keeps futex(2)'s quirk.

use super::handle::{Futex, RawFutex};
use super::private;
use super::scope::Scope;
use crate::error::Error;
use crate::private::waiter_table;
use crate::shared;
use crate::word::{FutexWord, Mask};

impl<A: FutexWord> Futex<'_, A> {
    /// Wakes up to `count` waiters in order of arrival (`usize::MAX`: all). Returns the number
    /// woken.
    ///
    /// Does not block. Async-signal-safe; does not touch the word itself. On a private word without
    /// waiters it takes no lock and makes no system call.
    ///
    /// # Errors
    /// [`Error::NoSuchNode`] for a word that names a node; [`Error::Kernel`] for a shared word in
    /// memory that the kernel cannot share. A private word without a node never fails.
    #[inline]
    pub fn wake(self, count: usize) -> Result<usize, Error> {
        self.wake_mask(count, Mask::ANY)
    }

    /// [`wake`](Self::wake) of only those waiters whose mask shares a bit with `mask`.
    ///
    /// # Errors
    /// As [`wake`](Self::wake).
    #[inline]
    pub fn wake_mask(self, count: usize, mask: Mask<A::Value>) -> Result<usize, Error> {
        // SAFETY: the handle borrows the node word, if it has one, for longer than this call: it is
        // a mapped, aligned, writable atomic.
        unsafe { wake(self.raw, count, mask.bits()) }
    }
}

/// # Safety
/// As [`RawFutex::key`]. The word itself is not touched.
// Always inlined: the scope is known at every call, so half of this is optimized away.
#[inline(always)]
pub(crate) unsafe fn wake(futex: RawFutex, count: usize, mask: u64) -> Result<usize, Error> {
    match futex.scope {
        Scope::Private => {
            // SAFETY: this function's own contract.
            let key = unsafe { futex.key()? };
            Ok(private::wake(waiter_table(), key, count, mask))
        }
        Scope::Shared => shared::wake(futex.word, count, mask),
    }
}
