//! The arguments and results of futex(2).

use super::arguments::{Access, Timespec, at_least_one, check_address, check_argument};
use super::call::{CLOCK_REALTIME, Call, PRIVATE_FLAG, private_word};
use super::pi;
use crate::futex::{RawFutex, requeue::requeue, wait::wait, wake::wake};
use crate::lock::interrupter::Interrupter;
use crate::park::Until;
use crate::sys::Errno;
use crate::sys::clock::{Clock, Deadline};
use crate::word::RawWakeOp;

const WAIT: i32 = 0;
const WAKE: i32 = 1;
const REQUEUE: i32 = 3;
const CMP_REQUEUE: i32 = 4;
const WAKE_OP: i32 = 5;
const WAIT_BITSET: i32 = 9;
const WAKE_BITSET: i32 = 10;

const ALL_BITS: u32 = u32::MAX;

/// futex(2), with its own arguments: `timeout_or_val2` is a pointer to a `struct timespec` for the
/// waits and a count for the operations on two words. Returns the system call's result; an error is
/// its `errno`.
///
/// With `FUTEX_PRIVATE_FLAG`, the process's own table serves `FUTEX_WAIT`, `FUTEX_WAKE`,
/// `FUTEX_REQUEUE`, `FUTEX_CMP_REQUEUE`, `FUTEX_WAKE_OP`, `FUTEX_WAIT_BITSET` and
/// `FUTEX_WAKE_BITSET`. Everything else goes to the kernel. As in the kernel, an operation that
/// finds a waiter of the other kind (plain or PI) on a private word fails with `EINVAL`.
///
/// # Errors
/// futex(2)'s. See the [module](super) for the differences.
///
/// # Safety
/// `uaddr`, `uaddr2` and the timeout are what futex(2) requires for `op`. In particular, while this
/// runs, a word that is read is mapped and accessed by atomic operations only, and a word that is
/// written is also writable.
pub unsafe fn futex(
    uaddr: *mut u32,
    op: i32,
    val: u32,
    timeout_or_val2: usize,
    uaddr2: *mut u32,
    val3: u32,
) -> Result<usize, Errno> {
    let call = Call { uaddr, op, val, timeout_or_val2, uaddr2, val3 };
    // SAFETY: this function's own contract.
    unsafe { serve(&call, None) }
}

/// [`futex`], but its wait on a private word ends if the [`Interrupter`] tells the thread to leave.
/// With `true`, an interruption ends it too, with `EINTR`.
///
/// # Errors
/// As [`futex`].
///
/// # Safety
/// As [`futex`].
pub unsafe fn futex_interruptible(
    uaddr: *mut u32,
    op: i32,
    val: u32,
    timeout_or_val2: usize,
    uaddr2: *mut u32,
    val3: u32,
    by: (&Interrupter, bool),
) -> Result<usize, Errno> {
    let call = Call { uaddr, op, val, timeout_or_val2, uaddr2, val3 };
    // SAFETY: this function's own contract.
    unsafe { serve(&call, Some(by)) }
}

/// The result of an operation with priority inheritance on private words, if waiting plain threads
/// determine it. `None`: the kernel determines it, so make the system call. For callers that must
/// make that call themselves; [`futex`] does both.
///
/// # Errors
/// futex(2)'s.
///
/// # Safety
/// As [`futex`].
#[cold]
pub unsafe fn answer_of_pi(
    uaddr: *mut u32,
    op: i32,
    val: u32,
    timeout_or_val2: usize,
    uaddr2: *mut u32,
    val3: u32,
) -> Option<Result<usize, Errno>> {
    let call = Call { uaddr, op, val, timeout_or_val2, uaddr2, val3 };
    // SAFETY: this function's own contract.
    unsafe { pi::answer(&call) }
}

/// # Safety
/// As [`futex`].
#[inline(always)]
unsafe fn serve(call: &Call, by: Option<(&Interrupter, bool)>) -> Result<usize, Errno> {
    let &Call { uaddr, op, val, timeout_or_val2, uaddr2, val3 } = call;
    let command = op & !(PRIVATE_FLAG | CLOCK_REALTIME);
    let ours = op & PRIVATE_FLAG != 0
        && matches!(
            command,
            WAIT | WAKE | REQUEUE | CMP_REQUEUE | WAKE_OP | WAIT_BITSET | WAKE_BITSET
        );
    if !ours {
        // SAFETY: this function's own contract.
        return match unsafe { pi::answer(call) } {
            Some(answer) => answer,
            // SAFETY: this function's own contract.
            None => unsafe { call.send() },
        };
    }
    let (first, second) = (private_word(uaddr), private_word(uaddr2));
    let realtime = op & CLOCK_REALTIME != 0;
    let deadline = match command {
        // The kernel checks the time before anything else.
        // SAFETY: for the waits, `timeout_or_val2` is null or the address of a time, by this
        // function's contract.
        WAIT | WAIT_BITSET => unsafe { deadline(command, realtime, timeout_or_val2)? },
        _ => None,
    };
    // SAFETY: the wait is this thread's own and is over when this function returns; `by` is
    // borrowed for longer.
    let until_left = by.map(|(by, _)| unsafe { by.bring_forward(deadline.as_ref(), false) });
    let until = match by {
        Some((by, true)) => by.until(deadline.as_ref()),
        Some((_, false)) => until_left.as_ref().into(),
        None => deadline.as_ref().into(),
    };
    if realtime && command != WAIT_BITSET {
        return Err(Errno::NOSYS);
    }
    let val2 = timeout_or_val2 as i32;
    // SAFETY: this function's contract covers what futex(2) requires of `op`'s words, and each arm
    // requires no more. WAKE_OP writes its second word, whose address is checked for alignment
    // before that.
    unsafe {
        match command {
            WAIT => wait_word(first, val, ALL_BITS, until),
            WAIT_BITSET => wait_word(first, val, val3, until),
            WAKE => wake_word(first, val as i32, ALL_BITS),
            WAKE_BITSET => wake_word(first, val as i32, val3),
            REQUEUE => requeue_words(first, second, val as i32, val2, None),
            CMP_REQUEUE => requeue_words(first, second, val as i32, val2, Some(val3)),
            _ => {
                check_address(first, Access::Key)?;
                check_address(second, Access::Key)?;
                let change = RawWakeOp::decode(val3);
                // The kernel checks the operation, then the word, then the comparison.
                if change.is_ok() || val3 >> 28 & 7 <= 4 {
                    check_address(second, Access::Read)?;
                }
                let change = change?;
                let (count, val2) = (at_least_one(val as i32), at_least_one(val2));
                pi::wake_op(first, count, second, val2, change)
            }
        }
    }
}

/// # Safety
/// `timeout` is null or the address of a `struct timespec`.
unsafe fn deadline(
    command: i32,
    realtime: bool,
    timeout: usize,
) -> Result<Option<Deadline>, Errno> {
    let timeout = core::ptr::with_exposed_provenance::<Timespec>(timeout);
    if timeout.is_null() {
        return Ok(None);
    }
    check_argument(timeout)?;
    // SAFETY: `timeout` is not null, so it is the address of a time, by this function's contract.
    // It may be misaligned, so the read is unaligned.
    let time = unsafe { timeout.read_unaligned() };
    let deadline = match command {
        WAIT => Deadline::from_relative(time.for_sys()),
        _ if realtime => Deadline::from_timespec(Clock::Realtime, time.for_sys()),
        _ => Deadline::from_timespec(Clock::Monotonic, time.for_sys()),
    };
    deadline.map(Some).ok_or(Errno::INVAL)
}

/// # Safety
/// Until this returns, the word is mapped, and accessed by atomic operations only. It has no node
/// word.
unsafe fn wait_word(
    word: RawFutex,
    expected: u32,
    bitset: u32,
    until: Until<'_>,
) -> Result<usize, Errno> {
    if bitset == 0 {
        return Err(Errno::INVAL);
    }
    check_address(word, Access::Read)?;
    // SAFETY: the word is mapped and accessed by atomic operations only, by this function's
    // contract; `check_address` has found it aligned. There is no node word.
    unsafe { wait(word, expected.into(), bitset.into(), until) }?;
    Ok(0)
}

/// # Safety
/// The word has no node word.
unsafe fn wake_word(word: RawFutex, count: i32, bitset: u32) -> Result<usize, Errno> {
    if bitset == 0 {
        return Err(Errno::INVAL);
    }
    check_address(word, Access::Key)?;
    let count = at_least_one(count);
    // SAFETY: there is no node word, and the call touches nothing else.
    let woken = unsafe { wake(word, count, bitset.into()) }?;
    pi::found(woken, count, word)
}

/// # Safety
/// If a value is expected, the first word is mapped, and accessed by atomic operations only.
/// Neither has a node word.
unsafe fn requeue_words(
    from: RawFutex,
    to: RawFutex,
    wake: i32,
    moved: i32,
    expected: Option<u32>,
) -> Result<usize, Errno> {
    let (Ok(wake), Ok(moved)) = (usize::try_from(wake), usize::try_from(moved)) else {
        return Err(Errno::INVAL);
    };
    let access = if expected.is_some() { Access::Read } else { Access::Key };
    check_address(from, Access::Key)?;
    check_address(to, Access::Key)?;
    check_address(from, access)?;
    // SAFETY: if a value is expected, the first word is mapped and accessed by atomic operations
    // only, by this function's contract; `check_address` has found it aligned. There are no node
    // words.
    let found = unsafe { requeue(from, to, wake, moved, expected.map(u64::from)) }?;
    pi::found(found, wake.saturating_add(moved), from)
}
