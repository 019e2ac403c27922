//! Permits: what a thread has taken from a semaphore, and gives back when it is done.

use super::semaphore::Semaphore;
use crate::sys::clock::Deadline;
use core::time::Duration;

/// One or more permits of a [`Semaphore`]. Dropping it posts them back.
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
/// // A connection that is never given back.
/// connections.acquire().forget();
/// assert_eq!(connections.value(), 2);
/// ```
///
/// Any thread may drop it. If it is leaked, its permits are lost, as after
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
    /// The number of permits that it holds.
    #[inline]
    pub fn num_permits(&self) -> u32 {
        self.permits
    }

    /// Removes the permits from the semaphore for good: its value stays lower.
    #[inline]
    pub fn forget(mut self) {
        self.permits = 0;
    }
}

impl Drop for SemaphorePermit<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.permits != 0 {
            // Refused only if other threads have posted more than they had taken, and the value has
            // reached its maximum. It stays there.
            let _ = self.semaphore.post_many(self.permits);
        }
    }
}

/// Permits with a guard that gives them back.
///
/// Several permits are taken in one step, so threads that want several never wait for each other
/// while each holds a part of them. Threads that want fewer may go first, without bound.
impl Semaphore {
    /// Takes one permit, waiting until there is one. ([`wait`](Self::wait), with a guard that
    /// posts.)
    ///
    /// Blocks.
    #[inline]
    pub fn acquire(&self) -> SemaphorePermit<'_> {
        self.acquire_many(1)
    }

    /// Takes one permit if there is one. Does not block.
    #[inline]
    pub fn try_acquire(&self) -> Option<SemaphorePermit<'_>> {
        self.try_acquire_many(1)
    }

    /// Takes one permit, waiting until `deadline` at the latest: an
    /// [`Instant`](std::time::Instant), or a time on either clock. If there is a permit, the
    /// deadline is not checked.
    ///
    /// Blocks.
    #[inline]
    pub fn acquire_until(&self, deadline: impl Into<Deadline>) -> Option<SemaphorePermit<'_>> {
        self.acquire_many_until(1, deadline)
    }

    /// Takes one permit, waiting for at most `timeout`.
    ///
    /// Blocks.
    #[inline]
    pub fn acquire_for(&self, timeout: Duration) -> Option<SemaphorePermit<'_>> {
        self.acquire_many_for(1, timeout)
    }

    /// Takes `permits` permits in one step, waiting until there are that many.
    ///
    /// Blocks.
    ///
    /// # Panics
    /// If there can never be that many: more than [`MAX_VALUE`](Self::MAX_VALUE).
    #[inline]
    pub fn acquire_many(&self, permits: u32) -> SemaphorePermit<'_> {
        assert!(permits <= Self::MAX_VALUE, "no semaphore has {permits} permits");
        let taken = self.wait_many(permits, None);
        debug_assert!(taken, "without a deadline");
        self.permit(permits)
    }

    /// Takes `permits` permits in one step if there are that many. Does not block.
    #[inline]
    pub fn try_acquire_many(&self, permits: u32) -> Option<SemaphorePermit<'_>> {
        self.try_wait_many(permits).then(|| self.permit(permits))
    }

    /// Takes `permits` permits in one step, waiting until `deadline` at the latest, as
    /// [`acquire_until`](Self::acquire_until) does.
    ///
    /// Blocks.
    #[inline]
    pub fn acquire_many_until(
        &self,
        permits: u32,
        deadline: impl Into<Deadline>,
    ) -> Option<SemaphorePermit<'_>> {
        self.wait_many(permits, Some(&deadline.into())).then(|| self.permit(permits))
    }

    /// Takes `permits` permits in one step, waiting for at most `timeout`.
    ///
    /// Blocks.
    #[inline]
    pub fn acquire_many_for(&self, permits: u32, timeout: Duration) -> Option<SemaphorePermit<'_>> {
        // The clock is read only if there are not enough permits.
        self.try_acquire_many(permits)
            .or_else(|| self.acquire_many_until(permits, Deadline::after(timeout)))
    }

    fn permit(&self, permits: u32) -> SemaphorePermit<'_> {
        SemaphorePermit { semaphore: self, permits }
    }
}
