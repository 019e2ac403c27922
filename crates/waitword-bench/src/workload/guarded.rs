//! A lock and the number that it guards: so that a workload can check its lock.

use crate::locks::BenchMutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A mutex, and how many sections were done under it. The number lies on a cache line of its own: or else the lock's
/// size would decide whether the holder's writing disturbs the waiters' reading of the lock.
#[repr(C, align(128))]
pub(super) struct Guarded<M> {
    pub(super) lock: M,
    sections: Apart,
}

#[repr(align(128))]
struct Apart(AtomicU64);

impl<M: BenchMutex> Guarded<M> {
    /// Unlocked, nothing done.
    pub(super) fn new() -> Self {
        Self {
            lock: M::new(),
            sections: Apart(AtomicU64::new(0)),
        }
    }

    /// One more; by the lock's holder. A load and a store, and not one atomic step: of two threads that hold the lock at once,
    /// one's is lost. Relaxed, since the lock has to bring the order.
    #[inline(always)]
    pub(super) fn count(&self) {
        let so_far = self.sections.0.load(Relaxed);
        self.sections.0.store(so_far + 1, Relaxed);
    }

    /// How many. Takes the lock.
    pub(super) fn sections(&self) -> u64 {
        self.lock.lock();
        let sections = self.sections.0.load(Relaxed);
        // SAFETY: locked above; `&self` keeps it where it is.
        unsafe { self.lock.unlock() };
        sections
    }
}

/// A lock that is none, for tests: does a workload find out?
#[cfg(test)]
pub(super) mod open {
    use super::BenchMutex;
    use crate::locks::BenchRwLock;

    pub(crate) struct Open;

    // SAFETY: a lie, told to those only who guard nothing but `Guarded::count`'s atomic number.
    unsafe impl BenchMutex for Open {
        const NAME: &'static str = "open";
        fn new() -> Self {
            Self
        }
        fn lock(&self) {}
        fn try_lock(&self) -> bool {
            true
        }
        unsafe fn unlock(&self) {}
    }

    // SAFETY: as above, for atomic numbers.
    unsafe impl BenchRwLock for Open {
        const NAME: &'static str = "open";
        fn new() -> Self {
            Self
        }
        fn read_lock(&self) {}
        unsafe fn read_unlock(&self) {}
        fn write_lock(&self) {}
        unsafe fn write_unlock(&self) {}
    }
}
