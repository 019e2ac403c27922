//! The baseline: futex(2) by direct system call, without the C library in between.

use super::futexes::{Futexes, Waited};
use std::sync::atomic::AtomicU32;
use syscalls::{Errno, Sysno, syscall4, syscall5, syscall6};

const WAIT: usize = 0;
const WAKE: usize = 1;
const REQUEUE: usize = 3;
const WAKE_OP: usize = 5;
const PRIVATE_FLAG: usize = 128;
/// Set to 0, compare "greater than" with 1: `FUTEX_OP(SET, 0, GT, 1)`.
const SET_0_IF_OVER_1: usize = 4 << 24 | 1;

/// The kernel's futex, private to the process or shared.
#[derive(Clone, Copy, Debug)]
pub struct Kernel<const PRIVATE: bool>;

impl<const PRIVATE: bool> Kernel<PRIVATE> {
    const FLAGS: usize = if PRIVATE { PRIVATE_FLAG } else { 0 };
}

#[inline(always)]
fn address(word: &AtomicU32) -> usize {
    word.as_ptr().addr()
}

#[inline(always)]
fn limit(count: usize) -> usize {
    count.min(i32::MAX as usize)
}

#[inline(always)]
fn counted(call: &str, result: Result<usize, Errno>) -> usize {
    result.unwrap_or_else(|error| panic!("futex(2), {call}: {error}"))
}

impl<const PRIVATE: bool> Futexes for Kernel<PRIVATE> {
    type Word = AtomicU32;

    fn name(self) -> String {
        "futex(2)".to_owned()
    }

    #[inline(always)]
    fn wait(self, word: &AtomicU32, expected: u64) -> Waited {
        // SAFETY: the word is borrowed, so it stays mapped until the call returns; there is no
        // timeout.
        let result = unsafe {
            syscall4(Sysno::futex, address(word), WAIT | Self::FLAGS, expected as usize, 0)
        };
        match result {
            Ok(_) => Waited::Woken,
            Err(Errno::EAGAIN) => Waited::Mismatch,
            Err(Errno::EINTR) => Waited::Interrupted,
            Err(error) => panic!("futex(2), wait: {error}"),
        }
    }

    #[inline(always)]
    fn wake(self, word: &AtomicU32, count: usize) -> usize {
        // SAFETY: the word is borrowed; the call neither reads nor writes memory.
        let result =
            unsafe { syscall4(Sysno::futex, address(word), WAKE | Self::FLAGS, limit(count), 0) };
        counted("wake", result)
    }

    #[inline(always)]
    fn requeue(self, from: &AtomicU32, to: &AtomicU32, wake: usize, moved: usize) -> usize {
        // SAFETY: both words are borrowed; the call neither reads nor writes memory.
        let result = unsafe {
            syscall5(
                Sysno::futex,
                address(from),
                REQUEUE | Self::FLAGS,
                limit(wake),
                limit(moved),
                address(to),
            )
        };
        counted("requeue", result)
    }

    #[inline(always)]
    fn wake_op(self, first: &AtomicU32, second: &AtomicU32) -> usize {
        // SAFETY: both words are borrowed; the kernel modifies the second one atomically, and it is
        // an atomic.
        let result = unsafe {
            syscall6(
                Sysno::futex,
                address(first),
                WAKE_OP | Self::FLAGS,
                1,
                1,
                address(second),
                SET_0_IF_OVER_1,
            )
        };
        counted("wake_op", result)
    }
}
