//! Ours: the mutex in each flavour, the condvar, and the rwlock in each preference.

use super::{BenchCondvar, BenchMutex, BenchRwLock};
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

macro_rules! flavours {
    ($($(#[$doc:meta])* $name:ident, $called:literal, $flavour:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name;

        impl Ours for $name {
            const NAME: &'static str = $called;
            const FLAVOUR: PosixFlavour = PosixFlavour::$flavour;
        }
    )*};
}

flavours! {
    /// The default.
    Adaptive, "waitword", Adaptive;
    /// After the TO futexes of 2016.
    Throughput, "waitword TO", Throughput;
    /// Sleeps at once.
    WaitWake, "waitword WW", WaitWake;
    /// The kernel's PI futex.
    Inherit, "waitword PI", PriorityInheriting;
}

/// Our mutex in one flavour.
#[derive(Debug)]
pub struct Mutex<F>(RawPosixMutex, PhantomData<F>);

// SAFETY: our own lock.
unsafe impl<F: Ours> BenchMutex for Mutex<F> {
    const NAME: &'static str = F::NAME;

    fn new() -> Self {
        Self(
            PosixMutexOptions::new().flavour(F::FLAVOUR).build_raw(),
            PhantomData,
        )
    }

    #[inline(never)]
    fn lock(&self) {
        self.0.lock();
    }

    #[inline(never)]
    fn try_lock(&self) -> bool {
        self.0.try_lock()
    }

    #[inline(never)]
    unsafe fn unlock(&self) {
        // SAFETY: the caller holds it, per this method's contract.
        unsafe { self.0.unlock() }
    }
}

/// Our condition variable with a mutex of one flavour.
#[derive(Debug)]
pub struct Condvar<F>(RawCondvar, PhantomData<F>);

// SAFETY: our own condition variable, used with our own mutex.
unsafe impl<F: Ours> BenchCondvar for Condvar<F> {
    type Mutex = Mutex<F>;

    fn new() -> Self {
        Self(RawCondvar::new(), PhantomData)
    }

    #[inline(never)]
    unsafe fn wait(&self, mutex: &Mutex<F>) {
        // SAFETY: the caller holds the mutex, and all waiters use the same one, per this method's
        // contract.
        let result = unsafe { self.0.wait(&mutex.0, None) };
        assert_eq!(result, Ok(()));
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

/// A preference of our reader-writer lock.
pub trait Preferring: Send + Sync + 'static {
    /// Its name in the report.
    const NAME: &'static str;
    /// The preference.
    const PREFERENCE: Preference;
}

/// Readers first, as in POSIX.
#[derive(Debug)]
pub struct PreferReaders;

/// Writers first, the default in Rust.
#[derive(Debug)]
pub struct PreferWriters;

impl Preferring for PreferReaders {
    const NAME: &'static str = "waitword, readers first";
    const PREFERENCE: Preference = Preference::Reader;
}

impl Preferring for PreferWriters {
    const NAME: &'static str = "waitword, writers first";
    const PREFERENCE: Preference = Preference::Writer;
}

/// Our reader-writer lock in one preference.
#[derive(Debug)]
pub struct RwLock<P>(RawRwLock, PhantomData<P>);

// SAFETY: our own lock.
unsafe impl<P: Preferring> BenchRwLock for RwLock<P> {
    const NAME: &'static str = P::NAME;

    fn new() -> Self {
        Self(RawRwLock::with(P::PREFERENCE, Scope::Private), PhantomData)
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
