//! What a peer must offer to be measured, and those that are: the kernel's futex, by itself and
//! behind a spin; ours;
//! `parking_lot_core`, and C++'s atomics.
//!
//! [`Futexes`] is the whole interface. The loops are the same for every peer, and in every peer each operation
//! is one function call ([`Called`]), so that what differs between two figures is what the peers do. Another
//! peer (a library with a table of its own, say) is one more `impl`.

mod called;
#[cfg(has_cpp)]
mod cpp;
mod kernel;
mod ours;
mod parked;
mod spinning;

pub use called::{Called, Inlined};
#[cfg(has_cpp)]
pub use cpp::CppAtomic;
pub use kernel::Kernel;
pub use ours::Ours;
pub use parked::Parked;
pub use spinning::Spinning;

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::SeqCst};

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// Somebody woke us (or it is a spurious wake-up, which nobody can tell).
    Woken,
    /// The word did not hold the expected value.
    Mismatch,
    /// A signal handler ran.
    Interrupted,
}

/// A futex word of some width, its value as a `u64`.
pub trait BenchWord: waitword::FutexWord + Default + Send {
    /// How wide it is.
    const BITS: u32;
    /// Sequentially consistent, as all that the workloads do.
    fn load(&self) -> u64;
    /// Sequentially consistent; the value is cut to the width.
    fn store(&self, value: u64);
    /// The value, cut to the width.
    fn value(value: u64) -> Self::Value;
}

macro_rules! bench_words {
    ($($atomic:ty, $value:ty;)*) => {$(
        impl BenchWord for $atomic {
            const BITS: u32 = <$value>::BITS;
            #[inline(always)]
            fn load(&self) -> u64 {
                <$atomic>::load(self, SeqCst).into()
            }
            #[inline(always)]
            fn store(&self, value: u64) {
                <$atomic>::store(self, value as $value, SeqCst);
            }
            #[inline(always)]
            fn value(value: u64) -> $value {
                value as $value
            }
        }
    )*};
}

bench_words! {
    AtomicU8, u8;
    AtomicU16, u16;
    AtomicU32, u32;
    AtomicU64, u64;
}

/// One implementation of the futex operations, on words of one width.
///
/// Every method panics with the implementation's error where it fails in a way that no workload
/// provokes: a failed measurement must not look like a fast one.
pub trait Futexes: Copy + Send + Sync + 'static {
    /// The words it works on.
    type Word: BenchWord;

    /// As the report calls it.
    fn name(self) -> String;

    /// Sleeps while `word` holds `expected`.
    fn wait(self, word: &Self::Word, expected: u64) -> Waited;

    /// Wakes up to `count` (at least 1); how many were.
    fn wake(self, word: &Self::Word, count: usize) -> usize;

    /// Wakes up to `wake` of `from`, moves up to `moved` of the others to `to`; woken plus moved.
    fn requeue(self, from: &Self::Word, to: &Self::Word, wake: usize, moved: usize) -> usize;

    /// Sets `second` to 0; wakes one of `first`, and one of `second` if that held more than 1; the sum.
    fn wake_op(self, first: &Self::Word, second: &Self::Word) -> usize;

    /// How many waiters stand in its own table, if it has one that can be asked. Only what stands there
    /// can be woken: a sleeping thread may as well sleep on the way to it.
    fn queued(self) -> Option<usize> {
        None
    }
}
