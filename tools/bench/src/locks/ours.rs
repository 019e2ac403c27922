//! Ours: the mutex in each flavour, the condvar, and the rwlock in each preference.

use super::traits::{bench_condvar, bench_mutex, bench_rwlock};
use core::marker::PhantomData;
use waitword::lock_api::RawRwLock as _;
use waitword::{
    PosixFlavour, PosixMutexOptions, Preference, RawCondvar, RawPosixMutex, RawRwLock, Scope,
};

/// A flavour of our mutex.
pub trait Ours: Send + Sync + 'static {
    /// Its name in the report.
    const NAME: &'static str;
    /// The flavour.
    const FLAVOUR: PosixFlavour;
}

/// A preference of our reader-writer lock.
pub trait Preferring: Send + Sync + 'static {
    /// Its name in the report.
    const NAME: &'static str;
    /// The preference.
    const PREFERENCE: Preference;
}

macro_rules! kinds {
    ($kind:ident, $constant:ident: $type:ident;
     $($(#[$doc:meta])* $name:ident, $called:literal, $value:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name;

        impl $kind for $name {
            const NAME: &'static str = $called;
            const $constant: $type = $type::$value;
        }
    )*};
}

kinds! {
    Ours, FLAVOUR: PosixFlavour;
    /// The default.
    Adaptive, "waitword", Adaptive;
    /// After the TO futexes of 2016.
    Throughput, "waitword TO", Throughput;
    /// Sleeps at once.
    WaitWake, "waitword WW", WaitWake;
    /// The kernel's PI futex.
    Inherit, "waitword PI", PriorityInheriting;
}

kinds! {
    Preferring, PREFERENCE: Preference;
    /// Readers first, as in POSIX.
    PreferReaders, "waitword, readers first", Reader;
    /// Writers first, the default in Rust.
    PreferWriters, "waitword, writers first", Writer;
}

/// Our mutex in one flavour.
#[derive(Debug)]
pub struct Mutex<F>(RawPosixMutex, PhantomData<F>);

// SAFETY: our own lock.
bench_mutex! {
    #[inline(never)] impl [F: Ours] Mutex<F> = F::NAME;
    new: Self(PosixMutexOptions::new().flavour(F::FLAVOUR).build_raw(), PhantomData);
    |lock| lock: lock.0.lock();
    try_lock: lock.0.try_lock();
    unlock: lock.0.unlock();
}

/// Our condition variable with a mutex of one flavour.
#[derive(Debug)]
pub struct Condvar<F>(RawCondvar, PhantomData<F>);

// SAFETY: our own condition variable, used with our own mutex.
bench_condvar! {
    #[inline(never)] impl [F: Ours] Condvar<F>, Mutex<F>;
    new: Self(RawCondvar::new(), PhantomData);
    |condvar, mutex| wait: assert_eq!(condvar.0.wait(&mutex.0, None), Ok(()));
    signal: _ = condvar.0.notify_one();
    broadcast: _ = condvar.0.notify_all();
}

/// Our reader-writer lock in one preference.
#[derive(Debug)]
pub struct RwLock<P>(RawRwLock, PhantomData<P>);

// SAFETY: our own lock.
bench_rwlock! {
    #[inline(never)] impl [P: Preferring] RwLock<P> = P::NAME;
    new: Self(RawRwLock::with(P::PREFERENCE, Scope::Private), PhantomData);
    |lock| read_lock: lock.0.lock_shared();
    read_unlock: lock.0.unlock_shared();
    write_lock: lock.0.lock_exclusive();
    write_unlock: lock.0.unlock_exclusive();
}
