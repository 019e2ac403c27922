//! The kernel's part in robust mutexes: it has one list of held locks for each thread, walks the
//! list when the thread ends, and keeps the queue of waiters.
//!
//! The queues are always those of shared futexes, even if one process uses the lock: the kernel's
//! wake-up for a dead owner is never a private one.

use super::clock::Deadline;
use super::from_raw;
#[cfg(loom)]
pub(crate) use super::futex::owner_dies;
use super::futex::{KernelWord, shared_wake, word_requeue, word_wait};
use crate::atomic::AtomicU32;
use crate::sys::Errno;
use syscalls::{Sysno, syscall2, syscall3};

/// Sleeps while `word` holds `expected`.
///
/// # Errors
/// `EAGAIN`, `ETIMEDOUT`, `EINTR`.
pub(crate) fn wait(
    word: &AtomicU32,
    expected: u32,
    deadline: Option<&Deadline>,
) -> Result<(), Errno> {
    word_wait(word, expected, u32::MAX, deadline)
}

/// Wakes one sleeper of the word at this address. The word may be gone: then the kernel finds no
/// sleeper, or wakes an unrelated one in vain.
pub(crate) fn wake_one(word: *const AtomicU32) {
    let _ = shared_wake(KernelWord::address(word), 1, u32::MAX);
}

/// Whether any thread sleeps on `word`, provided that it holds `expected`. Checks both in one step
/// and wakes no thread.
///
/// # Errors
/// `EAGAIN` if the word holds another value.
pub(crate) fn has_sleepers(word: &AtomicU32, expected: u32) -> Result<bool, Errno> {
    // A requeue of one waiter from the word to itself moves no waiter, but counts it.
    word_requeue(word, word, 0, 1, Some(expected)).map(|count| count != 0)
}

/// The address of the calling thread's list head, 0 if it has none (get_robust_list(2)).
///
/// # Errors
/// Those of the call: `ENOSYS` on a kernel without robust futexes.
pub(crate) fn list_head() -> Result<usize, Errno> {
    let (mut head, mut length) = (0usize, 0usize);
    // SAFETY: the kernel writes an address to `head` and a length to `length`, variables here of
    // that size. It reads the calling thread's (0) setting and does not change it.
    from_raw(unsafe {
        syscall3(
            Sysno::get_robust_list,
            0,
            (&raw mut head).expose_provenance(),
            (&raw mut length).expose_provenance(),
        )
    })?;
    Ok(head)
}

/// Makes the head at this address the calling thread's (set_robust_list(2)).
///
/// # Errors
/// `EINVAL` if the kernel expects another length, `ENOSYS`.
///
/// # Safety
/// A `struct robust_list_head` of `length` bytes is there until the thread ends, and it leads to a
/// list as the kernel requires.
pub(crate) unsafe fn set_list_head(head: usize, length: usize) -> Result<(), Errno> {
    // SAFETY: forwards this function's own contract.
    from_raw(unsafe { syscall2(Sysno::set_robust_list, head, length) }).map(drop)
}
