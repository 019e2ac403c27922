//! Process-shared words of every size, on the kernel's 32-bit futex. There is no table and no state
//! of our own.
//!
//! | size | how |
//! |------|-----|
//! | 32 bits | the kernel's own operations, one call each |
//! | 64 bits | both halves through `futex_waitv`; wakes and moves on the low half (`word64.rs`) |
//! | 8, 16 bits | the aligned 32 bits around the word (1) |
//!
//! 1. The kernel's bitset keeps neighbours apart (`narrow.rs`). `wait_any` has no bitset
//!    (`forwarding.rs`).
//!
//! [`Futex::shared`](crate::Futex::shared) documents the guarantees of each combination; this
//! module implements them. The other processes may be hostile: everything read from a shared word
//! is a number to compare or to pass to the kernel, never an index or an address.

mod forwarding;
mod narrow;
mod word64;

pub(crate) use forwarding::NarrowWaiter;
pub(crate) use narrow::Lane;
pub(crate) use word64::halves;

use crate::error::Error;
use crate::record;
use crate::sys::clock::Deadline;
use crate::sys::futex::shared_wake;
use crate::sys::futex_raw::{shared_requeue, shared_wait, shared_wake_op};
use crate::word::{RawWakeOp, Size, WordPtr};
use word64::low_half;

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
    let wait = || unsafe {
        match word.size {
            Size::U32 => {
                shared_wait(word.address.cast(), expected as u32, mask as u32, deadline)?;
                Ok(())
            }
            Size::U64 => word64::wait(word, expected, mask, deadline),
            Size::U8 | Size::U16 => narrow::wait(word, expected, mask, deadline),
        }
    };
    record::waiting_on_futex(word.address.addr(), deadline.is_some(), wait, Error::is_timeout)
}

#[inline]
pub(crate) fn wake(word: WordPtr, count: usize, mask: u64) -> Result<usize, Error> {
    let count = kernel_count(count);
    if count == 0 {
        return Ok(0);
    }
    let (address, bits) = match word.size {
        Size::U32 => (word.address.cast(), mask as u32),
        // Any mask finds any waiter: they all wait with all bits set.
        Size::U64 => (low_half(word), u32::MAX),
        Size::U8 | Size::U16 => {
            let lane = Lane::of(word);
            (lane.around, lane.bits(mask))
        }
    };
    Ok(shared_wake(address, count, bits)?)
}

/// The kernel cannot move the waiters of a narrow word without moving its neighbours' too: if
/// either word is narrow, wakes the waiters instead.
///
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
    let wakes_instead = is_narrow(from) || is_narrow(to);
    let (wake, moved) = (kernel_count(wake), kernel_count(moved));
    // The kernel compares 32 bits, in one step with the move.
    let kernel_compares_all = !wakes_instead && from.size == Size::U32;
    // SAFETY: the load runs only if a value is expected. Then the word is mapped, aligned, and
    // accessed by atomic operations only, by this function's contract.
    let differs = |expected| unsafe { from.load() } != expected;
    if !kernel_compares_all && expected.is_some_and(differs) {
        return Err(Error::Mismatch);
    }
    if wakes_instead {
        return self::wake(from, wake as usize + moved as usize, from.size.all_bits());
    }
    let (from, to) = (low_half(from), low_half(to));
    // SAFETY: if a value is expected, the first word and so its low half are mapped and aligned, by
    // this function's contract. (The low half of a 32-bit word is the word itself.)
    let found =
        unsafe { shared_requeue(from, to, wake, moved, expected.map(|value| value as u32)) };
    Ok(found?)
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
            let (count, second_count) = (kernel_count(count), kernel_count(second_count));
            let (first, second) = (first.address.cast(), second.address.cast());
            // SAFETY: this function's own contract.
            let woken = unsafe { shared_wake_op(first, count, second, second_count, packed) };
            return Ok(woken?);
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

#[cfg(all(test, not(loom)))]
mod tests;
