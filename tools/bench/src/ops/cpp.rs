//! C++20's `std::atomic<int>::wait` and `notify` from libstdc++: waiter counts in 16 places shared
//! by all addresses, a short spin, then futex(2).
//!
//! The wait returns only when the value has changed, and a wake does not report how many threads it
//! woke. So it is measured only where the word changes (`ping-pong`) or where nothing happens
//! (`calls`). It has no requeue.

use super::futexes::{Futexes, Waited};
use std::sync::atomic::AtomicU32;

unsafe extern "C" {
    fn waitword_cpp_atomic_wait(word: &AtomicU32, old: u32) -> bool;
    fn waitword_cpp_atomic_notify_one(word: &AtomicU32);
    fn waitword_cpp_atomic_notify_all(word: &AtomicU32);
}

/// `std::atomic<int>`, which is a plain `int` in memory.
#[derive(Clone, Copy, Debug)]
pub struct CppAtomic;

impl Futexes for CppAtomic {
    type Word = AtomicU32;

    fn name(self) -> String {
        "C++ atomic wait".to_owned()
    }

    #[inline(always)]
    fn wait(self, word: &AtomicU32, expected: u64) -> Waited {
        // SAFETY: the word is borrowed, and `std::atomic<int>` has its layout.
        match unsafe { waitword_cpp_atomic_wait(word, expected as u32) } {
            true => Waited::Woken,
            false => Waited::Mismatch,
        }
    }

    /// Always 0: the library does not report a count.
    #[inline(always)]
    fn wake(self, word: &AtomicU32, count: usize) -> usize {
        match count {
            // SAFETY: as in `wait`.
            1 => unsafe { waitword_cpp_atomic_notify_one(word) },
            // SAFETY: as in `wait`.
            _ => unsafe { waitword_cpp_atomic_notify_all(word) },
        }
        0
    }

    fn requeue(self, _: &AtomicU32, _: &AtomicU32, _: usize, _: usize) -> usize {
        panic!("std::atomic has no requeue")
    }

    fn wake_op(self, _: &AtomicU32, _: &AtomicU32) -> usize {
        panic!("std::atomic has no wake_op")
    }
}
