//! nsync (Google's C library, by the author of absl's locks; Debian 12: 1.25): a queue of waiters
//! guarded by the lock's word, a designated waker, and a condition variable that moves its waiters
//! to the lock.
//!
//! Used as `nsync_mu.h` and `nsync_cv.h` describe: `nsync_mu_lock` and `nsync_cv_wait`, with
//! conditions checked in a loop, not the conditional critical sections that it also has. The C
//! functions are declared here; Debian ships them only in a shared library.

use super::{BenchCondvar, BenchMutex, BenchRwLock};
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};

/// A 32-bit word and a pointer to waiters. Both of nsync's structures have this layout, and both
/// start as all zeros (`NSYNC_MU_INIT`, `NSYNC_CV_INIT`).
#[derive(Debug)]
#[repr(C)]
struct WordAndWaiters(u32, *mut c_void);

const fn init() -> UnsafeCell<WordAndWaiters> {
    UnsafeCell::new(WordAndWaiters(0, core::ptr::null_mut()))
}

/// `nsync_mu`, for exclusive and shared use.
#[derive(Debug)]
#[repr(C)]
pub struct Mu(UnsafeCell<WordAndWaiters>);

/// `nsync_cv`.
#[derive(Debug)]
#[repr(C)]
pub struct Cv(UnsafeCell<WordAndWaiters>);

unsafe extern "C" {
    fn nsync_mu_lock(mu: &Mu);
    fn nsync_mu_trylock(mu: &Mu) -> c_int;
    fn nsync_mu_unlock(mu: &Mu);
    fn nsync_mu_rlock(mu: &Mu);
    fn nsync_mu_runlock(mu: &Mu);
    fn nsync_cv_wait(cv: &Cv, mu: &Mu);
    fn nsync_cv_signal(cv: &Cv);
    fn nsync_cv_broadcast(cv: &Cv);
}

// SAFETY: the word is atomic, and the waiter list is accessed only under one of its bits, from any
// thread.
unsafe impl Send for Mu {}
// SAFETY: as above.
unsafe impl Sync for Mu {}
// SAFETY: as above.
unsafe impl Send for Cv {}
// SAFETY: as above.
unsafe impl Sync for Cv {}

const NAME: &str = "nsync";

// SAFETY: nsync's own lock.
unsafe impl BenchMutex for Mu {
    const NAME: &'static str = NAME;

    fn new() -> Self {
        Self(init())
    }

    #[inline]
    fn lock(&self) {
        // SAFETY: the lock was made by `new`.
        unsafe { nsync_mu_lock(self) }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        // SAFETY: as above.
        unsafe { nsync_mu_trylock(self) != 0 }
    }

    #[inline]
    unsafe fn unlock(&self) {
        // SAFETY: as above; the caller holds the lock, per this method's contract.
        unsafe { nsync_mu_unlock(self) }
    }
}

// SAFETY: nsync's own condition variable, used with its own lock.
unsafe impl BenchCondvar for Cv {
    type Mutex = Mu;

    fn new() -> Self {
        Self(init())
    }

    #[inline]
    unsafe fn wait(&self, mutex: &Mu) {
        // SAFETY: both were made by `new`; the caller holds the mutex, per this method's contract.
        unsafe { nsync_cv_wait(self, mutex) }
    }

    #[inline]
    fn signal(&self) {
        // SAFETY: it was made by `new`.
        unsafe { nsync_cv_signal(self) }
    }

    #[inline]
    fn broadcast(&self) {
        // SAFETY: it was made by `new`.
        unsafe { nsync_cv_broadcast(self) }
    }
}

// SAFETY: nsync's own lock.
unsafe impl BenchRwLock for Mu {
    const NAME: &'static str = NAME;

    fn new() -> Self {
        Self(init())
    }

    #[inline]
    fn read_lock(&self) {
        // SAFETY: the lock was made by `new`.
        unsafe { nsync_mu_rlock(self) }
    }

    #[inline]
    unsafe fn read_unlock(&self) {
        // SAFETY: as above; the caller holds the lock, per this method's contract.
        unsafe { nsync_mu_runlock(self) }
    }

    #[inline]
    fn write_lock(&self) {
        // SAFETY: as above.
        unsafe { nsync_mu_lock(self) }
    }

    #[inline]
    unsafe fn write_unlock(&self) {
        // SAFETY: as above; the caller holds the lock, per this method's contract.
        unsafe { nsync_mu_unlock(self) }
    }
}
