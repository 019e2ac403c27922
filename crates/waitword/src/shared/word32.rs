//! 32-bit words: the kernel's own futex operations, one call each.

use crate::error::Error;
use crate::sys::clock::Deadline;
use crate::sys::futex;
use crate::word::WordPtr;

/// # Safety
/// The word is mapped and aligned.
#[inline]
pub(super) unsafe fn wait(
    word: WordPtr,
    expected: u64,
    mask: u64,
    deadline: Option<&Deadline>,
) -> Result<(), Error> {
    // SAFETY: this function's own contract.
    unsafe { futex::shared_wait(word.address.cast(), expected as u32, mask as u32, deadline) }?;
    Ok(())
}

#[inline]
pub(super) fn wake(word: WordPtr, count: u32, mask: u64) -> Result<usize, Error> {
    Ok(futex::shared_wake(word.address.cast(), count, mask as u32)?)
}

/// Moves waiters to a 32-bit word or the low half of a 64-bit one.
///
/// # Safety
/// If a value is expected, the first word is mapped, aligned, and accessed by atomic operations
/// only.
#[inline]
pub(super) unsafe fn requeue(
    from: WordPtr,
    to: WordPtr,
    wake: u32,
    moved: u32,
    expected: Option<u64>,
) -> Result<usize, Error> {
    let expected = expected.map(|expected| expected as u32);
    // SAFETY: this function's own contract. `low_half` of a 32-bit word is the word itself.
    Ok(unsafe {
        futex::shared_requeue(
            super::word64::low_half(from),
            super::word64::low_half(to),
            wake,
            moved,
            expected,
        )?
    })
}

/// # Safety
/// The second word is mapped, aligned, writable, and accessed by atomic operations only.
#[inline]
pub(super) unsafe fn wake_op(
    first: WordPtr,
    (count, second_count): (u32, u32),
    second: WordPtr,
    packed: u32,
) -> Result<usize, Error> {
    // SAFETY: this function's own contract.
    Ok(unsafe {
        futex::shared_wake_op(
            first.address.cast(),
            count,
            second.address.cast(),
            second_count,
            packed,
        )?
    })
}
