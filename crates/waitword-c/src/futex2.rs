//! The five calls in futex2's shape: size and scope in the flags, values 64 bits wide.

use crate::{answer, time};
use core::ffi::{c_int, c_long, c_uint, c_void};
use core::mem::{align_of, offset_of, size_of};
use libc::timespec;
use waitword_core::door;

/// A word and the value it is expected to hold: `struct futex_waitv` of futex2.
///
/// `reserved` must be 0.
#[allow(non_camel_case_types)] // C's name, after the kernel's.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ww_futex_waitv {
    /// The expected value; the bits above the word's width must be 0.
    pub val: u64,
    /// The word's address: `(uintptr_t)&word`.
    pub uaddr: u64,
    /// `WW_SIZE_*`, with `WW_PRIVATE` and `WW_NUMA` as needed.
    pub flags: u32,
    /// Must be 0.
    pub reserved: u32,
}

const _: () = {
    assert!(size_of::<ww_futex_waitv>() == size_of::<door::Waitv>());
    assert!(align_of::<ww_futex_waitv>() == align_of::<door::Waitv>());
    assert!(offset_of!(ww_futex_waitv, val) == offset_of!(door::Waitv, val));
    assert!(offset_of!(ww_futex_waitv, uaddr) == offset_of!(door::Waitv, uaddr));
    assert!(offset_of!(ww_futex_waitv, flags) == offset_of!(door::Waitv, flags));
    assert!(offset_of!(ww_futex_waitv, reserved) == offset_of!(door::Waitv, reserved));
};

/// Sleeps while the word holds `val`, until a wake whose mask shares a bit with `mask`.
///
/// The check of the value and going to sleep are one step: a wake that comes after the word was changed
/// is never missed. Returns 0 once woken. A wake-up may be spurious: look at the word again.
///
/// `mask` is usually `WW_MASK_U8` to `WW_MASK_U64`. `abs_timeout` is an absolute time, in seconds and
/// nanoseconds, on `clock` (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`); NULL waits without end, and `clock`
/// is then not looked at. Never ends early on account of the timeout.
///
/// Errors:
/// - `EAGAIN`: the word did not hold `val`.
/// - `ETIMEDOUT`: the time came first.
/// - `EINTR`: a signal handler ran (without a timeout, only one installed without `SA_RESTART`), or the
///   call was made from a handler that had interrupted this library.
/// - `EINVAL`: unknown flags; `clock` or `abs_timeout` not valid; `mask` 0; `val` or `mask` wider than
///   the word; `uaddr` misaligned; with `WW_NUMA`, a node that does not exist.
/// - `EFAULT`: `uaddr` is NULL.
/// - `ENOSYS`: a shared 64-bit word, and either a `mask` other than `WW_MASK_U64` or a kernel before 5.16.
///
/// Blocks. Not a cancellation point. After futex2's futex_wait (Linux 6.7) and FUTEX_WAIT_BITSET.
///
/// # Safety
/// `uaddr` is NULL or a mapped word of the size in `flags` (with `WW_NUMA`, a pair of them) that stays
/// mapped while this runs, and is changed by atomic operations only. `abs_timeout` is NULL or points to
/// a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_futex_wait(
    uaddr: *mut c_void,
    val: u64,
    mask: u64,
    flags: c_uint,
    abs_timeout: *const timespec,
    clock: c_int,
) -> c_long {
    // SAFETY: forwards this function's own contract, which is that of the door's function.
    answer(unsafe { door::futex_wait(uaddr, val, mask, flags, time(abs_timeout), clock) })
}

/// Wakes up to `nr` of the threads that wait on the word with a mask that shares a bit with `mask`.
///
/// Returns how many were woken. Order of arrival; real-time threads first, by priority. `INT_MAX` wakes
/// all, 0 nobody (FUTEX_WAKE differs: one), a negative number one, as in the kernel. With `WW_PRIVATE` and
/// nobody waiting, no system call is made. The word itself is not read. The waiters of a shared 64-bit word
/// are found by every mask.
///
/// Errors:
/// - `EINVAL`: unknown flags; `mask` 0 or wider than the word; `uaddr` misaligned; with `WW_NUMA`, a
///   node that does not exist.
/// - `EFAULT`: `uaddr` is NULL and the word is shared, or has a node word.
///
/// Does not block. Async-signal-safe: from a handler that has interrupted this library inside one of
/// its own short critical sections, the wake is delivered as that section ends, and the call returns 0,
/// since the number is not yet known. After futex2's futex_wake (Linux 6.7) and FUTEX_WAKE_BITSET.
///
/// # Safety
/// A shared word is mapped while this runs; a private one need not be, unless `WW_NUMA` is given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_futex_wake(
    uaddr: *mut c_void,
    mask: u64,
    nr: c_int,
    flags: c_uint,
) -> c_long {
    // SAFETY: forwards this function's own contract: the door asks for no more than the pair of
    // words, with NUMA.
    answer(unsafe { door::futex_wake(uaddr, mask, nr, flags) })
}

/// If the first word still holds its value: wakes up to `nr_wake` of its waiters, and moves up to
/// `nr_requeue` others onto the second word without waking them.
///
/// `pair` is an array of two; the first's `val` is compared, the second's is not looked at. The words
/// may differ in size. Returns how many were woken and moved, together. A moved waiter keeps its mask
/// and its timeout, and is from then on woken through the second word. Moving private waiters makes no
/// system call.
///
/// The comparison and the move are one step for private words and for shared ones of 32 bits. Of a shared
/// 64-bit word, the low half is compared in one step with the move, the high half just before. Waiters of
/// shared 8 and 16-bit words cannot be moved, neither from nor to such a word: they are woken instead.
/// A moved waiter of a shared word goes back to the first word, and looks at its value again, if anything
/// but a futex wakes its thread meanwhile: so the kernel does it.
///
/// Errors:
/// - `EAGAIN`: the first word did not hold its value.
/// - `EINVAL`: `flags` not 0; `pair` NULL; a negative count; unknown flags, a `reserved` that is not 0, a
///   value wider than its word, or a misaligned address in an entry; one word private and the other
///   shared; with `WW_NUMA`, a node that does not exist.
/// - `EFAULT`: the first address is NULL; or the second is, and the words are shared.
///
/// Does not block. Async-signal-safe, as `ww_futex_wake`. After futex2's futex_requeue (Linux 6.7) and
/// FUTEX_CMP_REQUEUE.
///
/// # Safety
/// `pair` is NULL or points to two entries, whose addresses are those of words as `ww_futex_wait` wants
/// them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_futex_requeue(
    pair: *const ww_futex_waitv,
    flags: c_uint,
    nr_wake: c_int,
    nr_requeue: c_int,
) -> c_long {
    // SAFETY: forwards this function's own contract; the two types of entries have one layout
    // (asserted above).
    answer(unsafe { door::futex_requeue(pair.cast(), flags, nr_wake, nr_requeue) })
}

/// Sleeps while each of `nr` words (at most `WW_WAITV_MAX`) holds its value, until one of them is woken.
///
/// Returns the index of a word that was woken: a hint, others may have been woken too. Sizes may be
/// mixed, and private with shared words. `flags` must be 0; the flags of each word are in its entry.
/// `abs_timeout` and `clock` are those of `ww_futex_wait`.
///
/// The kernel takes 128 shared words: one of 64 bits counts as two, and if there are private words too, they
/// count as one together. A waiter for a shared 8 or 16-bit word may take a wake that was meant for a
/// neighbour in the same 32 bits. So that none is lost it wakes all who wait there: their waits may end for no reason. Where nothing says
/// that the wake was its own, and such wakes come thick and fast, its wait may go on for some milliseconds before it does,
/// 100 at most; if its process is killed meanwhile, the neighbour's wake is lost. Several who wait so in loops for words in the same
/// 32 bits may be woken some thousand times a second once one of them was, though nothing happens.
///
/// Errors:
/// - `EAGAIN`: some word did not hold its value.
/// - `ETIMEDOUT`, `EINTR`: as `ww_futex_wait`.
/// - `ENOSYS`: a shared word, and a kernel before 5.16.
/// - `ENOMEM`: private words with shared ones, and memory is short.
/// - `EINVAL`: `nr` 0, or too many words; `waiters` NULL; `flags` not 0; `clock` or `abs_timeout`
///   not valid; unknown flags, a `reserved` that is not 0, a value wider than its word, or a misaligned
///   address in an entry.
/// - `EFAULT`: an address is NULL.
///
/// Blocks. Not a cancellation point. After futex_waitv (Linux 5.16).
///
/// # Safety
/// `waiters` is NULL or points to `nr` entries, whose addresses are those of words as `ww_futex_wait`
/// wants them. `abs_timeout` is NULL or points to a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_futex_waitv(
    waiters: *const ww_futex_waitv,
    nr: c_uint,
    flags: c_uint,
    abs_timeout: *const timespec,
    clock: c_int,
) -> c_long {
    // SAFETY: forwards this function's own contract; the two types of entries have one layout
    // (asserted above).
    answer(unsafe { door::futex_waitv(waiters.cast(), nr, flags, time(abs_timeout), clock) })
}

/// Changes the second word, wakes up to `nr` waiters of the first, and, if the second's old value
/// compares as asked, up to `nr2` waiters of the second.
///
/// That is: `old = *uaddr2; *uaddr2 = old OP oparg; wake uaddr; if (old CMP cmparg) wake uaddr2`. The change
/// is one atomic step; whoever waited before it is found by the wakes. `op` is `WW_OP_SET` and so on,
/// `WW_OP_ARG_SHIFT` added if `oparg` is a shift; `cmp` is `WW_OP_CMP_EQ` and so on. Both words have the size
/// and scope that `flags` say; `oparg` and `cmparg` are as wide as the word, or such a number sign-extended
/// (-1 is all bits). A count of 0 wakes nobody, a negative one wakes one. Returns the sum of both wakes.
///
/// Errors:
/// - `ENOSYS`: unknown `op` or `cmp`; in both cases the word is unchanged (the kernel has changed it
///   before it finds an unknown comparison). Or: shared words with `WW_NUMA` or `WW_MPOL`.
/// - `EINVAL`: unknown flags; `oparg` or `cmparg` wider than the word; a misaligned address; with `WW_NUMA`,
///   a node that does not exist.
/// - `EFAULT`: `uaddr2` is NULL, or `uaddr` is and the words are shared.
///
/// Does not block. Async-signal-safe, as `ww_futex_wake`. After FUTEX_WAKE_OP (Linux 2.6.14), with
/// operands as wide as the word.
///
/// # Safety
/// `uaddr2` is NULL or a word as `ww_futex_wait` wants it, and `uaddr` as `ww_futex_wake` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_futex_wake_op(
    uaddr: *mut c_void,
    nr: c_int,
    uaddr2: *mut c_void,
    nr2: c_int,
    op: c_uint,
    oparg: u64,
    cmp: c_uint,
    cmparg: u64,
    flags: c_uint,
) -> c_long {
    // SAFETY: forwards this function's own contract, which is that of the door's function: a word
    // that is there for `ww_futex_wait` is one that can be changed.
    answer(unsafe { door::futex_wake_op(uaddr, nr, uaddr2, nr2, op, oparg, cmp, cmparg, flags) })
}
