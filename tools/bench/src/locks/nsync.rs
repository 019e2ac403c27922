//! nsync (Google's C library, by the author of absl's locks; Debian 12: 1.25): a queue of waiters
//! guarded by the lock's word, a designated waker, and a condition variable that moves its waiters
//! to the lock.
//!
//! Used as `nsync_mu.h` and `nsync_cv.h` describe: `nsync_mu_lock` and `nsync_cv_wait`, with
//! conditions checked in a loop, not the conditional critical sections that it also has. The C
//! functions are declared here; Debian ships them only in a shared library.

use super::traits::{bench_condvar, bench_mutex, bench_rwlock};
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
bench_mutex! {
    #[inline] impl [] Mu = NAME;
    new: Self(init());
    |lock| lock: nsync_mu_lock(lock);
    try_lock: nsync_mu_trylock(lock) != 0;
    unlock: nsync_mu_unlock(lock);
}

// SAFETY: nsync's own condition variable, used with its own lock.
bench_condvar! {
    #[inline] impl [] Cv, Mu;
    new: Self(init());
    |condvar, mutex| wait: nsync_cv_wait(condvar, mutex);
    signal: nsync_cv_signal(condvar);
    broadcast: nsync_cv_broadcast(condvar);
}

// SAFETY: nsync's own lock.
bench_rwlock! {
    #[inline] impl [] Mu = NAME;
    new: Self(init());
    |lock| read_lock: nsync_mu_rlock(lock);
    read_unlock: nsync_mu_runlock(lock);
    write_lock: nsync_mu_lock(lock);
    write_unlock: nsync_mu_unlock(lock);
}
