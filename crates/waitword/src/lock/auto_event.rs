//! An event that resets itself: each set lets exactly one thread pass. The protocol is in
//! `tokens.rs`.
//!
//! # How many tokens there can be
//!
//! With a single bit, two sets in a row could count as one: the thread that the first set has woken
//! is not back yet, so the second set finds the event still set, and the second sleeper sleeps on.
//! So the event holds up to one token for each waiter, plus one:
//!
//! | waiters | tokens | effect of a set |
//! |---------|--------|-----------------|
//! | 0 | 0 | adds one: the event is set |
//! | 0 | 1 | none: the event was set already |
//! | 2 | 0, then 1 | adds one for a waiter each time |
//! | 2 | 2 | adds one: each waiter has a token on the way already, so the event is set |
//! | 2 | 3 | none |

use super::const_fn::const_fn;
use super::sleep::Signals;
use super::tokens::{self, tokens, waiters};
use crate::atomic::{AtomicU64, Ordering};
use crate::futex::Scope;
use crate::sys::clock::Deadline;
use core::fmt;
use core::time::Duration;

/// An event that lets one thread pass and thereby resets itself.
///
/// A [`set`](Self::set) while threads wait releases exactly one of them: of those with the highest
/// real-time priority, the one that has waited longest. Each further set releases another. Without
/// waiters, one or more sets leave the event set, and the next thread passes at once.
///
/// ```
/// use waitword::AutoEvent;
///
/// static BELL: AutoEvent = AutoEvent::new();
///
/// let porter = std::thread::spawn(|| BELL.wait());
/// BELL.set();
/// porter.join().unwrap();
/// // Passing has reset it.
/// assert!(!BELL.is_set());
/// ```
///
/// 8 bytes; all zeros is a private event that is not set.
///
/// * **Order.** A thread that arrives just then may pass before the woken one, which then waits
///   again. Either way, one thread passes.
/// * **Memory.** What a thread did before a set is visible to the next thread that passes. Once all
///   waits have returned, the event may be freed, even while a set is still returning.
/// * **Signal handlers** may call `set`, `reset` and `try_wait`.
/// * **fork**: a private event is copied as it is. The parent's waiters do not exist in the child,
///   but the copy counts them: it stores that many sets more than one, and a reset leaves these. A
///   child that goes on using an event for which threads of its parent waited should create it
///   again.
/// * **Process-shared** ([`Scope::Shared`]): as [`Semaphore`](crate::Semaphore). Waiters that were
///   killed stay counted, with the same effect.
///
/// Source: Windows' auto-reset event, .NET's `AutoResetEvent`.
#[repr(C)]
pub struct AutoEvent {
    word: AtomicU64,
}

const _: () = assert!(cfg!(loom) || size_of::<AutoEvent>() == 8);

impl AutoEvent {
    const_fn! {
        /// Creates a private event that is not set.
        pub const fn new() -> Self {
            Self::with_scope(false, Scope::Private)
        }
    }

    const_fn! {
        /// Creates an event for the threads of one process, or of several, initially set or not.
        pub const fn with_scope(is_set: bool, scope: Scope) -> Self {
            Self {
                word: AtomicU64::new(tokens::word(is_set as u32, scope)),
            }
        }
    }

    /// Lets one more thread pass: a waiter, or the next thread that arrives.
    ///
    /// Does not block. Async-signal-safe.
    #[inline]
    pub fn set(&self) {
        let one_or_none = |word| Some(u32::from(tokens(word) <= waiters(word)));
        tokens::give(&self.word, one_or_none).expect("never refused");
    }

    /// Takes back a set that has released no thread yet. Waiters that were released before stay
    /// released.
    ///
    /// Does not block. Async-signal-safe.
    pub fn reset(&self) {
        // The word is always written. Acquire: we undo a set, so we must see what its setter did
        // before. Release carries earlier sets on.
        let _ = self.word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |word| {
            let unclaimed = tokens(word).saturating_sub(waiters(word));
            Some(word - u64::from(unclaimed))
        });
    }

    /// Whether the next thread to arrive would pass.
    pub fn is_set(&self) -> bool {
        // Acquire: what the setter did is visible.
        tokens(self.word.load(Ordering::Acquire)) != 0
    }

    /// Passes and resets the event if it is set. Returns whether it passed.
    ///
    /// Does not block. Async-signal-safe.
    #[inline]
    #[must_use]
    pub fn try_wait(&self) -> bool {
        tokens::try_take(&self.word)
    }

    /// Passes, or waits until it can. Signal handlers do not end the wait.
    ///
    /// Blocks.
    #[inline]
    pub fn wait(&self) {
        let _ = tokens::take(&self.word, None, Signals::Ignored);
    }

    /// [`wait`](Self::wait), but until `deadline` at the latest. Returns whether it passed.
    ///
    /// Blocks.
    #[inline]
    #[must_use]
    pub fn wait_until(&self, deadline: Deadline) -> bool {
        tokens::take(&self.word, Some(&deadline), Signals::Ignored).is_ok()
    }

    /// [`wait`](Self::wait), but for at most `timeout`. Returns whether it passed.
    ///
    /// Blocks.
    #[inline]
    #[must_use]
    pub fn wait_for(&self, timeout: Duration) -> bool {
        self.try_wait() || self.wait_until(Deadline::after(timeout))
    }

    /// The number of waiters.
    #[cfg(loom)]
    pub(crate) fn waiters(&self) -> u32 {
        waiters(self.word.load(Ordering::Relaxed))
    }
}

impl Default for AutoEvent {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for AutoEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word.load(Ordering::Relaxed);
        f.debug_struct("AutoEvent")
            .field("is_set", &(tokens(word) != 0))
            .field("waiters", &waiters(word))
            .field("scope", &tokens::scope(word))
            .finish()
    }
}
