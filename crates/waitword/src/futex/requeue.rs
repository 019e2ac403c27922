//! `requeue` and `cmp_requeue`: wake some of a word's waiters and move others to another word
//! without waking them.
//!
//! Source: Ingo Molnar's patch of 2003; FUTEX_REQUEUE and FUTEX_CMP_REQUEUE of futex(2),
//! `futex_requeue` of futex2. The result is the number woken plus the number moved. The kernel
//! returns this for both calls, although the manual page says otherwise about FUTEX_REQUEUE.

use super::handle::{Futex, RawFutex};
use super::private;
use super::scope::Scope;
use crate::error::Error;
use crate::private::waiter_table;
use crate::shared;
use crate::word::{FutexWord, Word};

impl<A: FutexWord> Futex<'_, A> {
    /// Wakes up to `wake` waiters of this word, then moves up to `moved` of the remaining ones to
    /// the end of `to`'s queue, where wakes of `to` find them. Returns the number woken plus the
    /// number moved. Moving costs no system call. A waiter keeps its mask and deadline. If both
    /// words are the same, waiters are counted as moved but stay in place.
    ///
    /// Does not block. Async-signal-safe. In a handler that interrupted this library in a bucket
    /// section, it wakes the waiters that it should have moved.
    ///
    /// # Errors
    /// [`Error::DifferentScopes`]; [`Error::NoSuchNode`]; [`Error::Kernel`] for shared words.
    #[inline]
    pub fn requeue<B: FutexWord>(
        self,
        to: Futex<'_, B>,
        wake: usize,
        moved: usize,
    ) -> Result<usize, Error> {
        // SAFETY: each handle borrows its word, and the node word if it has one, for longer than
        // this call: they are mapped, aligned, writable atomics.
        unsafe { requeue(self.raw, to.raw, wake, moved, None) }
    }

    /// [`requeue`](Self::requeue) if this word holds `expected`. For private words, the comparison
    /// is one step with the rest; for shared words see [`shared`](Futex::shared).
    ///
    /// # Errors
    /// As [`requeue`](Self::requeue), and [`Error::Mismatch`].
    #[inline]
    pub fn cmp_requeue<B: FutexWord>(
        self,
        expected: A::Value,
        to: Futex<'_, B>,
        wake: usize,
        moved: usize,
    ) -> Result<usize, Error> {
        // SAFETY: each handle borrows its word, and the node word if it has one, for longer than
        // this call: they are mapped, aligned, writable atomics.
        unsafe { requeue(self.raw, to.raw, wake, moved, Some(expected.to_u64())) }
    }
}

/// # Safety
/// If a value is expected, the first word is mapped, aligned, and accessed by atomic operations
/// only; and as [`RawFutex::key`] for both.
// Always inlined: the scope is known at every call, so half of this is optimized away.
#[inline(always)]
pub(crate) unsafe fn requeue(
    from: RawFutex,
    to: RawFutex,
    wake: usize,
    moved: usize,
    expected: Option<u64>,
) -> Result<usize, Error> {
    match (from.scope, to.scope) {
        (Scope::Private, Scope::Private) => {
            // SAFETY: what `key` requires of node words, if there are any, is part of this
            // function's contract.
            let (from_key, to_key) = unsafe { (from.key()?, to.key()?) };
            // SAFETY: the load runs only if a value is expected. Then the first word is mapped,
            // aligned, and accessed by atomic operations only, by this function's contract.
            let as_expected =
                || expected.is_none_or(|expected| unsafe { from.word.load() } == expected);
            // Faults the word's page in before the buckets are locked.
            if !as_expected() {
                return Err(Error::Mismatch);
            }
            private::requeue(waiter_table(), from_key, to_key, wake, moved, as_expected)
        }
        // SAFETY: this function's own contract.
        (Scope::Shared, Scope::Shared) => unsafe {
            shared::requeue(from.word, to.word, wake, moved, expected)
        },
        _ => Err(Error::DifferentScopes),
    }
}
