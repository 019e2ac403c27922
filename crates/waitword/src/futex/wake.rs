//! `wake`: wake some of those who wait on a word.
//!
//! Source: FUTEX_WAKE and FUTEX_WAKE_BITSET of futex(2), `futex_wake` of futex2. A count of zero wakes nobody,
//! as futex2 has it; the classic door keeps futex(2)'s quirk.

use super::{Error, Futex, RawFutex, Scope, private};
use crate::private::waiter_table;
use crate::shared;
use crate::word::{FutexWord, Mask};

impl<A: FutexWord> Futex<'_, A> {
    /// Wakes up to `count` waiters in order of arrival (`usize::MAX`: all); how many.
    ///
    /// Does not block. Async-signal-safe; the word itself is not touched. With nobody waiting on a
    /// private word: no lock, no system call.
    ///
    /// # Errors
    /// [`Error::NoSuchNode`] for a word that names one; [`Error::Kernel`] for a shared word in memory that
    /// the kernel cannot share. A private word without a node never fails.
    #[inline]
    pub fn wake(self, count: usize) -> Result<usize, Error> {
        self.wake_mask(count, Mask::ANY)
    }

    /// [`wake`](Self::wake), but only waiters whose mask shares a bit with `mask`.
    ///
    /// # Errors
    /// As [`wake`](Self::wake).
    #[inline]
    pub fn wake_mask(self, count: usize, mask: Mask<A::Value>) -> Result<usize, Error> {
        // SAFETY: the handle borrows the node word that it may have for longer than this call: it
        // is mapped and aligned, an atomic, and writable.
        unsafe { wake(self.raw, count, mask.bits()) }
    }
}

/// # Safety
/// As [`RawFutex::key`]. The word itself is not touched.
// Always: the scope is known at every call, so half of this goes away.
#[inline(always)]
pub(crate) unsafe fn wake(futex: RawFutex, count: usize, mask: u64) -> Result<usize, Error> {
    match futex.scope {
        Scope::Private => {
            // SAFETY: forwards this function's own contract.
            let key = unsafe { futex.key()? };
            Ok(private::wake(waiter_table(), key, count, mask))
        }
        Scope::Shared => shared::wake(futex.word, count, mask),
    }
}
