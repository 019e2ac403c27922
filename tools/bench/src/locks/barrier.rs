//! Barriers: `pthread_barrier_t` from the C library and from the drop-in, Rust's standard
//! library's, and ours.
//!
//! parking_lot and nsync have no barrier; absl's serves one round only and is then destroyed.

use super::pthread::{CLibrary, Library};
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ptr::null;

/// A point at which a fixed number of threads wait for each other, round after round.
pub trait BenchBarrier: Send + Sync + Sized + 'static {
    /// Its name in the report.
    const NAME: &'static str;
    /// Creates a barrier for this many threads.
    fn new(threads: u32) -> Self;
    /// Waits for the other threads. Returns true in one thread of each round.
    fn wait(&self) -> bool;
}

/// `pthread_barrier_t`. Plain data while no thread waits, so it may be moved out of `new`.
pub struct Pthread<L: Library = CLibrary>(UnsafeCell<libc::pthread_barrier_t>, PhantomData<L>);

// SAFETY: a POSIX barrier is made to be used by many threads.
unsafe impl<L: Library> Send for Pthread<L> {}
// SAFETY: as above.
unsafe impl<L: Library> Sync for Pthread<L> {}

impl<L: Library> BenchBarrier for Pthread<L> {
    const NAME: &'static str = if L::IS_DROP_IN { "drop-in" } else { "glibc" };

    fn new(threads: u32) -> Self {
        // SAFETY: plain bytes, initialized below before any other thread can reach them.
        let barrier: Self = unsafe { Self(core::mem::zeroed(), PhantomData) };
        // SAFETY: as above; null attributes select the defaults.
        let error = unsafe { (L::functions().barrier_init)(barrier.0.get(), null(), threads) };
        assert_eq!(error, 0, "the C library refuses to make such a barrier");
        barrier
    }

    #[inline]
    fn wait(&self) -> bool {
        // SAFETY: the barrier is initialized.
        let result = unsafe { (L::functions().barrier_wait)(self.0.get()) };
        debug_assert!(result == 0 || result == libc::PTHREAD_BARRIER_SERIAL_THREAD);
        result == libc::PTHREAD_BARRIER_SERIAL_THREAD
    }
}

// No `pthread_barrier_destroy`: it waits for threads that are still waiting, and a failed workload
// may have left some.

/// `std::sync::Barrier`.
#[derive(Debug)]
pub struct Std(std::sync::Barrier);

impl BenchBarrier for Std {
    const NAME: &'static str = "std";

    fn new(threads: u32) -> Self {
        Self(std::sync::Barrier::new(threads as usize))
    }

    #[inline(never)]
    fn wait(&self) -> bool {
        self.0.wait().is_leader()
    }
}

/// Ours.
#[derive(Debug)]
pub struct Ours(waitword::Barrier);

impl BenchBarrier for Ours {
    const NAME: &'static str = "waitword";

    fn new(threads: u32) -> Self {
        Self(waitword::Barrier::new(threads))
    }

    #[inline(never)]
    fn wait(&self) -> bool {
        self.0.wait().is_leader()
    }
}

/// Calls `$build`, a function generic over [`BenchBarrier`], for every barrier; the results are a
/// `Vec`.
macro_rules! every_barrier {
    ($build:ident $arguments:tt) => {{
        use crate::locks::{barrier, pthread};
        let mut all = vec![
            $build::<barrier::Pthread> $arguments,
            $build::<barrier::Std> $arguments,
            $build::<barrier::Ours> $arguments,
        ];
        if pthread::is_loaded() {
            all.push($build::<barrier::Pthread<pthread::DropIn>> $arguments);
        }
        all
    }};
}
pub(crate) use every_barrier;
