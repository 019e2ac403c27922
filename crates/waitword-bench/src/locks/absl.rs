//! absl's (Google's C++ library; Debian 12: 20220623.1): a queue of waiters in the lock's word, spinning before sleeping,
//! and a reader-writer mode of the same class.
//!
//! Used as `absl/synchronization/mutex.h` says. **Deadlock detection is switched off**, as in absl's optimized builds: Debian
//! builds the library without `NDEBUG`, which leaves it on, and each lock would be looked up in a graph of all: most of
//! the time of an uncontended one. Its other assertions stay in. `scripts/absl` builds it with
//! `NDEBUG`; what is linked is found out by the build script, and is part of the name.
//!
//! The functions of `absl.cc` beside this file, compiled by the build script, end in a jump to the class's own
//! function: one call, as with the others.

use super::{BenchCondvar, BenchMutex, BenchRwLock};
use core::cell::UnsafeCell;

/// `absl::Mutex`, exclusively and for readers. All zeros is an unlocked one: what its constant constructor makes.
#[derive(Debug)]
#[repr(C)]
pub struct Mu(UnsafeCell<isize>);

/// `absl::CondVar`. All zeros is one that nobody waits on.
#[derive(Debug)]
#[repr(C)]
pub struct Cv(UnsafeCell<isize>);

unsafe extern "C" {
    fn waitword_absl_no_deadlock_detection();
    fn waitword_absl_mu_lock(mu: &Mu);
    fn waitword_absl_mu_try_lock(mu: &Mu) -> bool;
    fn waitword_absl_mu_unlock(mu: &Mu);
    fn waitword_absl_mu_reader_lock(mu: &Mu);
    fn waitword_absl_mu_reader_unlock(mu: &Mu);
    fn waitword_absl_cv_wait(cv: &Cv, mu: &Mu);
    fn waitword_absl_cv_signal(cv: &Cv);
    fn waitword_absl_cv_broadcast(cv: &Cv);
}

// SAFETY: one atomic word to those who may touch it.
unsafe impl Send for Mu {}
// SAFETY: as above.
unsafe impl Sync for Mu {}
// SAFETY: as above.
unsafe impl Send for Cv {}
// SAFETY: as above.
unsafe impl Sync for Cv {}

/// Debian's build says so wherever it stands.
pub const NAME: &str = if cfg!(absl_is_optimized) {
    "absl"
} else {
    "absl, Debian's"
};

impl Mu {
    fn unlocked() -> Self {
        // SAFETY: it stores a setting, of all locks there are or will be.
        unsafe { waitword_absl_no_deadlock_detection() };
        Self(UnsafeCell::new(0))
    }
}

// SAFETY: absl's own lock.
unsafe impl BenchMutex for Mu {
    const NAME: &'static str = NAME;

    fn new() -> Self {
        Self::unlocked()
    }

    #[inline]
    fn lock(&self) {
        // SAFETY: a lock made by `new`.
        unsafe { waitword_absl_mu_lock(self) }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        // SAFETY: as above.
        unsafe { waitword_absl_mu_try_lock(self) }
    }

    #[inline]
    unsafe fn unlock(&self) {
        // SAFETY: as above; held by the caller, as it says.
        unsafe { waitword_absl_mu_unlock(self) }
    }
}

// SAFETY: absl's own, with its own lock.
unsafe impl BenchCondvar for Cv {
    type Mutex = Mu;

    fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    #[inline]
    unsafe fn wait(&self, mutex: &Mu) {
        // SAFETY: both made by `new`; the caller holds the mutex, as it says.
        unsafe { waitword_absl_cv_wait(self, mutex) }
    }

    #[inline]
    fn signal(&self) {
        // SAFETY: made by `new`.
        unsafe { waitword_absl_cv_signal(self) }
    }

    #[inline]
    fn broadcast(&self) {
        // SAFETY: made by `new`.
        unsafe { waitword_absl_cv_broadcast(self) }
    }
}

// SAFETY: absl's own lock.
unsafe impl BenchRwLock for Mu {
    const NAME: &'static str = NAME;

    fn new() -> Self {
        Self::unlocked()
    }

    #[inline]
    fn read_lock(&self) {
        // SAFETY: a lock made by `new`.
        unsafe { waitword_absl_mu_reader_lock(self) }
    }

    #[inline]
    unsafe fn read_unlock(&self) {
        // SAFETY: as above; held by the caller, as it says.
        unsafe { waitword_absl_mu_reader_unlock(self) }
    }

    #[inline]
    fn write_lock(&self) {
        // SAFETY: as above.
        unsafe { waitword_absl_mu_lock(self) }
    }

    #[inline]
    unsafe fn write_unlock(&self) {
        // SAFETY: as above; held by the caller, as it says.
        unsafe { waitword_absl_mu_unlock(self) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With deadlock detection, the process is over: the second order makes a cycle.
    #[test]
    fn locks_may_be_taken_in_either_order() {
        let locks: [Mu; 2] = [BenchMutex::new(), BenchMutex::new()];
        for order in [[0, 1], [1, 0]] {
            for index in order {
                locks[index].lock();
            }
            for index in order {
                // SAFETY: locked above.
                unsafe { locks[index].unlock() };
            }
        }
    }
}
