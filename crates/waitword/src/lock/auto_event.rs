//! An event that resets itself: each set lets exactly one thread pass. The protocol is in `tokens.rs`.
//!
//! # How many tokens there can be
//!
//! With a single bit two sets in a row could be one: the second finds the event still set, since the thread that the
//! first has woken is not back yet, and the second sleeper sleeps on. So the event holds up to one token for each
//! waiter, and one more:
//!
//! | waiters | tokens | a set |
//! |---------|--------|-------|
//! | 0 | 0 | leaves one: the event is set |
//! | 0 | 1 | changes nothing: it was set already |
//! | 2 | 0, then 1 | leaves one for a waiter each time |
//! | 2 | 2 | leaves one more: nobody is waiting any more who has none on the way, so the event is set |
//! | 2 | 3 | changes nothing |

use super::const_fn::const_fn;
use super::sleep::Signals;
use super::tokens::{self, tokens, waiters};
use crate::atomic::{AtomicU64, Ordering};
use crate::futex::Scope;
use crate::sys::clock::Deadline;
use core::fmt;
use core::time::Duration;

/// An event that lets one thread pass and resets itself with that.
///
/// A [`set`](Self::set) while threads wait releases exactly one of them, the one of the highest real-time priority
/// that has waited longest, and each further set another. While nobody waits it leaves the event set, however often,
/// and the next to come passes at once.
///
/// ```
/// use waitword::AutoEvent;
///
/// static BELL: AutoEvent = AutoEvent::new();
///
/// let porter = std::thread::spawn(|| BELL.wait());
/// BELL.set();
/// porter.join().unwrap();
/// // Whoever passed has reset it.
/// assert!(!BELL.is_set());
/// ```
///
/// 8 bytes; all zeros is a private event that is not set.
///
/// * **Order.** A thread that comes just then may pass before the woken one does, which then waits again: one passes
///   all the same.
/// * **Memory.** What a thread did before a set is visible to whoever passes next. Once all waits have returned the
///   event may be freed, also while a set is still returning.
/// * **Signal handlers** may set, reset and `try_wait`.
/// * **fork**: a private event is copied as it is. The parent's waiters do not exist in the child, but the copy counts
///   them: it keeps so many sets more than one, and a reset leaves these. A child that goes on using an event for which
///   threads of its parent waited should make it anew.
/// * **Process-shared** ([`Scope::Shared`]): as [`Semaphore`](crate::Semaphore). Waiters that were killed stay counted,
///   with the same effect.
///
/// Source: Windows' auto-reset event, .NET's `AutoResetEvent`.
#[repr(C)]
pub struct AutoEvent {
    word: AtomicU64,
}

const _: () = assert!(cfg!(loom) || size_of::<AutoEvent>() == 8);

impl AutoEvent {
    const_fn! {
        /// A private event, not set.
        pub const fn new() -> Self {
            Self::with_scope(false, Scope::Private)
        }
    }

    const_fn! {
        /// An event for the threads of one process, or of several; set to begin with, or not.
        pub const fn with_scope(is_set: bool, scope: Scope) -> Self {
            Self {
                word: AtomicU64::new(tokens::word(is_set as u32, scope)),
            }
        }
    }

    /// Lets one more thread pass: a waiter, or the next to come.
    ///
    /// Does not block. Async-signal-safe.
    #[inline]
    pub fn set(&self) {
        let one_or_none = |word| Some(u32::from(tokens(word) <= waiters(word)));
        tokens::give(&self.word, one_or_none).expect("never refused");
    }

    /// Takes a set back that nobody has passed by. Waiters that were released before stay so.
    ///
    /// Does not block. Async-signal-safe.
    pub fn reset(&self) {
        // Acquire, and always written: what the setter did before is seen by us, who have undone its set. Release
        // carries earlier sets on.
        let _ = self
            .word
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |word| {
                let unclaimed = tokens(word).saturating_sub(waiters(word));
                Some(word - u64::from(unclaimed))
            });
    }

    /// Whether the next to come would pass.
    pub fn is_set(&self) -> bool {
        // Acquire: what the setter did is visible.
        tokens(self.word.load(Ordering::Acquire)) != 0
    }

    /// Passes and resets the event, if it is set; whether it has.
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

    /// [`wait`](Self::wait) until `deadline` at the latest; whether it has passed.
    ///
    /// Blocks.
    #[inline]
    #[must_use]
    pub fn wait_until(&self, deadline: Deadline) -> bool {
        tokens::take(&self.word, Some(&deadline), Signals::Ignored).is_ok()
    }

    /// [`wait`](Self::wait) for `timeout` at most; whether it has passed.
    ///
    /// Blocks.
    #[inline]
    #[must_use]
    pub fn wait_for(&self, timeout: Duration) -> bool {
        self.try_wait() || self.wait_until(Deadline::after(timeout))
    }

    /// How many wait.
    #[cfg(loom)]
    pub(crate) fn waiters(&self) -> u32 {
        waiters(self.word.load(Ordering::Relaxed))
    }
}

#[cfg(not(loom))]
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
