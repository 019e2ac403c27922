//! C++20's `std::atomic<int>::wait` and `notify`, of libstdc++: a count of waiters at one of 16
//! places that all addresses share, a short spin, futex(2).
//!
//! Its wait returns only when the value has changed, and a wake does not say whom it woke. So it is
//! measured only where the word changes (`ping-pong`), or where nothing happens (`calls`); there is
//! no requeue.

use super::{Futexes, Waited};
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
        // SAFETY: a borrowed word, used as the atomic that it is.
        match unsafe { waitword_cpp_atomic_wait(word, expected as u32) } {
            true => Waited::Woken,
            false => Waited::Mismatch,
        }
    }

    /// Always 0: it does not say.
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
