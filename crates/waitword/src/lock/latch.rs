//! A latch: counted down once, and open from then on.
//!
//! | bits | meaning |
//! |------|---------|
//! | 0-29 | the count that is left; 0: open |
//! | 30 | a thread may sleep |
//! | 31 | process-shared |
//!
//! Sleepers sleep while the word is the one that they found, and are woken only when the count has
//! reached zero. If the count changes just as a thread goes to sleep, the thread looks again.
//!
//! # Invariants
//!
//! 1. The count only falls, so an open latch stays open, and a thread that finds it open need not
//!    have been woken.
//! 2. The step that brings the count to zero is the last touch of the word, and the wake is by
//!    address. So the memory may be freed once the waits have returned, even while a `count_down`
//!    is still returning.

use super::const_fn::const_fn;
use super::count::CountError;
use super::sleep::{self, Signals, Spot};
use crate::atomic::{AtomicU32, Ordering};
use crate::futex::Scope;
use crate::private::Awaited;
use crate::record::{self, Object};
use crate::sys::clock::Deadline;
use core::fmt;
use core::time::Duration;

const COUNT: u32 = SLEEPERS - 1;
const SLEEPERS: u32 = 1 << 30;
const SHARED: u32 = 1 << 31;

const fn scope(word: u32) -> Scope {
    match word & SHARED {
        0 => Scope::Private,
        _ => Scope::Shared,
    }
}

/// A count that falls to zero once, and threads that wait for that.
///
/// ```
/// use waitword::Latch;
///
/// static DONE: Latch = Latch::new(3);
///
/// for _ in 0..3 {
///     std::thread::spawn(|| {
///         // ... work ...
///         DONE.count_down(1).expect("each counts once");
///     });
/// }
/// DONE.wait();
/// assert!(DONE.try_wait());
/// ```
///
/// 4 bytes; all zeros is a private latch that is open.
///
/// * **Memory.** What a thread did before it counted down is visible to all threads whose wait has
///   returned. Once all waits have returned, the latch may be freed, even while a
///   [`count_down`](Self::count_down) is still returning.
/// * **Signal handlers** may call `count_down` and `try_wait`.
/// * **fork**: a private latch is copied with its count. The parent's threads do not count it down
///   in the child.
/// * **Process-shared** ([`Scope::Shared`]): may lie in memory that several processes map.
///
/// Source: C++20 `std::latch`.
#[repr(C)]
pub struct Latch {
    word: AtomicU32,
}

const _: () = assert!(cfg!(loom) || size_of::<Latch>() == 4);

impl Latch {
    /// The highest count: 2^30 - 1.
    pub const MAX_COUNT: u32 = COUNT;

    const_fn! {
        /// Creates a private latch with this count. With 0, it is open from the start.
        ///
        /// # Panics
        /// If the count is above [`MAX_COUNT`](Self::MAX_COUNT).
        pub const fn new(count: u32) -> Self {
            Self::with_scope(count, Scope::Private)
        }
    }

    const_fn! {
        /// Creates a latch for the threads of one process, or of several.
        ///
        /// # Panics
        /// If the count is above [`MAX_COUNT`](Self::MAX_COUNT).
        pub const fn with_scope(count: u32, scope: Scope) -> Self {
            match Self::try_with_scope(count, scope) {
                Ok(latch) => latch,
                Err(_) => panic!("a latch's count is at most 2^30 - 1"),
            }
        }
    }

    const_fn! {
        /// [`with_scope`](Self::with_scope) for an unchecked count.
        ///
        /// # Errors
        /// [`CountError::Invalid`] if the count is above [`MAX_COUNT`](Self::MAX_COUNT).
        pub const fn try_with_scope(count: u32, scope: Scope) -> Result<Self, CountError> {
            if count > Self::MAX_COUNT {
                return Err(CountError::Invalid);
            }
            let shared = match scope {
                Scope::Private => 0,
                Scope::Shared => SHARED,
            };
            Ok(Self {
                word: AtomicU32::new(count | shared),
            })
        }
    }

    /// Subtracts `count` from what is left, and releases all waiters if that reaches zero.
    ///
    /// Does not block. Async-signal-safe.
    ///
    /// # Errors
    /// [`CountError::Underflow`] if less than `count` is left. The latch is then unchanged.
    #[inline]
    pub fn count_down(&self, count: u32) -> Result<(), CountError> {
        self.count_off(count).map(drop)
    }

    /// [`count_down`](Self::count_down). Returns whether nothing is left.
    fn count_off(&self, count: u32) -> Result<bool, CountError> {
        let mut now = self.word.load(Ordering::Relaxed);
        let left = loop {
            let left = (now & COUNT).checked_sub(count).ok_or(CountError::Underflow)?;
            let counted = match left {
                0 => now & SHARED,
                _ => now - count,
            };
            // Release: what we did before is visible to the waiters. Acquire: a thread that opens
            // the latch by `arrive_and_wait` does not look again, and must see what the other
            // threads did.
            match self.word.compare_exchange_weak(now, counted, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => break left,
                Err(changed) => now = changed,
            }
        };
        if left == 0 && now & SLEEPERS != 0 {
            // From here on the memory may be gone.
            Spot::of(&self.word, scope(now)).wake(usize::MAX);
        }
        Ok(left == 0)
    }

    /// Whether the latch is open.
    ///
    /// Does not block. Async-signal-safe.
    #[inline]
    #[must_use]
    pub fn try_wait(&self) -> bool {
        // Acquire: what the threads did before they counted down is visible.
        self.word.load(Ordering::Acquire) & COUNT == 0
    }

    /// Waits until the latch is open. Signal handlers do not end the wait.
    ///
    /// Blocks.
    #[inline]
    pub fn wait(&self) {
        let _ = self.try_wait() || self.wait_until_open(None);
    }

    /// [`wait`](Self::wait), but until `deadline` at the latest. Returns whether the latch is open.
    ///
    /// Blocks.
    #[inline]
    #[must_use]
    pub fn wait_until(&self, deadline: Deadline) -> bool {
        self.try_wait() || self.wait_until_open(Some(&deadline))
    }

    /// [`wait`](Self::wait), but for at most `timeout`. Returns whether the latch is open.
    ///
    /// Blocks.
    #[inline]
    #[must_use]
    pub fn wait_for(&self, timeout: Duration) -> bool {
        self.try_wait() || self.wait_until_open(Some(&Deadline::after(timeout)))
    }

    /// Counts down by one and waits until the latch is open.
    ///
    /// Blocks.
    ///
    /// # Errors
    /// [`CountError::Underflow`] if the latch is open already. Does not wait then.
    #[inline]
    pub fn arrive_and_wait(&self) -> Result<(), CountError> {
        if !self.count_off(1)? {
            self.wait();
        }
        Ok(())
    }

    #[cold]
    fn wait_until_open(&self, deadline: Option<&Deadline>) -> bool {
        let address = core::ptr::from_ref(self).addr();
        let waited = record::waiting(Object::Barrier, address, deadline.is_some(), || {
            self.wait_until_open_unrecorded(deadline).then_some(()).ok_or(())
        });
        waited.is_ok()
    }

    #[inline(always)]
    fn wait_until_open_unrecorded(&self, deadline: Option<&Deadline>) -> bool {
        let mut timed_out = false;
        // Acquire here and below: as in `try_wait`.
        let mut now = self.word.load(Ordering::Acquire);
        loop {
            if now & COUNT == 0 {
                return true;
            }
            if timed_out {
                return false;
            }
            let announced = now | SLEEPERS;
            if now != announced {
                // Relaxed on success: that does not end the wait, and the wake is ordered by the
                // waiter table's fences or by the kernel. A failure may find the latch open.
                if let Err(changed) = self.word.compare_exchange_weak(
                    now,
                    announced,
                    Ordering::Relaxed,
                    Ordering::Acquire,
                ) {
                    now = changed;
                    continue;
                }
            }
            let waited = sleep::wait(
                Awaited::Latch,
                &self.word,
                scope(now),
                announced,
                deadline,
                Signals::Ignored,
            );
            timed_out = waited.is_err();
            now = self.word.load(Ordering::Acquire);
        }
    }
}

impl fmt::Debug for Latch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word.load(Ordering::Relaxed);
        f.debug_struct("Latch").field("left", &(word & COUNT)).field("scope", &scope(word)).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_count_does_not_touch_the_other_bits() {
        let latch = Latch::with_scope(Latch::MAX_COUNT, Scope::Shared);
        assert!(!latch.wait_for(Duration::ZERO));
        let announced = SHARED | SLEEPERS | COUNT;
        assert_eq!(latch.word.load(Ordering::Relaxed), announced);
        latch.count_down(COUNT - 1).unwrap();
        assert_eq!(latch.word.load(Ordering::Relaxed), SHARED | SLEEPERS | 1);
        latch.count_down(1).unwrap();
        assert_eq!(latch.word.load(Ordering::Relaxed), SHARED);
    }
}
