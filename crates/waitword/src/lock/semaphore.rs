//! A counting semaphore: POSIX's `sem_t`, C++20's `counting_semaphore`. The protocol is in `tokens.rs`.

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

/// A number that threads count up ([`post`](Self::post)) and down ([`wait`](Self::wait)), and that never goes below
/// zero: whoever would count it below sleeps until somebody has counted up.
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
/// What a post gives back at the end of a scope: [`acquire`](Self::acquire) and its like return a
/// [`SemaphorePermit`](crate::SemaphorePermit) that posts when it is dropped, also by a panic.
///
/// 8 bytes: the value in the low half and the number of waiters in the high one, as glibc's `sem_t` begins. All zeros
/// is a private semaphore of value 0. With nobody waiting neither a post nor a wait makes a system call.
///
/// * **Order.** A post wakes the waiter of the highest real-time priority that has waited longest. A thread that
///   comes just then may take what was posted before the woken one does, which then waits again.
/// * **Memory.** What a thread did before its post is visible to the one whose wait took it. Once a wait has
///   returned, the semaphore may be freed, also while the post that it took is still returning.
/// * **Signal handlers** may post, and `try_wait`.
/// * **fork**: a private semaphore is copied with its value. Waiters of the parent do not exist in the child.
/// * **Process-shared** ([`Scope::Shared`]): may lie in memory that several processes map. A process that is killed
///   while it waits takes nothing with it but, at worst, a second of the others' time; what it had taken is gone.
///   (Before Linux 5.16 those in [`wait_interruptible`](Self::wait_interruptible) then sleep until the next post, or their deadline.)
///
/// Source: POSIX `sem_init`, `sem_post`, `sem_wait`, `sem_trywait`, `sem_timedwait`, `sem_clockwait`, `sem_getvalue`.
#[repr(C)]
pub struct Semaphore {
    word: AtomicU64,
}

const _: () = assert!(cfg!(loom) || size_of::<Semaphore>() == 8);

impl Semaphore {
    /// The highest value: 2^31 - 1, POSIX's `SEM_VALUE_MAX` on Linux.
    pub const MAX_VALUE: u32 = i32::MAX as u32;

    const_fn! {
        /// A private semaphore of this value.
        ///
        /// # Panics
        /// The value is above [`MAX_VALUE`](Self::MAX_VALUE).
        pub const fn new(value: u32) -> Self {
            Self::with_scope(value, Scope::Private)
        }
    }

    const_fn! {
        /// A semaphore of this value for the threads of one process, or of several.
        ///
        /// # Panics
        /// The value is above [`MAX_VALUE`](Self::MAX_VALUE).
        pub const fn with_scope(value: u32, scope: Scope) -> Self {
            match Self::try_with_scope(value, scope) {
                Ok(semaphore) => semaphore,
                Err(_) => panic!("a semaphore's value is at most 2^31 - 1"),
            }
        }
    }

    const_fn! {
        /// [`with_scope`](Self::with_scope), for a value that is not known to be good (`sem_init`).
        ///
        /// # Errors
        /// [`CountError::Invalid`]: the value is above [`MAX_VALUE`](Self::MAX_VALUE).
        pub const fn try_with_scope(value: u32, scope: Scope) -> Result<Self, CountError> {
            if value > Self::MAX_VALUE {
                return Err(CountError::Invalid);
            }
            Ok(Self {
                word: AtomicU64::new(tokens::word(value, scope)),
            })
        }
    }

    /// Counts up by one, and wakes a waiter if there is any (`sem_post`).
    ///
    /// Does not block. Async-signal-safe.
    ///
    /// # Errors
    /// [`CountError::Overflow`]: the value is [`MAX_VALUE`](Self::MAX_VALUE).
    #[inline]
    pub fn post(&self) -> Result<(), CountError> {
        self.post_many(1)
    }

    /// [`post`](Self::post), up to the wake-up, which is left to the caller if there may be somebody to wake.
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

    /// Counts up by `count` in one step, and wakes up to so many waiters (C++'s `release`).
    ///
    /// Does not block. Async-signal-safe.
    ///
    /// # Errors
    /// [`CountError::Overflow`]: the value would rise above [`MAX_VALUE`](Self::MAX_VALUE). It stays as it is.
    #[inline]
    pub fn post_many(&self, count: u32) -> Result<(), CountError> {
        tokens::give(&self.word, Self::fits(count)).ok_or(CountError::Overflow)
    }

    /// Counts down by one, if the value is not zero (`sem_trywait`); whether it has.
    ///
    /// Does not block. Async-signal-safe.
    #[inline]
    #[must_use]
    pub fn try_wait(&self) -> bool {
        tokens::try_take(&self.word)
    }

    /// Counts down by one, or waits until that can be done (`sem_wait`). Signal handlers do not end the wait.
    ///
    /// Blocks.
    #[inline]
    pub fn wait(&self) {
        let _ = tokens::take(&self.word, None, Signals::Ignored);
    }

    /// [`wait`](Self::wait) until `deadline` at the latest (`sem_timedwait`, `sem_clockwait`); whether it has counted
    /// down. If that can be done at once the deadline is not looked at.
    ///
    /// Blocks.
    #[inline]
    #[must_use]
    pub fn wait_until(&self, deadline: Deadline) -> bool {
        tokens::take(&self.word, Some(&deadline), Signals::Ignored).is_ok()
    }

    /// [`wait`](Self::wait) for `timeout` at most; whether it has counted down.
    ///
    /// Blocks.
    #[inline]
    #[must_use]
    pub fn wait_for(&self, timeout: Duration) -> bool {
        self.try_wait() || self.wait_until(Deadline::after(timeout))
    }

    /// [`wait`](Self::wait), with or without a deadline, that ends when a signal handler has run: POSIX's `sem_wait`
    /// to the letter.
    ///
    /// Blocks.
    ///
    /// # Errors
    /// [`Error::TimedOut`]. [`Error::Interrupted`]: a handler ran that was installed without `SA_RESTART`, or, in
    /// most cases, any handler if there is a deadline. In both cases the value has not been changed.
    #[inline]
    pub fn wait_interruptible(&self, deadline: Option<Deadline>) -> Result<(), Error> {
        tokens::take(&self.word, deadline.as_ref(), Signals::Reported)
    }

    /// [`wait_interruptible`](Self::wait_interruptible) that ends, too, when another thread interrupts it `by` this: what a
    /// cancellation point needs. For private semaphores; in a process-shared one only signals end a wait.
    ///
    /// Blocks.
    ///
    /// # Errors
    /// As [`wait_interruptible`](Self::wait_interruptible). Whether it was `by` this, and not by a signal, it says itself.
    #[cfg(not(loom))]
    #[inline]
    pub(crate) fn wait_interruptible_by(
        &self,
        deadline: Option<Deadline>,
        by: &Interrupter,
    ) -> Result<(), Error> {
        tokens::take(&self.word, by.until(deadline.as_ref()), Signals::Reported)
    }

    /// Counts down by `count` in one step, if the value is not below that; whether it has.
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

    /// Counts down by `count` in one step, or waits until that can be done, or the deadline has
    /// passed; whether it has counted down.
    ///
    /// Blocks.
    #[inline]
    pub(crate) fn wait_many(&self, count: u32, deadline: Option<&Deadline>) -> bool {
        match count {
            1 => tokens::take(&self.word, deadline, Signals::Ignored).is_ok(),
            _ => tokens::take_several(&self.word, count, deadline).is_ok(),
        }
    }

    /// The value at some moment during the call (`sem_getvalue`): 0 if anybody must wait. For show, and for tests: it
    /// may have changed before the caller sees it.
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
