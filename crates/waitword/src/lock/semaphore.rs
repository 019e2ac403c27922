//! A counting semaphore: POSIX's `sem_t`, C++20's `counting_semaphore`. The protocol is in
//! `tokens.rs`.

use super::const_fn::const_fn;
use super::count::CountError;
#[cfg(not(loom))]
use super::interrupter::Interrupter;
use super::sleep::Signals;
use super::tokens;
use crate::atomic::{AtomicU64, Ordering};
use crate::futex::{Error, Scope};
use crate::sys::clock::Deadline;
use core::fmt;
use core::time::Duration;

/// A counter that threads raise ([`post`](Self::post)) and lower ([`wait`](Self::wait)). It never
/// goes below zero: a thread that would lower it further sleeps until another thread raises it.
///
/// ```
/// use waitword::Semaphore;
///
/// // At most two at once.
/// static DESKS: Semaphore = Semaphore::new(2);
///
/// std::thread::scope(|scope| {
///     for _ in 0..8 {
///         scope.spawn(|| {
///             DESKS.wait();
///             // ... work ...
///             DESKS.post().expect("no more posts than waits");
///         });
///     }
/// });
/// assert_eq!(DESKS.value(), 2);
/// ```
///
/// To post automatically at the end of a scope, use [`acquire`](Self::acquire) and its variants.
/// They return a [`SemaphorePermit`](crate::SemaphorePermit), which posts when it is dropped, also
/// during a panic.
///
/// 8 bytes: the value in the low half and the number of waiters in the high half, as at the start
/// of glibc's `sem_t`. All zeros is a private semaphore of value 0. Without waiters, neither a post
/// nor a wait makes a system call.
///
/// * **Order.** A post wakes one waiter: of those with the highest real-time priority, the one that
///   has waited longest. A thread that arrives just then may take the token first; the woken thread
///   then waits again.
/// * **Memory.** What a thread did before its post is visible to the thread whose wait took it.
///   Once a wait has returned, the semaphore may be freed, even while the post that it took is
///   still returning.
/// * **Signal handlers** may call `post` and `try_wait`.
/// * **fork**: a private semaphore is copied with its value. Waiters of the parent do not exist in
///   the child.
/// * **Process-shared** ([`Scope::Shared`]): may lie in memory that several processes map. A
///   process that is killed while it waits delays the other waiters by a second at most. What it
///   had taken is lost. (Before Linux 5.16, threads in
///   [`wait_interruptible`](Self::wait_interruptible) then sleep until the next post or their
///   deadline.)
///
/// Source: POSIX `sem_init`, `sem_post`, `sem_wait`, `sem_trywait`, `sem_timedwait`,
/// `sem_clockwait`, `sem_getvalue`.
#[repr(C)]
pub struct Semaphore {
    word: AtomicU64,
}

const _: () = assert!(cfg!(loom) || size_of::<Semaphore>() == 8);

impl Semaphore {
    /// The highest value: 2^31 - 1, POSIX's `SEM_VALUE_MAX` on Linux.
    pub const MAX_VALUE: u32 = i32::MAX as u32;

    const_fn! {
        /// Creates a private semaphore with this value.
        ///
        /// # Panics
        /// If the value is above [`MAX_VALUE`](Self::MAX_VALUE).
        pub const fn new(value: u32) -> Self {
            Self::with_scope(value, Scope::Private)
        }
    }

    const_fn! {
        /// Creates a semaphore with this value, for the threads of one process or of several.
        ///
        /// # Panics
        /// If the value is above [`MAX_VALUE`](Self::MAX_VALUE).
        pub const fn with_scope(value: u32, scope: Scope) -> Self {
            match Self::try_with_scope(value, scope) {
                Ok(semaphore) => semaphore,
                Err(_) => panic!("a semaphore's value is at most 2^31 - 1"),
            }
        }
    }

    const_fn! {
        /// [`with_scope`](Self::with_scope) for an unchecked value (`sem_init`).
        ///
        /// # Errors
        /// [`CountError::Invalid`] if the value is above [`MAX_VALUE`](Self::MAX_VALUE).
        pub const fn try_with_scope(value: u32, scope: Scope) -> Result<Self, CountError> {
            if value > Self::MAX_VALUE {
                return Err(CountError::Invalid);
            }
            Ok(Self {
                word: AtomicU64::new(tokens::word(value, scope)),
            })
        }
    }

    /// Adds one to the value and wakes a waiter if there is one (`sem_post`).
    ///
    /// Does not block. Async-signal-safe.
    ///
    /// # Errors
    /// [`CountError::Overflow`] if the value is [`MAX_VALUE`](Self::MAX_VALUE).
    #[inline]
    pub fn post(&self) -> Result<(), CountError> {
        self.post_many(1)
    }

    /// [`post`](Self::post) without the wake-up. If there may be a waiter to wake, that is left to
    /// the caller.
    ///
    /// # Errors
    /// As `post`.
    #[inline(always)]
    pub(crate) fn post_at_once(&self) -> Result<Option<tokens::PostedTo>, CountError> {
        tokens::give_one(&self.word, Self::fits(1)).ok_or(CountError::Overflow)
    }

    #[inline(always)]
    fn fits(count: u32) -> impl Fn(u64) -> Option<u32> {
        move |word| {
            let sum = u64::from(tokens::tokens(word)) + u64::from(count);
            (sum <= Self::MAX_VALUE.into()).then_some(count)
        }
    }

    /// Adds `count` to the value in one step and wakes up to `count` waiters (C++'s `release`).
    ///
    /// Does not block. Async-signal-safe.
    ///
    /// # Errors
    /// [`CountError::Overflow`] if the value would rise above [`MAX_VALUE`](Self::MAX_VALUE). It is
    /// then unchanged.
    #[inline]
    pub fn post_many(&self, count: u32) -> Result<(), CountError> {
        tokens::give(&self.word, Self::fits(count)).ok_or(CountError::Overflow)
    }

    /// Subtracts one from the value unless it is zero (`sem_trywait`). Returns whether it did.
    ///
    /// Does not block. Async-signal-safe.
    #[inline]
    #[must_use]
    pub fn try_wait(&self) -> bool {
        tokens::try_take(&self.word)
    }

    /// Subtracts one from the value, waiting until that is possible (`sem_wait`). Signal handlers
    /// do not end the wait.
    ///
    /// Blocks.
    #[inline]
    pub fn wait(&self) {
        let _ = tokens::take(&self.word, None, Signals::Ignored);
    }

    /// [`wait`](Self::wait), but until `deadline` at the latest (`sem_timedwait`, `sem_clockwait`).
    /// Returns whether it has subtracted one. If that is possible at once, the deadline is not
    /// checked.
    ///
    /// Blocks.
    #[inline]
    #[must_use]
    pub fn wait_until(&self, deadline: Deadline) -> bool {
        tokens::take(&self.word, Some(&deadline), Signals::Ignored).is_ok()
    }

    /// [`wait`](Self::wait), but for at most `timeout`. Returns whether it has subtracted one.
    ///
    /// Blocks.
    #[inline]
    #[must_use]
    pub fn wait_for(&self, timeout: Duration) -> bool {
        self.try_wait() || self.wait_until(Deadline::after(timeout))
    }

    /// [`wait`](Self::wait), with or without a deadline, that ends when a signal handler has run:
    /// exactly POSIX's `sem_wait`.
    ///
    /// Blocks.
    ///
    /// # Errors
    /// [`Error::TimedOut`]. [`Error::Interrupted`] if a handler ran that was installed without
    /// `SA_RESTART`; with a deadline, in most cases any handler. In both cases the value is
    /// unchanged.
    #[inline]
    pub fn wait_interruptible(&self, deadline: Option<Deadline>) -> Result<(), Error> {
        tokens::take(&self.word, deadline.as_ref(), Signals::Reported)
    }

    /// [`wait_interruptible`](Self::wait_interruptible) that another thread can also end, with the
    /// interrupter `by`: what a cancellation point needs. For private semaphores; in a
    /// process-shared one only signals end a wait.
    ///
    /// Blocks.
    ///
    /// # Errors
    /// As [`wait_interruptible`](Self::wait_interruptible). `by` itself tells whether it ended the
    /// wait, or a signal did.
    #[cfg(not(loom))]
    #[inline]
    pub(crate) fn wait_interruptible_by(
        &self,
        deadline: Option<Deadline>,
        by: &Interrupter,
    ) -> Result<(), Error> {
        tokens::take(&self.word, by.until(deadline.as_ref()), Signals::Reported)
    }

    /// Subtracts `count` from the value in one step if the value is high enough. Returns whether it
    /// did.
    ///
    /// Does not block. Async-signal-safe.
    #[inline]
    #[must_use]
    pub(crate) fn try_wait_many(&self, count: u32) -> bool {
        match count {
            1 => self.try_wait(),
            _ => tokens::try_take_several(&self.word, count),
        }
    }

    /// Subtracts `count` from the value in one step, waiting until that is possible or the deadline
    /// passes. Returns whether it did.
    ///
    /// Blocks.
    #[inline]
    pub(crate) fn wait_many(&self, count: u32, deadline: Option<&Deadline>) -> bool {
        match count {
            1 => tokens::take(&self.word, deadline, Signals::Ignored).is_ok(),
            _ => tokens::take_several(&self.word, count, deadline).is_ok(),
        }
    }

    /// The value at some moment during the call (`sem_getvalue`). It is 0, never negative, if a
    /// thread must wait. For display and tests: it may have changed by the time the caller sees it.
    pub fn value(&self) -> u32 {
        tokens::tokens(self.word.load(Ordering::Relaxed))
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word.load(Ordering::Relaxed);
        f.debug_struct("Semaphore")
            .field("value", &tokens::tokens(word))
            .field("waiters", &tokens::waiters(word))
            .field("scope", &tokens::scope(word))
            .finish()
    }
}
