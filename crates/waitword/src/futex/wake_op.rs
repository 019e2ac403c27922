//! `wake_op`: change a second word, wake waiters of the first, and, depending on what the second held
//! before, wake waiters of the second.
//!
//! Source: Jakub Jelinek's patch of 2005; FUTEX_WAKE_OP of futex(2). Unlike there, operand and comparand are as
//! wide as the word, and a count of zero wakes nobody (the classic door keeps futex(2)'s quirks).

use super::{Error, Futex, RawFutex, Scope, private};
use crate::private::waiter_table;
use crate::shared;
use crate::word::{FutexWord, RawWakeOp, WakeOp};

impl<A: FutexWord> Futex<'_, A> {
    /// Applies `op` to the word of `second`, wakes up to `count` waiters of this word, and up to
    /// `second_count` of `second` if its old value compares as `op` says. The sum of both.
    ///
    /// For private words the change is one step with the wakes for all who waited before; a thread that
    /// begins to wait during the call may be woken too. For shared ones see [`shared`](Futex::shared).
    ///
    /// Does not block. Async-signal-safe.
    ///
    /// # Errors
    /// [`Error::DifferentScopes`] and [`Error::NoSuchNode`], with `second` unchanged; [`Error::Kernel`] for
    /// shared words.
    #[inline]
    pub fn wake_op<B: FutexWord>(
        self,
        count: usize,
        second: Futex<'_, B>,
        second_count: usize,
        op: WakeOp<B::Value>,
    ) -> Result<usize, Error> {
        // SAFETY: each handle borrows its word for longer than this call, and with it the node word
        // that it may have: they are mapped and aligned, atomics, and writable.
        unsafe { wake_op(self.raw, count, second.raw, second_count, op.raw) }
    }
}

/// # Safety
/// The second word is mapped, aligned, writable, and accessed by atomic operations only; and as
/// [`RawFutex::key`] for both.
// Always: the scope is known at every call, so half of this goes away.
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
            // SAFETY: of node words, if there are any, `key` asks for what this function's contract
            // says.
            let (first_key, second_key) = unsafe { (first.key()?, second.key()?) };
            // Brings the word's page in before the buckets are locked.
            // SAFETY: the second word is mapped, aligned, and accessed by atomic operations only,
            // by this function's contract.
            unsafe { second.word.load() };
            // SAFETY: as for the load above, and the word is writable, by the same contract. It
            // runs before this function returns.
            let change = || op.compares(unsafe { op.apply(second.word) }, second.word.size);
            Ok(private::wake_op(
                waiter_table(),
                first_key,
                count,
                second_key,
                second_count,
                change,
                |of_first, of_second| of_first + of_second,
            ))
        }
        // SAFETY: forwards this function's own contract.
        (Scope::Shared, Scope::Shared) => unsafe {
            shared::wake_op(first.word, count, second.word, second_count, op)
        },
        _ => Err(Error::DifferentScopes),
    }
}
