//! `wait`: sleep while the word holds the expected value.
//!
//! Source: FUTEX_WAIT and FUTEX_WAIT_BITSET of futex(2), `futex_wait` of futex2.

use super::{Error, Futex, RawFutex, Scope, private};
use crate::park::Until;
use crate::private::waiter_table;
use crate::shared;
use crate::sys::clock::Deadline;
use crate::word::{FutexWord, Mask, Word};

/// What else a wait can be told.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct WaitOptions<V> {
    mask: Mask<V>,
    deadline: Option<Deadline>,
}

impl<V: Word> WaitOptions<V> {
    /// No deadline, and found by every wake.
    pub const fn new() -> Self {
        Self {
            mask: Mask::ANY,
            deadline: None,
        }
    }

    /// To be found only by wakes whose mask shares a bit with this one.
    pub const fn mask(mut self, mask: Mask<V>) -> Self {
        self.mask = mask;
        self
    }

    /// To end when this time has come.
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
    /// Sleeps until woken, if the word holds `expected`. The look and the falling asleep are one step for
    /// every waker. That the value changes does not by itself end the wait.
    ///
    /// Blocks. Not for signal handlers: see the crate's page.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if the word holds something else, [`Error::Interrupted`]; for a shared word
    /// [`Error::Unsupported`] where [`shared`](Futex::shared) says so.
    #[inline]
    pub fn wait(self, expected: A::Value) -> Result<(), Error> {
        self.wait_with(expected, WaitOptions::new())
    }

    /// [`wait`](Self::wait), until `deadline` at the latest; never less.
    ///
    /// # Errors
    /// As [`wait`](Self::wait), and [`Error::TimedOut`]. A word that differs is a mismatch even if the
    /// deadline has passed.
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
        // SAFETY: the handle borrows the word for longer than this call, and with it the node word
        // that it may have: they are mapped and aligned, atomics, and writable.
        unsafe {
            wait(
                self.raw,
                expected.to_u64(),
                options.mask.bits(),
                options.deadline.as_ref(),
            )
        }
    }
}

/// # Safety
/// Until this returns, the word is mapped, aligned, and accessed by atomic operations only; and as
/// [`RawFutex::key`].
// Always: the scope is known at every call, so half of this goes away.
#[inline(always)]
pub(crate) unsafe fn wait<'u>(
    futex: RawFutex,
    expected: u64,
    mask: u64,
    until: impl Into<Until<'u>>,
) -> Result<(), Error> {
    match futex.scope {
        Scope::Private => {
            // SAFETY: of the node word, if there is one, `key` asks for what this function's
            // contract says.
            let key = unsafe { futex.key()? };
            // Before anything that costs: most waits that come too late end here. It also brings
            // the word's page in before the bucket is locked.
            // SAFETY: the word is mapped, aligned, and accessed by atomic operations only, by this
            // function's contract.
            if unsafe { futex.word.load() } != expected {
                return Err(Error::Mismatch);
            }
            // SAFETY: the same again, and the contract is for as long as this function runs, which
            // calls it no later.
            let as_expected = || unsafe { futex.word.load() } == expected;
            private::wait(waiter_table(), key, as_expected, mask, until)
        }
        // SAFETY: forwards this function's own contract. There is no node word in this world.
        Scope::Shared => unsafe { shared::wait(futex.word, expected, mask, until.into().deadline) },
    }
}
