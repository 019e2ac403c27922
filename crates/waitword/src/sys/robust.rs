//! The kernel's part in robust mutexes: it has one list of held locks for each thread, walks the
//! list when the thread ends, and keeps the queue of waiters.
//!
//! Since Linux 7.3 the kernel can also see to it that a lock is free and no longer pending at once,
//! whenever the thread dies ([`try_unlock`], [`unlock_pi`]).
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
use core::sync::atomic::AtomicUsize;
#[cfg(not(loom))]
use core::sync::atomic::Ordering::Relaxed;
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

/// The vDSO's `__vdso_futex_robust_list64_try_unlock`: frees the word if it holds this TID, and
/// then clears the pending operation. Returns the word's previous value.
#[cfg(not(loom))]
type TryUnlock = unsafe extern "C" fn(*mut u32, u32, *mut u64) -> u32;

/// Where it is; or one of the two below. Relaxed: every thread would find the same.
#[cfg(not(loom))]
static TRY_UNLOCK: AtomicUsize = AtomicUsize::new(UNKNOWN);
#[cfg(not(loom))]
const UNKNOWN: usize = 0;
#[cfg(not(loom))]
const ABSENT: usize = 1;

/// Frees the word if it holds `me` and no other bit, and clears `pending`, the thread's
/// `list_op_pending`: a thread that dies has done both or neither. `None` if the kernel cannot do
/// that, and then nothing has changed. Release.
///
/// Once the word is free, nothing but `pending` is touched.
#[inline]
pub(crate) fn try_unlock(word: &AtomicU32, me: u32, pending: &AtomicUsize) -> Option<bool> {
    #[cfg(not(loom))]
    {
        let function = TRY_UNLOCK.load(Relaxed);
        if function != ABSENT {
            return call_try_unlock(function, word, me, pending);
        }
    }
    #[cfg(loom)]
    let _ = (word, me, pending);
    None
}

#[cfg(not(loom))]
#[cold]
fn call_try_unlock(
    mut function: usize,
    word: &AtomicU32,
    me: u32,
    pending: &AtomicUsize,
) -> Option<bool> {
    if function == UNKNOWN {
        let found = super::vdso::function(b"__vdso_futex_robust_list64_try_unlock");
        // Its pointers have 64 bits.
        function = found.filter(|_| size_of::<usize>() == 8).unwrap_or(ABSENT);
        TRY_UNLOCK.store(function, Relaxed);
    }
    if function == ABSENT {
        return None;
    }
    // SAFETY: the address is that of the vDSO's function of this name, which has this type, and the
    // vDSO stays where it is.
    let function: TryUnlock = unsafe { core::mem::transmute::<usize, TryUnlock>(function) };
    // SAFETY: the function changes the word atomically and stores 0 to `pending`; both are borrowed
    // meanwhile. (Once the word is free it may go away, but then the function no longer touches
    // it.)
    let before = unsafe { function(word.as_ptr(), me, pending.as_ptr().cast()) };
    Some(before == me)
}

/// FUTEX_UNLOCK_PI, and clears `pending` in the same call. To be used where [`try_unlock`] has
/// returned `Some`.
///
/// # Errors
/// As for FUTEX_UNLOCK_PI, and `ENOSYS` where the call is not known after all.
pub(crate) fn unlock_pi(word: &AtomicU32, pending: &AtomicUsize) -> Result<(), Errno> {
    #[cfg(not(loom))]
    {
        const UNLOCK_PI: usize = 7;
        const ROBUST_UNLOCK: usize = 512;
        // SAFETY: the kernel changes the word atomically, and then stores 0 to `pending`; both are
        // borrowed while the call lasts.
        let answer = unsafe {
            syscalls::syscall5(
                Sysno::futex,
                core::ptr::from_ref(word).expose_provenance(),
                UNLOCK_PI | ROBUST_UNLOCK,
                0,
                0,
                core::ptr::from_ref(pending).expose_provenance(),
            )
        };
        from_raw(answer).map(drop)
    }
    #[cfg(loom)]
    {
        let _ = (word, pending);
        Err(Errno::NOSYS)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sys::probe;

    const ME: u32 = 77;
    const WAITERS: u32 = 0x8000_0000;

    #[test]
    fn a_word_is_freed_and_no_longer_pending_where_the_kernel_can_do_that() {
        let (word, pending) = (AtomicU32::new(ME), AtomicUsize::new(1));
        let answer = try_unlock(&word, ME, &pending);
        let now = (word.load(Relaxed), pending.load(Relaxed));
        match probe::robust_unlock().is_there() {
            true => assert_eq!((answer, now), (Some(true), (0, 0))),
            false => assert_eq!((answer, now), (None, (ME, 1))),
        }
    }

    #[test]
    fn a_word_with_waiters_stays_as_it_is() {
        let (word, pending) = (AtomicU32::new(ME | WAITERS), AtomicUsize::new(1));
        assert_ne!(try_unlock(&word, ME, &pending), Some(true));
        assert_eq!((word.load(Relaxed), pending.load(Relaxed)), (ME | WAITERS, 1));
    }

    #[test]
    fn an_inheriting_word_is_freed_by_the_call_and_no_longer_pending() {
        let me = crate::sys::tid::tid();
        // The kernel takes it, so that it is in the kernel's books.
        let (word, pending) = (AtomicU32::new(0), AtomicUsize::new(1));
        crate::sys::futex_pi::lock(&word, false, None).unwrap();
        assert_eq!(word.load(Relaxed), me);
        let answer = unlock_pi(&word, &pending);
        let now = (word.load(Relaxed), pending.load(Relaxed));
        match probe::robust_unlock().is_there() {
            true => assert_eq!((answer, now), (Ok(()), (0, 0))),
            false => assert_eq!((answer, now), (Err(Errno::NOSYS), (me, 1))),
        }
    }
}
