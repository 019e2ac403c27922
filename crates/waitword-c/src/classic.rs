//! futex(2), argument for argument.

use crate::{answer, time};
use core::ffi::{c_int, c_long, c_void};
use libc::timespec;
use waitword_core::raw;

/// futex(2) with its own arguments and return values, on 32-bit words.
///
/// `op` is one of the `FUTEX_*` operations of linux/futex.h. With `FUTEX_PRIVATE_FLAG`, WAIT, WAKE,
/// REQUEUE, CMP_REQUEUE, WAKE_OP, WAIT_BITSET and WAKE_BITSET work on this process's own table,
/// together with the waiters of `ww_futex_wait` with `WW_SIZE_U32 | WW_PRIVATE`. Everything else,
/// that is, shared words and priority inheritance, goes to the kernel. A plain operation that finds
/// a priority-inheriting waiter on a private word fails with `EINVAL`, and so does the reverse, as
/// in the kernel.
///
/// As in futex(2), `timeout` is relative for FUTEX_WAIT and absolute for FUTEX_WAIT_BITSET. For
/// REQUEUE, CMP_REQUEUE and WAKE_OP it is a number, `val2`: pass `WW_VAL2(n)`. FUTEX_WAKE with a
/// count of 0 wakes one thread.
///
/// Returns what futex(2) returns, or -1 with futex(2)'s errno: `EAGAIN`, `ETIMEDOUT`, `EINTR`,
/// `EINVAL`, `EFAULT`, `ENOSYS`, and for priority inheritance any error of the kernel.
/// FUTEX_WAKE_OP with an unknown comparison fails with `ENOSYS` before it changes the word, not
/// after.
///
/// WAIT and WAIT_BITSET block (and so do the kernel's own LOCK_PI and WAIT_REQUEUE_PI). No
/// operation is a cancellation point. The others do not block, and are async-signal-safe in the way
/// of `ww_futex_wake`.
///
/// # Safety
/// As for futex(2): `uaddr`, `timeout` and `uaddr2` must be what `op` expects, or NULL where it
/// allows that. The words must be changed by atomic operations only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_futex(
    uaddr: *mut c_void,
    op: c_int,
    val: u32,
    timeout: *const timespec,
    uaddr2: *mut c_void,
    val3: u32,
) -> c_long {
    // The raw futex interface takes the address of a time, or a number in its place.
    let timeout_or_val2 = time(timeout).expose_provenance();
    // SAFETY: forwards this function's own contract: the raw interface requires what futex(2) does.
    answer(unsafe { raw::futex(uaddr.cast(), op, val, timeout_or_val2, uaddr2.cast(), val3) })
}
