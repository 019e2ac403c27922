//! The four word types behind one trait, for tests that are written once for all of them.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::SeqCst};
use waitword::FutexWord;

/// A futex word whose values can be given as numbers.
pub trait Atomic: FutexWord + Default + Send {
    /// The width.
    const BITS: u32;
    /// The greatest value.
    const ALL_BITS: u64 = u64::MAX >> (64 - Self::BITS);
    /// The highest bit.
    const TOP_BIT: u64 = 1 << (Self::BITS - 1);

    /// The low bits of `number`.
    fn value(number: u64) -> Self::Value;
    /// The value.
    fn get(&self) -> u64;
    /// Stores the low bits of `number`.
    fn set(&self, number: u64);
    /// Adds and wraps. Returns the old value.
    fn add(&self, number: u64) -> u64;
}

macro_rules! atomics {
    ($($atomic:ty, $value:ty;)*) => {$(
        impl Atomic for $atomic {
            const BITS: u32 = <$value>::BITS;
            fn value(number: u64) -> $value {
                number as $value
            }
            fn get(&self) -> u64 {
                u64::from(self.load(SeqCst))
            }
            fn set(&self, number: u64) {
                self.store(number as $value, SeqCst);
            }
            fn add(&self, number: u64) -> u64 {
                u64::from(self.fetch_add(number as $value, SeqCst))
            }
        }
    )*};
}

atomics! {
    AtomicU8, u8;
    AtomicU16, u16;
    AtomicU32, u32;
    AtomicU64, u64;
}

/// Calls a test that is generic over the word for each of the four types.
#[macro_export]
macro_rules! for_every_width {
    ($test:ident $arguments:tt) => {
        $test::<std::sync::atomic::AtomicU8> $arguments;
        $test::<std::sync::atomic::AtomicU16> $arguments;
        $test::<std::sync::atomic::AtomicU32> $arguments;
        $test::<std::sync::atomic::AtomicU64> $arguments;
    };
}
