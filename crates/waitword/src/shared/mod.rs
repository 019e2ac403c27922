//! Process-shared words of every size, on the kernel's 32-bit futex. There is no table and no state
//! of our own.
//!
//! | size | how |
//! |------|-----|
//! | 32 bits | the kernel's own operations (`word32.rs`) |
//! | 64 bits | both halves through `futex_waitv`; wakes and moves on the low half (`word64.rs`) |
//! | 8, 16 bits | the aligned 32 bits around the word (1) |
//!
//! 1. The kernel's bitset keeps neighbours apart (`narrow.rs`). `wait_any` has no bitset
//!    (`passing.rs`).
//!
//! [`Futex::shared`](crate::Futex::shared) documents the guarantees of each combination; this
//! module implements them. The other processes may be hostile: everything read from a shared word
//! is a number to compare or to pass to the kernel, never an index or an address.

mod narrow;
pub(crate) mod passing;
mod word32;
mod word64;

pub(crate) use narrow::Lane;
pub(crate) use word64::halves;

use crate::error::Error;
use crate::sys::clock::Deadline;
use crate::word::{RawWakeOp, Size, WordPtr};

/// The kernel's counts are of type `int`.
#[inline]
fn kernel_count(count: usize) -> u32 {
    count.min(i32::MAX as usize) as u32
}

/// # Safety
/// Until this returns, the word is mapped, aligned, and accessed by atomic operations only.
#[inline]
pub(crate) unsafe fn wait(
    word: WordPtr,
    expected: u64,
    mask: u64,
    deadline: Option<&Deadline>,
) -> Result<(), Error> {
    // SAFETY: this function's own contract; each of these requires no more for a word of its size.
    unsafe {
        match word.size {
            Size::U32 => word32::wait(word, expected, mask, deadline),
            Size::U64 => word64::wait(word, expected, mask, deadline),
            Size::U8 | Size::U16 => narrow::wait(word, expected, mask, deadline),
        }
    }
}

#[inline]
pub(crate) fn wake(word: WordPtr, count: usize, mask: u64) -> Result<usize, Error> {
    let count = kernel_count(count);
    if count == 0 {
        return Ok(0);
    }
    match word.size {
        Size::U32 => word32::wake(word, count, mask),
        Size::U64 => word64::wake(word, count),
        Size::U8 | Size::U16 => narrow::wake(word, count, mask),
    }
}

/// # Safety
/// If a value is expected, the first word is mapped, aligned, and accessed by atomic operations
/// only.
#[inline]
pub(crate) unsafe fn requeue(
    from: WordPtr,
    to: WordPtr,
    wake: usize,
    moved: usize,
    expected: Option<u64>,
) -> Result<usize, Error> {
    let is_narrow = |word: WordPtr| matches!(word.size, Size::U8 | Size::U16);
    let (wake, moved) = (kernel_count(wake), kernel_count(moved));
    // SAFETY: this function's own contract: each requires something only of the first word, and
    // only if a value is expected.
    unsafe {
        if is_narrow(from) || is_narrow(to) {
            wake_instead(from, wake, moved, expected)
        } else if from.size == Size::U64 {
            word64::requeue(from, to, wake, moved, expected)
        } else {
            word32::requeue(from, to, wake, moved, expected)
        }
    }
}

/// For words whose waiters the kernel cannot move without moving their neighbours' too: wakes them
/// instead.
///
/// # Safety
/// If a value is expected, the word is mapped, aligned, and accessed by atomic operations only.
unsafe fn wake_instead(
    from: WordPtr,
    wake: u32,
    moved: u32,
    expected: Option<u64>,
) -> Result<usize, Error> {
    // SAFETY: the load runs only if a value is expected. Then the word is mapped, aligned, and
    // accessed by atomic operations only, by this function's contract.
    if expected.is_some_and(|expected| unsafe { from.load() } != expected) {
        return Err(Error::Mismatch);
    }
    self::wake(from, wake as usize + moved as usize, from.size.all_bits())
}

/// # Safety
/// The second word is mapped, aligned, writable, and accessed by atomic operations only.
#[inline]
pub(crate) unsafe fn wake_op(
    first: WordPtr,
    count: usize,
    second: WordPtr,
    second_count: usize,
    op: RawWakeOp,
) -> Result<usize, Error> {
    let both_32 = first.size == Size::U32 && second.size == Size::U32;
    if both_32 && count > 0 && second_count > 0 {
        if let Some(packed) = op.encode() {
            let counts = (kernel_count(count), kernel_count(second_count));
            // SAFETY: this function's own contract.
            return unsafe { word32::wake_op(first, counts, second, packed) };
        }
    }
    // SAFETY: this function's own contract.
    let old = unsafe { op.apply(second) };
    let mut woken = wake(first, count, first.size.all_bits())?;
    if op.compares(old, second.size) {
        woken += wake(second, second_count, second.size.all_bits())?;
    }
    Ok(woken)
}

#[cfg(test)]
mod tests;
