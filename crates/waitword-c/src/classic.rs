//! futex(2), argument for argument.

use crate::{answer, time};
use core::ffi::{c_int, c_long, c_void};
use libc::timespec;
use waitword_core::door;

/// futex(2) with its own arguments and answers, on 32-bit words.
///
/// `op` is one of linux/futex.h's `FUTEX_*`. With `FUTEX_PRIVATE_FLAG`, WAIT, WAKE, REQUEUE,
/// CMP_REQUEUE, WAKE_OP, WAIT_BITSET and WAKE_BITSET work on this process's own table, where they
/// meet the waiters of `ww_futex_wait` with `WW_SIZE_U32 | WW_PRIVATE`. All else, shared words and
/// priority inheritance, goes to the kernel. On a private word an operation of one kind that finds
/// a waiter of the other is `EINVAL`, as in the kernel.
///
/// As futex(2) has it, `timeout` is relative for FUTEX_WAIT and absolute for FUTEX_WAIT_BITSET, and is a
/// number, `val2`, for REQUEUE, CMP_REQUEUE and WAKE_OP: write `WW_VAL2(n)`. FUTEX_WAKE with count 0
/// wakes one.
///
/// Returns what futex(2) returns, or -1 with futex(2)'s errno: `EAGAIN`, `ETIMEDOUT`, `EINTR`, `EINVAL`,
/// `EFAULT`, `ENOSYS`, and for priority inheritance whatever the kernel says. FUTEX_WAKE_OP with an
/// unknown comparison is `ENOSYS` before the word is changed, not after.
///
/// WAIT and WAIT_BITSET block (and the kernel's own LOCK_PI and WAIT_REQUEUE_PI); none is a cancellation
/// point. The others do not block, and are async-signal-safe as `ww_futex_wake` is.
///
/// # Safety
/// As for futex(2): `uaddr`, `timeout` and `uaddr2` are what `op` takes them for, or NULL where it
/// allows that; the words are changed by atomic operations only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_futex(
    uaddr: *mut c_void,
    op: c_int,
    val: u32,
    timeout: *const timespec,
    uaddr2: *mut c_void,
    val3: u32,
) -> c_long {
    // The door takes the address of a time, or a number that stands in its place.
    let timeout_or_val2 = time(timeout).expose_provenance();
    // SAFETY: forwards this function's own contract: the door asks for what futex(2) does, too.
    answer(unsafe { door::futex(uaddr.cast(), op, val, timeout_or_val2, uaddr2.cast(), val3) })
}
