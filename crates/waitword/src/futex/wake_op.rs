//! `wake_op`: changes a second word, wakes waiters of the first, and, depending on the second
//! word's old value, wakes waiters of the second.
//!
//! Source: Jakub Jelinek's patch of 2005; FUTEX_WAKE_OP of futex(2). In contrast to futex(2),
//! operand and comparand are as wide as the word, and a count of zero wakes no thread (the raw
//! futex(2) interface keeps futex(2)'s quirks).

use super::handle::{Futex, RawFutex};
use super::private;
use super::scope::Scope;
use crate::error::Error;
use crate::private::waiter_table;
use crate::shared;
use crate::word::{FutexWord, RawWakeOp, WakeOp};

impl<A: FutexWord> Futex<'_, A> {
    /// Applies `op` to the word of `second` and wakes up to `count` waiters of this word. If the
    /// old value of `second` satisfies the comparison of `op`, also wakes up to `second_count` of
    /// its waiters. Returns the total number woken.
    ///
    /// For private words, the change and the wakes are one step for all threads that waited before.
    /// A thread that begins to wait during the call may be woken too. For shared words see
    /// [`shared`](Futex::shared).
    ///
    /// Does not block. Async-signal-safe.
    ///
    /// # Errors
    /// [`Error::DifferentScopes`] and [`Error::NoSuchNode`], with `second` unchanged;
    /// [`Error::Kernel`] for shared words.
    #[inline]
    pub fn wake_op<B: FutexWord>(
        self,
        count: usize,
        second: Futex<'_, B>,
        second_count: usize,
        op: WakeOp<B::Value>,
    ) -> Result<usize, Error> {
        // SAFETY: each handle borrows its word, and the node word if it has one, for longer than
        // this call: they are mapped, aligned, writable atomics.
        unsafe { wake_op(self.raw, count, second.raw, second_count, op.raw) }
    }
}

/// # Safety
/// The second word is mapped, aligned, writable, and accessed by atomic operations only; and as
/// [`RawFutex::key`] for both.
// Always inlined: the scope is known at every call, so half of this is optimized away.
#[inline(always)]
pub(crate) unsafe fn wake_op(
    first: RawFutex,
    count: usize,
    second: RawFutex,
    second_count: usize,
    op: RawWakeOp,
) -> Result<usize, Error> {
    match (first.scope, second.scope) {
        (Scope::Private, Scope::Private) => {
            // SAFETY: what `key` requires of node words, if there are any, is part of this
            // function's contract.
            let (first_key, second_key) = unsafe { (first.key()?, second.key()?) };
            // Faults the word's page in before the buckets are locked.
            // SAFETY: the second word is mapped, aligned, and accessed by atomic operations only,
            // by this function's contract.
            unsafe { second.word.load() };
            // SAFETY: as for the load above, and the word is writable, by the same contract. The
            // closure runs before this function returns.
            let change = || op.compares(unsafe { op.apply(second.word) }, second.word.size);
            Ok(private::wake_op(
                waiter_table(),
                [(first_key, count), (second_key, second_count)],
                change,
                |of_first, of_second| of_first + of_second,
            ))
        }
        // SAFETY: this function's own contract.
        (Scope::Shared, Scope::Shared) => unsafe {
            shared::wake_op(first.word, count, second.word, second_count, op)
        },
        _ => Err(Error::DifferentScopes),
    }
}
