//! What a thread has taken from a semaphore and gives back when it is done.

use super::semaphore::Semaphore;
use crate::sys::clock::Deadline;
use core::time::Duration;

/// Permits of a [`Semaphore`]: dropping it posts as many as it stands for.
///
/// ```
/// use waitword::Semaphore;
///
/// let connections = Semaphore::new(3);
/// let one = connections.acquire();
/// assert!(connections.try_acquire_many(3).is_none());
/// let two = connections.acquire_many(2);
/// assert_eq!((connections.value(), two.num_permits()), (0, 2));
/// drop((one, two));
/// assert_eq!(connections.value(), 3);
///
/// // A connection that is not coming back.
/// connections.acquire().forget();
/// assert_eq!(connections.value(), 2);
/// ```
///
/// Any thread may drop it. If it is leaked, its permits are gone, as after
/// [`forget`](Self::forget).
///
/// Source: `tokio::sync::SemaphorePermit`, whose methods have the same names and meaning.
#[must_use = "the permits are given back when it is dropped"]
#[derive(Debug)]
pub struct SemaphorePermit<'a> {
    semaphore: &'a Semaphore,
    permits: u32,
}

impl SemaphorePermit<'_> {
    /// How many permits it stands for.
    #[inline]
    pub fn num_permits(&self) -> u32 {
        self.permits
    }

    /// Keeps the permits from the semaphore for good: its value stays lower.
    #[inline]
    pub fn forget(mut self) {
        self.permits = 0;
    }
}

impl Drop for SemaphorePermit<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.permits != 0 {
            // Refused only if others have posted the value up to its maximum, more than they had
            // taken. It stays there.
            let _ = self.semaphore.post_many(self.permits);
        }
    }
}

/// Permits that are given back by a guard.
///
/// Several permits are taken in one step, so threads that want several never wait for each other
/// with a part of them. Threads that want fewer may go first, without bound.
impl Semaphore {
    /// Takes one permit; waits until there is one. ([`wait`](Self::wait), with a guard that posts.)
    ///
    /// Blocks.
    #[inline]
    pub fn acquire(&self) -> SemaphorePermit<'_> {
        self.acquire_many(1)
    }

    /// Takes one permit, if there is one. Does not block.
    #[inline]
    pub fn try_acquire(&self) -> Option<SemaphorePermit<'_>> {
        self.try_acquire_many(1)
    }

    /// Takes one permit; waits until `deadline` at the latest: an [`Instant`](std::time::Instant),
    /// or a time on either clock. If there is one, the deadline is not looked at.
    ///
    /// Blocks.
    #[inline]
    pub fn acquire_until(&self, deadline: impl Into<Deadline>) -> Option<SemaphorePermit<'_>> {
        self.acquire_many_until(1, deadline)
    }

    /// Takes one permit; waits for `timeout` at most.
    ///
    /// Blocks.
    #[inline]
    pub fn acquire_for(&self, timeout: Duration) -> Option<SemaphorePermit<'_>> {
        self.acquire_many_for(1, timeout)
    }

    /// Takes as many permits in one step; waits until there are so many.
    ///
    /// Blocks.
    ///
    /// # Panics
    /// If there can never be so many: above [`MAX_VALUE`](Self::MAX_VALUE).
    #[inline]
    pub fn acquire_many(&self, permits: u32) -> SemaphorePermit<'_> {
        assert!(
            permits <= Self::MAX_VALUE,
            "no semaphore has {permits} permits"
        );
        let taken = self.wait_many(permits, None);
        debug_assert!(taken, "without a deadline");
        self.permit(permits)
    }

    /// Takes as many permits in one step, if there are so many. Does not block.
    #[inline]
    pub fn try_acquire_many(&self, permits: u32) -> Option<SemaphorePermit<'_>> {
        self.try_wait_many(permits).then(|| self.permit(permits))
    }

    /// Takes as many permits in one step; waits until `deadline` at the latest, as
    /// [`acquire_until`](Self::acquire_until).
    ///
    /// Blocks.
    #[inline]
    pub fn acquire_many_until(
        &self,
        permits: u32,
        deadline: impl Into<Deadline>,
    ) -> Option<SemaphorePermit<'_>> {
        self.wait_many(permits, Some(&deadline.into()))
            .then(|| self.permit(permits))
    }

    /// Takes as many permits in one step; waits for `timeout` at most.
    ///
    /// Blocks.
    #[inline]
    pub fn acquire_many_for(&self, permits: u32, timeout: Duration) -> Option<SemaphorePermit<'_>> {
        // The clock is read only if there are not so many.
        self.try_acquire_many(permits)
            .or_else(|| self.acquire_many_until(permits, Deadline::after(timeout)))
    }

    fn permit(&self, permits: u32) -> SemaphorePermit<'_> {
        SemaphorePermit {
            semaphore: self,
            permits,
        }
    }
}
