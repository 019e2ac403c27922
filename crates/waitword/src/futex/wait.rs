//! `wait`: sleep while the word holds the expected value.
//!
//! Source: FUTEX_WAIT and FUTEX_WAIT_BITSET of futex(2), `futex_wait` of futex2.

use super::handle::{Futex, RawFutex};
use super::private;
use super::scope::Scope;
use crate::error::Error;
use crate::park::Until;
use crate::private::{Key, Place, waiter_table};
use crate::record;
use crate::shared;
use crate::sys::clock::Deadline;
use crate::word::{FutexWord, Mask, Word, WordPtr};

/// Options of a wait: a mask and a deadline.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct WaitOptions<V> {
    mask: Mask<V>,
    deadline: Option<Deadline>,
}

impl<V: Word> WaitOptions<V> {
    /// No deadline, and found by every wake.
    pub const fn new() -> Self {
        Self { mask: Mask::ANY, deadline: None }
    }

    /// Only wakes whose mask shares a bit with this one find the waiter.
    pub const fn mask(mut self, mask: Mask<V>) -> Self {
        self.mask = mask;
        self
    }

    /// The wait ends when this time has come.
    pub const fn deadline(mut self, deadline: Deadline) -> Self {
        self.deadline = Some(deadline);
        self
    }
}

impl<V: Word> Default for WaitOptions<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A: FutexWord> Futex<'_, A> {
    /// If the word holds `expected`, sleeps until woken. For every waker, the check and falling
    /// asleep are one step. A change of the value does not by itself end the wait.
    ///
    /// Blocks. Not for signal handlers: see the crate documentation.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if the word holds another value; [`Error::Interrupted`]; for a shared
    /// word [`Error::Unsupported`] in the cases listed at [`shared`](Futex::shared).
    #[inline]
    pub fn wait(self, expected: A::Value) -> Result<(), Error> {
        self.wait_with(expected, WaitOptions::new())
    }

    /// [`wait`](Self::wait) with a deadline: returns at `deadline` at the latest, and never times
    /// out before it.
    ///
    /// # Errors
    /// As [`wait`](Self::wait), and [`Error::TimedOut`]. If the word differs, the result is a
    /// mismatch even if the deadline has passed.
    #[inline]
    pub fn wait_until(self, expected: A::Value, deadline: Deadline) -> Result<(), Error> {
        self.wait_with(expected, WaitOptions::new().deadline(deadline))
    }

    /// [`wait`](Self::wait) with a mask, a deadline, or both.
    ///
    /// # Errors
    /// As [`wait`](Self::wait) and [`wait_until`](Self::wait_until).
    #[inline]
    pub fn wait_with(
        self,
        expected: A::Value,
        options: WaitOptions<A::Value>,
    ) -> Result<(), Error> {
        // SAFETY: the handle borrows the word, and the node word if it has one, for longer than
        // this call: they are mapped, aligned, writable atomics.
        unsafe { wait(self.raw, expected.to_u64(), options.mask.bits(), options.deadline.as_ref()) }
    }
}

/// # Safety
/// Until this returns, the word is mapped, aligned, and accessed by atomic operations only; and as
/// [`RawFutex::key`].
// Always inlined: the scope is known at every call, so half of this is optimized away.
#[inline(always)]
pub(crate) unsafe fn wait<'u>(
    futex: RawFutex,
    expected: u64,
    mask: u64,
    until: impl Into<Until<'u>>,
) -> Result<(), Error> {
    match futex.scope {
        Scope::Private => {
            // SAFETY: what `key` requires of the node word, if there is one, is part of this
            // function's contract.
            let key = unsafe { futex.key()? };
            // Before anything expensive: most waits that come too late end here. It also faults the
            // word's page in before the bucket is locked.
            // SAFETY: the word is mapped, aligned, and accessed by atomic operations only, by this
            // function's contract.
            if unsafe { futex.word.load() } != expected {
                return Err(Error::Mismatch);
            }
            // SAFETY: this function's own contract.
            unsafe { sleep(futex.word, key.place, expected, mask, until) }
        }
        // SAFETY: this function's own contract. Shared words have no node word.
        Scope::Shared => unsafe { shared::wait(futex.word, expected, mask, until.into().deadline) },
    }
}

/// [`wait`] on a private word with a queue in this place, which held the expected value.
///
/// # Safety
/// Until this returns, the word is mapped, aligned, and accessed by atomic operations only.
// Out of line: callers whose word differs need no frame. (`cold` and not `inline(never)`, with
// which all crates share one copy, which inlines less.)
#[cold]
unsafe fn sleep<'u>(
    word: WordPtr,
    place: Place,
    expected: u64,
    mask: u64,
    until: impl Into<Until<'u>>,
) -> Result<(), Error> {
    let until = until.into();
    let address = word.address.addr();
    // SAFETY: the word is mapped, aligned, and accessed by atomic operations only until this
    // function returns, by its contract, and the closure is not called later.
    let as_expected = || unsafe { word.load() } == expected;
    let key = Key { address, place };
    let awaited = word.size.into();
    let wait = || private::wait(waiter_table(), key, awaited, as_expected, mask, until);
    record::waiting_on_futex(address, until.deadline.is_some(), wait, Error::is_timeout)
}
