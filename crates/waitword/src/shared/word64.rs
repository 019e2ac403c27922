//! 64-bit words: a waiter is queued on both 32-bit halves at once (`futex_waitv`, Linux 5.16).
//!
//! ```text
//!   waiter                                    waker
//!   ──────                                    ─────
//!   low half as expected?  queue on it  (1)   change the word
//!   high half as expected? queue on it  (2)   FUTEX_WAKE on the low half
//!   sleep
//! ```
//!
//! Any change of the word changes a half. If the change is in the low half and comes before (1), or
//! in the high half and before (2), the waiter sees it and does not sleep. In every other case, the
//! waiter is already queued on the low half when the waker gets there. So no wake-up is lost.
//! Waking the low half is enough, which makes counts exact and keeps the order of arrival.
//!
//! This is weaker than one 64-bit comparison in one way: the halves are compared one after the
//! other. The word may change between (1) and (2) so that *each* half held its expected value when
//! it was compared, although the word never held both at once. Then the waiter sleeps, and the wake
//! that follows that change wakes it.
//!
//! A requeue moves the entry on the low half. The entry on the high half stays, and is never woken,
//! until the waiter leaves. `futex_waitv` has no bitset, so masks cannot distinguish waiters.

use crate::error::Error;
use crate::sys::clock::Deadline;
use crate::sys::futex_raw::{Waitv, waitv};
use crate::word::{Size, WordPtr};

/// Futex2 flags: 32 bits, process-shared.
const SHARED_U32: u32 = 2;

const LOW_HALF_OFFSET: usize = if cfg!(target_endian = "little") { 0 } else { 4 };

/// The 32 bits that wakes go to: the low half of a 64-bit word, or a 32-bit word itself.
#[inline]
pub(super) fn low_half(word: WordPtr) -> *mut u32 {
    let offset = match word.size {
        Size::U64 => LOW_HALF_OFFSET,
        _ => 0,
    };
    word.address.wrapping_byte_add(offset).cast()
}

#[inline]
fn high_half(word: WordPtr) -> *mut u32 {
    word.address.wrapping_byte_add(4 - LOW_HALF_OFFSET).cast()
}

/// The two `futex_waitv` entries for a wait on `word` while it holds `expected`.
#[inline]
pub(crate) fn halves(word: WordPtr, expected: u64) -> [Waitv; 2] {
    let entry = |half: *mut u32, val: u64| Waitv {
        val,
        uaddr: half.expose_provenance() as u64,
        flags: SHARED_U32,
        reserved: 0,
    };
    [entry(low_half(word), expected & u64::from(u32::MAX)), entry(high_half(word), expected >> 32)]
}

/// # Safety
/// The word is mapped and aligned.
#[inline]
pub(super) unsafe fn wait(
    word: WordPtr,
    expected: u64,
    mask: u64,
    deadline: Option<&Deadline>,
) -> Result<(), Error> {
    if mask != word.size.all_bits() {
        return Err(Error::Unsupported);
    }
    // SAFETY: both entries refer to halves of the word, which is mapped and aligned, by this
    // function's contract.
    unsafe { waitv(&halves(word, expected), deadline) }?;
    Ok(())
}
