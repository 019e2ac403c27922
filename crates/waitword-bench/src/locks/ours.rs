//! Ours: the mutex in each flavour, the condvar, the rwlock in each preference.

use super::{BenchCondvar, BenchMutex};
use core::marker::PhantomData;
use waitword::{Flavour, MutexOptions, RawCondvar, RawMutex};

/// Which flavour of ours.
pub trait Ours: Send + Sync + 'static {
    /// As the report calls it.
    const NAME: &'static str;
    /// Which.
    const FLAVOUR: Flavour;
}

macro_rules! flavours {
    ($($(#[$doc:meta])* $name:ident, $called:literal, $flavour:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name;

        impl Ours for $name {
            const NAME: &'static str = $called;
            const FLAVOUR: Flavour = Flavour::$flavour;
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
    /// The kernel's.
    Inherit, "waitword PI", PriorityInheriting;
}

/// Our mutex of a flavour.
#[derive(Debug)]
pub struct Mutex<F>(RawMutex, PhantomData<F>);

// SAFETY: our own lock.
unsafe impl<F: Ours> BenchMutex for Mutex<F> {
    const NAME: &'static str = F::NAME;

    fn new() -> Self {
        Self(
            MutexOptions::new().flavour(F::FLAVOUR).build_raw(),
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
        // SAFETY: the caller holds it, as it says.
        unsafe { self.0.unlock() }
    }
}

/// Our condition variable with a mutex of a flavour.
#[derive(Debug)]
pub struct Condvar<F>(RawCondvar, PhantomData<F>);

// SAFETY: our own, with our own mutex.
unsafe impl<F: Ours> BenchCondvar for Condvar<F> {
    type Mutex = Mutex<F>;

    fn new() -> Self {
        Self(RawCondvar::new(), PhantomData)
    }

    #[inline(never)]
    unsafe fn wait(&self, mutex: &Mutex<F>) {
        // SAFETY: the caller holds the mutex, and all have the same, as it says.
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
