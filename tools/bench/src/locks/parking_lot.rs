//! parking_lot: a byte of state and its own table of waiters; a crate that many Rust programs use.
//!
//! Uses its raw locks through `lock_api`. Its condition variable works only with guards, so `wait`
//! makes one for the call.

use super::{BenchCondvar, BenchMutex, BenchRwLock};
use lock_api::{RawMutex as _, RawRwLock as _};

const NAME: &str = "parking_lot";

/// `parking_lot::Mutex`.
#[derive(Debug)]
pub struct Mutex(parking_lot::Mutex<()>);

impl Mutex {
    #[inline]
    fn raw(&self) -> &parking_lot::RawMutex {
        // SAFETY: the raw lock is used only by `BenchMutex`'s methods, whose contract demands of
        // callers what this function demands of us.
        unsafe { self.0.raw() }
    }
}

// SAFETY: parking_lot's own lock.
unsafe impl BenchMutex for Mutex {
    const NAME: &'static str = NAME;

    fn new() -> Self {
        Self(parking_lot::Mutex::new(()))
    }

    #[inline(never)]
    fn lock(&self) {
        self.raw().lock();
    }

    #[inline(never)]
    fn try_lock(&self) -> bool {
        self.raw().try_lock()
    }

    #[inline(never)]
    unsafe fn unlock(&self) {
        // SAFETY: the caller holds it, per this method's contract.
        unsafe { self.raw().unlock() }
    }
}

/// `parking_lot::Condvar`.
#[derive(Debug)]
pub struct Condvar(parking_lot::Condvar);

// SAFETY: parking_lot's own condition variable, used with its own mutex.
unsafe impl BenchCondvar for Condvar {
    type Mutex = Mutex;

    fn new() -> Self {
        Self(parking_lot::Condvar::new())
    }

    #[inline(never)]
    unsafe fn wait(&self, mutex: &Mutex) {
        // SAFETY: the caller holds the mutex, per this method's contract, and no other guard of it
        // exists.
        let mut guard = unsafe { mutex.0.make_guard_unchecked() };
        self.0.wait(&mut guard);
        // The caller still holds the mutex.
        core::mem::forget(guard);
    }

    #[inline(never)]
    fn signal(&self) {
        self.0.notify_one();
    }

    #[inline(never)]
    fn broadcast(&self) {
        self.0.notify_all();
    }
}

/// `parking_lot::RwLock`.
pub struct RwLock(parking_lot::RawRwLock);

// SAFETY: parking_lot's own lock.
unsafe impl BenchRwLock for RwLock {
    const NAME: &'static str = NAME;

    fn new() -> Self {
        Self(parking_lot::RawRwLock::INIT)
    }

    #[inline(never)]
    fn read_lock(&self) {
        self.0.lock_shared();
    }

    #[inline(never)]
    unsafe fn read_unlock(&self) {
        // SAFETY: the caller holds it for reading, per this method's contract.
        unsafe { self.0.unlock_shared() }
    }

    #[inline(never)]
    fn write_lock(&self) {
        self.0.lock_exclusive();
    }

    #[inline(never)]
    unsafe fn write_unlock(&self) {
        // SAFETY: the caller holds it for writing, per this method's contract.
        unsafe { self.0.unlock_exclusive() }
    }
}
