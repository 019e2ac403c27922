//! The futex interface: what a peer implements to be measured.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::SeqCst};

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// Woken. This includes spurious wake-ups, which cannot be distinguished.
    Woken,
    /// The word did not hold the expected value.
    Mismatch,
    /// A signal handler ran.
    Interrupted,
}

/// A futex word of some width, with its value as a `u64`.
pub trait BenchWord: waitword::FutexWord + Default + Send {
    /// Width in bits.
    const BITS: u32;
    /// Sequentially consistent, like everything that the workloads do.
    fn load(&self) -> u64;
    /// Sequentially consistent; the value is truncated to the width.
    fn store(&self, value: u64);
    /// The value, truncated to the width.
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
/// A method panics with the implementation's error if it fails in a way that no workload provokes:
/// a failed measurement must not look like a fast one.
pub trait Futexes: Copy + Send + Sync + 'static {
    /// The words it works on.
    type Word: BenchWord;

    /// The name in reports.
    fn name(self) -> String;

    /// Sleeps while `word` holds `expected`.
    fn wait(self, word: &Self::Word, expected: u64) -> Waited;

    /// Wakes up to `count` waiters (at least 1), and returns how many were woken.
    fn wake(self, word: &Self::Word, count: usize) -> usize;

    /// Wakes up to `wake` waiters of `from`, moves up to `moved` of the remaining ones to `to`, and
    /// returns the number woken plus moved.
    fn requeue(self, from: &Self::Word, to: &Self::Word, wake: usize, moved: usize) -> usize;

    /// Sets `second` to 0; wakes one waiter of `first`, and one of `second` if that held more than
    /// 1. Returns the number woken.
    fn wake_op(self, first: &Self::Word, second: &Self::Word) -> usize;

    /// The number of waiters in the implementation's own table, if there is one that can be
    /// queried. Only a waiter that is queued there can be woken; a thread that merely sleeps may
    /// still be on its way to it.
    fn queued(self) -> Option<usize> {
        None
    }
}
