//! A lock and the number that it guards, so that a workload can check its lock.

use crate::locks::BenchMutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A mutex and the number of sections done under it. The number is on its own cache line; otherwise
/// the lock's size would decide whether the holder's writes disturb waiters that read the lock.
#[repr(C, align(128))]
pub(super) struct Guarded<M> {
    pub(super) lock: M,
    sections: Apart,
}

#[repr(align(128))]
struct Apart(AtomicU64);

impl<M: BenchMutex> Guarded<M> {
    /// An unlocked mutex with no sections done.
    pub(super) fn new() -> Self {
        Self { lock: M::new(), sections: Apart(AtomicU64::new(0)) }
    }

    /// Counts one section; only the lock's holder may call this. A load and a store instead of one
    /// atomic step: if two threads hold the lock at once, one increment is lost. Relaxed, because
    /// the lock must provide the ordering.
    #[inline(always)]
    pub(super) fn count(&self) {
        let so_far = self.sections.0.load(Relaxed);
        self.sections.0.store(so_far + 1, Relaxed);
    }

    /// Returns the number of sections. Takes the lock.
    pub(super) fn sections(&self) -> u64 {
        self.lock.lock();
        let sections = self.sections.0.load(Relaxed);
        // SAFETY: locked above; `&self` keeps it in place.
        unsafe { self.lock.unlock() };
        sections
    }
}

/// A lock that does not exclude, to test whether a workload detects it.
#[cfg(test)]
pub(super) mod open {
    use super::BenchMutex;
    use crate::locks::BenchRwLock;

    pub(crate) struct Open;

    // SAFETY: deliberately false; used only where nothing but `Guarded::count`'s atomic number is
    // guarded.
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
