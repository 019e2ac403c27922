//! parking_lot: a byte of state and its own table of waiters; a crate that many Rust programs use.
//!
//! Uses its raw locks through `lock_api`. Its condition variable works only with guards, so `wait`
//! makes one for the call.

use super::traits::{bench_condvar, bench_mutex, bench_rwlock};
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
bench_mutex! {
    #[inline(never)] impl [] Mutex = NAME;
    new: Self(parking_lot::Mutex::new(()));
    |lock| lock: lock.raw().lock();
    try_lock: lock.raw().try_lock();
    unlock: lock.raw().unlock();
}

/// `parking_lot::Condvar`.
#[derive(Debug)]
pub struct Condvar(parking_lot::Condvar);

// SAFETY: parking_lot's own condition variable, used with its own mutex.
bench_condvar! {
    #[inline(never)] impl [] Condvar, Mutex;
    new: Self(parking_lot::Condvar::new());
    |condvar, mutex| wait: {
        // No other guard of it exists.
        let mut guard = mutex.0.make_guard_unchecked();
        condvar.0.wait(&mut guard);
        // The caller still holds the mutex.
        core::mem::forget(guard);
    };
    signal: _ = condvar.0.notify_one();
    broadcast: _ = condvar.0.notify_all();
}

/// `parking_lot::RwLock`.
pub struct RwLock(parking_lot::RawRwLock);

// SAFETY: parking_lot's own lock.
bench_rwlock! {
    #[inline(never)] impl [] RwLock = NAME;
    new: Self(parking_lot::RawRwLock::INIT);
    |lock| read_lock: lock.0.lock_shared();
    read_unlock: lock.0.unlock_shared();
    write_lock: lock.0.lock_exclusive();
    write_unlock: lock.0.unlock_exclusive();
}
