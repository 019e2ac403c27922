//! absl (Google's C++ library; Debian 12: 20220623.1): a queue of waiters in the lock's word, a
//! spin before sleeping, and a reader-writer mode of the same class.
//!
//! Used as `absl/synchronization/mutex.h` describes. **Deadlock detection is switched off**, as in
//! absl's optimized builds. Debian builds the library without `NDEBUG`, which leaves detection on;
//! each acquisition would then look up the lock in a graph of all locks, which takes most of the
//! time of an uncontended one. Debian's other assertions stay in. `scripts/absl` builds the library
//! with `NDEBUG`; the build script detects which build is linked, and the contender's name shows
//! it.
//!
//! The functions in `absl.cc`, compiled by the build script, are tail calls to the class's own
//! functions, so an operation costs one call, as with the other contenders.

use super::traits::{bench_condvar, bench_mutex, bench_rwlock};
use core::cell::UnsafeCell;

/// `absl::Mutex`, for exclusive and shared use. All zeros is an unlocked mutex, as its constant
/// constructor makes it.
#[derive(Debug)]
#[repr(C)]
pub struct Mu(UnsafeCell<isize>);

/// `absl::CondVar`. All zeros is one without waiters.
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

// SAFETY: one word, accessed only atomically by absl's functions.
unsafe impl Send for Mu {}
// SAFETY: as above.
unsafe impl Sync for Mu {}
// SAFETY: as above.
unsafe impl Send for Cv {}
// SAFETY: as above.
unsafe impl Sync for Cv {}

/// The contender's name. Debian's build is marked as such everywhere.
pub const NAME: &str = if cfg!(absl_is_optimized) { "absl" } else { "absl, Debian's" };

impl Mu {
    fn unlocked() -> Self {
        // SAFETY: it only stores a process-wide setting for all present and future locks.
        unsafe { waitword_absl_no_deadlock_detection() };
        Self(UnsafeCell::new(0))
    }
}

// SAFETY: absl's own lock.
bench_mutex! {
    #[inline] impl [] Mu = NAME;
    new: Self::unlocked();
    |lock| lock: waitword_absl_mu_lock(lock);
    try_lock: waitword_absl_mu_try_lock(lock);
    unlock: waitword_absl_mu_unlock(lock);
}

// SAFETY: absl's own condition variable, used with its own lock.
bench_condvar! {
    #[inline] impl [] Cv, Mu;
    new: Self(UnsafeCell::new(0));
    |condvar, mutex| wait: waitword_absl_cv_wait(condvar, mutex);
    signal: waitword_absl_cv_signal(condvar);
    broadcast: waitword_absl_cv_broadcast(condvar);
}

// SAFETY: absl's own lock.
bench_rwlock! {
    #[inline] impl [] Mu = NAME;
    new: Self::unlocked();
    |lock| read_lock: waitword_absl_mu_reader_lock(lock);
    read_unlock: waitword_absl_mu_reader_unlock(lock);
    write_lock: waitword_absl_mu_lock(lock);
    write_unlock: waitword_absl_mu_unlock(lock);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locks::BenchMutex;

    /// With deadlock detection this would abort the process: the second order closes a cycle.
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
