//! The five calls in the style of futex2: size and scope in the flags, values 64 bits wide.

use crate::{answer, time};
use core::ffi::{c_int, c_long, c_uint, c_void};
use core::mem::{align_of, offset_of, size_of};
use libc::timespec;
use waitword_core::raw;

/// A word and the value that it is expected to hold: `struct futex_waitv` of futex2.
///
/// `reserved` must be 0.
#[allow(non_camel_case_types)] // C's name, after the kernel's.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ww_futex_waitv {
    /// The expected value. The bits above the word's width must be 0.
    pub val: u64,
    /// The word's address: `(uintptr_t)&word`.
    pub uaddr: u64,
    /// `WW_SIZE_*`, with `WW_PRIVATE` and `WW_NUMA` as needed.
    pub flags: u32,
    /// Must be 0.
    pub reserved: u32,
}

const _: () = {
    assert!(size_of::<ww_futex_waitv>() == size_of::<raw::Waitv>());
    assert!(align_of::<ww_futex_waitv>() == align_of::<raw::Waitv>());
    assert!(offset_of!(ww_futex_waitv, val) == offset_of!(raw::Waitv, val));
    assert!(offset_of!(ww_futex_waitv, uaddr) == offset_of!(raw::Waitv, uaddr));
    assert!(offset_of!(ww_futex_waitv, flags) == offset_of!(raw::Waitv, flags));
    assert!(offset_of!(ww_futex_waitv, reserved) == offset_of!(raw::Waitv, reserved));
};

/// Sleeps while the word holds `val`, until a wake whose mask shares a bit with `mask`.
///
/// The check of the value and the start of the sleep are one atomic step: a wake that comes after
/// the word was changed is never missed.
///
/// `mask` is usually one of `WW_MASK_U8` to `WW_MASK_U64`. `abs_timeout` is an absolute time, in
/// seconds and nanoseconds, on `clock` (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). NULL waits without
/// a timeout, and `clock` is then ignored. The wait never times out early.
///
/// Returns 0 once woken. A wake-up may be spurious: check the word again.
///
/// Errors:
/// - `EAGAIN`: the word did not hold `val`.
/// - `ETIMEDOUT`: the timeout expired.
/// - `EINTR`: a signal handler ran (without a timeout, only one installed without `SA_RESTART`), or
///   the call was made from a handler that had interrupted this library.
/// - `EINVAL`: unknown flags; `clock` or `abs_timeout` is not valid; `mask` is 0; `val` or `mask`
///   is wider than the word; `uaddr` is misaligned; with `WW_NUMA`, the node does not exist.
/// - `EFAULT`: `uaddr` is NULL.
/// - `ENOSYS`: the word is shared and has 64 bits, and either `mask` is not `WW_MASK_U64` or the
///   kernel is older than 5.16.
///
/// Blocks. Not a cancellation point. Modelled on futex2's futex_wait (Linux 6.7) and
/// FUTEX_WAIT_BITSET.
///
/// # Safety
/// `uaddr` must be NULL or a mapped word of the size in `flags` (with `WW_NUMA`, a pair of them)
/// that stays mapped during the call and is changed by atomic operations only. `abs_timeout` must
/// be NULL or point to a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_futex_wait(
    uaddr: *mut c_void,
    val: u64,
    mask: u64,
    flags: c_uint,
    abs_timeout: *const timespec,
    clock: c_int,
) -> c_long {
    // SAFETY: forwards this function's own contract, which is that of the raw interface's function.
    answer(unsafe { raw::futex_wait(uaddr, val, mask, flags, time(abs_timeout), clock) })
}

/// Wakes up to `nr` of the threads that wait on the word with a mask that shares a bit with `mask`.
///
/// They are woken in order of arrival, real-time threads first, by priority. `INT_MAX` wakes all, 0
/// wakes none (unlike FUTEX_WAKE, which wakes one), and a negative number wakes one, as in the
/// kernel. With `WW_PRIVATE` and no waiters, the call makes no system call. The word itself is not
/// read. The waiters of a shared 64-bit word are found by every mask.
///
/// Returns the number of threads woken.
///
/// Errors:
/// - `EINVAL`: unknown flags; `mask` is 0 or wider than the word; `uaddr` is misaligned; with
///   `WW_NUMA`, the node does not exist.
/// - `EFAULT`: `uaddr` is NULL, and the word is shared or has a node word.
///
/// Does not block. Async-signal-safe. If the call is made from a handler that has interrupted this
/// library inside one of its own short critical sections, the wake is delivered when that section
/// ends, and the call returns 0, because the number is not known yet. Modelled on futex2's
/// futex_wake (Linux 6.7) and FUTEX_WAKE_BITSET.
///
/// # Safety
/// A shared word must be mapped during the call. A private word need not be, unless `WW_NUMA` is
/// given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_futex_wake(
    uaddr: *mut c_void,
    mask: u64,
    nr: c_int,
    flags: c_uint,
) -> c_long {
    // SAFETY: forwards this function's own contract: the raw interface requires only the pair of
    // words, and that only with NUMA.
    answer(unsafe { raw::futex_wake(uaddr, mask, nr, flags) })
}

/// If the first word still holds its value: wakes up to `nr_wake` of its waiters, and moves up to
/// `nr_requeue` more of them to the second word without waking them.
///
/// `pair` is an array of two entries. The first entry's `val` is compared; the second's is ignored.
/// The words may differ in size. A moved waiter keeps its mask and its timeout, and from then on it
/// is woken through the second word. Moving private waiters makes no system call.
///
/// The comparison and the move are one atomic step for private words and for shared words of 32
/// bits. For a shared 64-bit word, the low half is compared in one step with the move, and the high
/// half just before. Waiters of shared 8 and 16-bit words cannot be moved, neither from nor to such
/// a word: they are woken instead. If anything other than a futex wakes the thread of a moved
/// waiter on a shared word, the waiter goes back to the first word and checks its value again. This
/// is the kernel's behaviour.
///
/// Returns the number of waiters woken plus the number moved.
///
/// Errors:
/// - `EAGAIN`: the first word did not hold its value.
/// - `EINVAL`: `flags` is not 0; `pair` is NULL; a count is negative; an entry has unknown flags, a
///   `reserved` field that is not 0, a value wider than its word, or a misaligned address; one word
///   is private and the other shared; with `WW_NUMA`, a node does not exist.
/// - `EFAULT`: the first address is NULL; or the second is NULL, and the words are shared.
///
/// Does not block. Async-signal-safe, as `ww_futex_wake`. Modelled on futex2's futex_requeue (Linux
/// 6.7) and FUTEX_CMP_REQUEUE.
///
/// # Safety
/// `pair` must be NULL or point to two entries, whose addresses are those of words as
/// `ww_futex_wait` requires them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_futex_requeue(
    pair: *const ww_futex_waitv,
    flags: c_uint,
    nr_wake: c_int,
    nr_requeue: c_int,
) -> c_long {
    // SAFETY: forwards this function's own contract. The two entry types have the same layout
    // (asserted above).
    answer(unsafe { raw::futex_requeue(pair.cast(), flags, nr_wake, nr_requeue) })
}

/// Sleeps while each of `nr` words (at most `WW_WAITV_MAX`) holds its value, until one of them is
/// woken.
///
/// Words of different sizes, and private and shared words, may be mixed. `flags` must be 0; each
/// entry holds the flags of its word. `abs_timeout` and `clock` are those of `ww_futex_wait`.
///
/// The kernel accepts 128 shared words. A word of 64 bits counts as two of them, and all private
/// words together count as one.
///
/// A waiter for a shared 8 or 16-bit word may receive a wake that was meant for a neighbouring word
/// in the same 32 bits. To lose no wake, it forwards the wake: it wakes all threads that wait on
/// those 32 bits, whose waits may therefore end spuriously. If nothing shows that the wake was its
/// own, and such wakes follow each other quickly, the wait may go on for some milliseconds, 100 at
/// most, before it forwards the wake. If its process is killed during that time, the neighbour's
/// wake is lost. Several threads that wait in loops for words in the same 32 bits may be woken some
/// thousand times a second after one of them was woken, although nothing happens.
///
/// Returns the index of a word that was woken. This is a hint: other words may have been woken too.
///
/// Errors:
/// - `EAGAIN`: a word did not hold its value.
/// - `ETIMEDOUT`, `EINTR`: as `ww_futex_wait`.
/// - `ENOSYS`: a word is shared, and the kernel is older than 5.16.
/// - `ENOMEM`: private and shared words are mixed, and memory is short.
/// - `EINVAL`: `nr` is 0, or there are too many words; `waiters` is NULL; `flags` is not 0; `clock`
///   or `abs_timeout` is not valid; an entry has unknown flags, a `reserved` field that is not 0, a
///   value wider than its word, or a misaligned address.
/// - `EFAULT`: an address is NULL.
///
/// Blocks. Not a cancellation point. Modelled on futex_waitv (Linux 5.16).
///
/// # Safety
/// `waiters` must be NULL or point to `nr` entries, whose addresses are those of words as
/// `ww_futex_wait` requires them. `abs_timeout` must be NULL or point to a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_futex_waitv(
    waiters: *const ww_futex_waitv,
    nr: c_uint,
    flags: c_uint,
    abs_timeout: *const timespec,
    clock: c_int,
) -> c_long {
    // SAFETY: forwards this function's own contract. The two entry types have the same layout
    // (asserted above).
    answer(unsafe { raw::futex_waitv(waiters.cast(), nr, flags, time(abs_timeout), clock) })
}

/// Changes the second word and wakes up to `nr` waiters of the first word. If the comparison holds
/// for the second word's old value, also wakes up to `nr2` waiters of the second word.
///
/// That is: `old = *uaddr2; *uaddr2 = old OP oparg; wake uaddr; if (old CMP cmparg) wake uaddr2`.
/// The change is one atomic step. The wakes find every thread that waited before it. `op` is
/// `WW_OP_SET` and so on, plus `WW_OP_ARG_SHIFT` if `oparg` is a shift; `cmp` is `WW_OP_CMP_EQ` and
/// so on. Both words have the size and scope given in `flags`. `oparg` and `cmparg` are as wide as
/// the word, or are such a number sign-extended (-1 is all bits). A count of 0 wakes no thread, a
/// negative one wakes one.
///
/// Returns the sum of both wakes.
///
/// Errors:
/// - `ENOSYS`: unknown `op` or `cmp`. In both cases the word is unchanged (the kernel changes it
///   before it detects an unknown comparison). Or: shared words with `WW_NUMA` or `WW_MPOL`.
/// - `EINVAL`: unknown flags; `oparg` or `cmparg` is wider than the word; an address is misaligned;
///   with `WW_NUMA`, a node does not exist.
/// - `EFAULT`: `uaddr2` is NULL; or `uaddr` is NULL, and the words are shared.
///
/// Does not block. Async-signal-safe, as `ww_futex_wake`. Modelled on FUTEX_WAKE_OP (Linux 2.6.14),
/// with operands as wide as the word.
///
/// # Safety
/// `uaddr2` must be NULL or a word as `ww_futex_wait` requires it, and `uaddr` as `ww_futex_wake`
/// requires it.
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
    // SAFETY: forwards this function's own contract, which is that of the raw interface's function:
    // a word that is valid for `ww_futex_wait` can be changed.
    answer(unsafe { raw::futex_wake_op(uaddr, nr, uaddr2, nr2, op, oparg, cmp, cmparg, flags) })
}
