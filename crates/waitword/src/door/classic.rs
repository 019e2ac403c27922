//! futex(2).

use super::{Access, Errno, Timespec, at_least_one, check_address, check_argument};
use crate::futex::{RawFutex, Scope, requeue::requeue, wait::wait, wake::wake, wake_op::wake_op};
use crate::lock::Interrupter;
use crate::park::Until;
use crate::sys;
use crate::sys::clock::{Clock, Deadline};
use crate::word::{RawWakeOp, Size, WordPtr};

const WAIT: i32 = 0;
const WAKE: i32 = 1;
const REQUEUE: i32 = 3;
const CMP_REQUEUE: i32 = 4;
const WAKE_OP: i32 = 5;
const WAIT_BITSET: i32 = 9;
const WAKE_BITSET: i32 = 10;

const PRIVATE_FLAG: i32 = 128;
const CLOCK_REALTIME: i32 = 256;

const ALL_BITS: u32 = u32::MAX;

/// futex(2), with its own arguments: `timeout_or_val2` is a pointer to a `struct timespec` for the waits,
/// and a count for the operations on two words. The answer is the system call's, an error its `errno`.
///
/// With `FUTEX_PRIVATE_FLAG`, `FUTEX_WAIT`, `FUTEX_WAKE`, `FUTEX_REQUEUE`, `FUTEX_CMP_REQUEUE`, `FUTEX_WAKE_OP`,
/// `FUTEX_WAIT_BITSET` and `FUTEX_WAKE_BITSET` are served by the process's own table; all else is the kernel's.
/// So a private PI futex stands in the kernel, and a private word must not be used by both kinds.
///
/// # Errors
/// futex(2)'s. See the module for where they differ.
///
/// # Safety
/// `uaddr`, `uaddr2` and the timeout are what futex(2) demands for `op`; in particular a word that is read
/// is mapped.
pub unsafe fn futex(
    uaddr: *mut u32,
    op: i32,
    val: u32,
    timeout_or_val2: usize,
    uaddr2: *mut u32,
    val3: u32,
) -> Result<usize, Errno> {
    // SAFETY: the caller's promise.
    unsafe { call(uaddr, op, val, timeout_or_val2, uaddr2, val3, None) }
}

/// [`futex`], whose wait on a private word ends with `EINTR` if it is interrupted by this.
///
/// # Errors
/// As [`futex`].
///
/// # Safety
/// As [`futex`].
#[cold]
pub unsafe fn futex_interruptible(
    uaddr: *mut u32,
    op: i32,
    val: u32,
    timeout_or_val2: usize,
    uaddr2: *mut u32,
    val3: u32,
    by: &Interrupter,
) -> Result<usize, Errno> {
    // SAFETY: the caller's promise.
    unsafe { call(uaddr, op, val, timeout_or_val2, uaddr2, val3, Some(by)) }
}

/// # Safety
/// As [`futex`].
#[inline(always)]
unsafe fn call(
    uaddr: *mut u32,
    op: i32,
    val: u32,
    timeout_or_val2: usize,
    uaddr2: *mut u32,
    val3: u32,
    by: Option<&Interrupter>,
) -> Result<usize, Errno> {
    let command = op & !(PRIVATE_FLAG | CLOCK_REALTIME);
    let ours = op & PRIVATE_FLAG != 0
        && matches!(
            command,
            WAIT | WAKE | REQUEUE | CMP_REQUEUE | WAKE_OP | WAIT_BITSET | WAKE_BITSET
        );
    if !ours {
        // SAFETY: the caller's promise.
        return unsafe {
            sys::futex::raw([
                uaddr.expose_provenance(),
                op as usize,
                val as usize,
                timeout_or_val2,
                uaddr2.expose_provenance(),
                val3 as usize,
            ])
        };
    }
    let word = |address: *mut u32| RawFutex {
        word: WordPtr {
            address: address.cast(),
            size: Size::U32,
        },
        scope: Scope::Private,
        numa: false,
    };
    let (first, second) = (word(uaddr), word(uaddr2));
    let realtime = op & CLOCK_REALTIME != 0;
    let deadline = match command {
        // The kernel looks at the time before anything else.
        // SAFETY: the caller's promise.
        WAIT | WAIT_BITSET => unsafe { deadline(command, realtime, timeout_or_val2)? },
        _ => None,
    };
    let until = match by {
        Some(by) => by.until(deadline.as_ref()),
        None => deadline.as_ref().into(),
    };
    if realtime && command != WAIT_BITSET {
        return Err(Errno::NOSYS);
    }
    let val2 = timeout_or_val2 as i32;
    // SAFETY: the caller's promise, and the words are checked as far as can be before they are used.
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
                // The kernel looks at the operation, the word, and then the comparison.
                if change.is_ok() || val3 >> 28 & 7 <= 4 {
                    check_address(second, Access::Read)?;
                }
                let change = change?;
                let count = at_least_one(val as i32);
                Ok(wake_op(first, count, second, at_least_one(val2), change)?)
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
    // SAFETY: the caller's promise.
    let time = unsafe { timeout.read_unaligned() };
    let deadline = match command {
        WAIT => Deadline::from_relative(time),
        _ if realtime => Deadline::from_timespec(Clock::Realtime, time),
        _ => Deadline::from_timespec(Clock::Monotonic, time),
    };
    deadline.map(Some).ok_or(Errno::INVAL)
}

/// # Safety
/// The word is mapped.
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
    // SAFETY: the caller's promise; aligned.
    unsafe { wait(word, expected.into(), bitset.into(), until) }?;
    Ok(0)
}

/// # Safety
/// None beyond what the type says: the word is not touched.
unsafe fn wake_word(word: RawFutex, count: i32, bitset: u32) -> Result<usize, Errno> {
    if bitset == 0 {
        return Err(Errno::INVAL);
    }
    check_address(word, Access::Key)?;
    // SAFETY: there is no node word.
    Ok(unsafe { wake(word, at_least_one(count), bitset.into()) }?)
}

/// # Safety
/// The first word is mapped, if a value is expected there.
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
    let access = if expected.is_some() {
        Access::Read
    } else {
        Access::Key
    };
    check_address(from, Access::Key)?;
    check_address(to, Access::Key)?;
    check_address(from, access)?;
    // SAFETY: the caller's promise; aligned.
    Ok(unsafe { requeue(from, to, wake, moved, expected.map(u64::from)) }?)
}
