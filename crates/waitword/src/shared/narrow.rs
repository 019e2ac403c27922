//! 8 and 16-bit words: a waiter is queued on the aligned 32 bits around its word.
//!
//! ```text
//!   byte 3   byte 2   byte 1   byte 0      the 32 bits that the kernel compares
//!   ├──────┼────────┼────────┼──────┤
//!   31..24   23..16   15..8     7..0       bits of the kernel's bitset
//! ```
//!
//! The mask of a word is as wide as the word, so the masks of all neighbours fit side by side into
//! the kernel's 32 bits: a wake of one byte finds only that byte's waiters, and counts are exact.
//!
//! The kernel compares all 32 bits. If a neighbour changes between our look and the kernel's, the
//! kernel returns EAGAIN. The waiter then looks at its own lane again and retries unless that has
//! changed. Once queued, a waiter stays queued whatever its neighbours do.

use crate::error::Error;
use crate::sys::Errno;
use crate::sys::clock::Deadline;
use crate::sys::futex_raw::shared_wait;
use crate::word::{Size, WordPtr};

/// The position of a narrow word in the 32 bits around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lane {
    pub(crate) around: *mut u32,
    shift: u32,
    size: Size,
}

impl Lane {
    #[inline]
    pub(crate) fn of(word: WordPtr) -> Self {
        let offset = word.address.addr() % 4;
        let from_low =
            if cfg!(target_endian = "little") { offset } else { 4 - offset - word.size.bytes() };
        Self {
            around: word.address.wrapping_byte_sub(offset).cast(),
            shift: 8 * from_low as u32,
            size: word.size,
        }
    }

    /// Extracts the word's own part of the 32 bits around it.
    #[inline]
    pub(crate) fn value(self, around: u32) -> u64 {
        u64::from(around >> self.shift) & self.size.all_bits()
    }

    #[inline]
    pub(super) fn bits(self, mask: u64) -> u32 {
        (mask as u32) << self.shift
    }

    /// The 32 bits around the word, as a value to pass to the kernel.
    ///
    /// Other threads access parts of them, at their own sizes. The language's memory model has no
    /// atomic access that overlaps others of a different size, so this is a plain machine load.
    ///
    /// # Safety
    /// The word is mapped (and so are the 32 bits, which do not cross a page boundary).
    #[inline]
    pub(crate) unsafe fn load_around(self) -> u32 {
        let value: u32;
        // SAFETY: the word is mapped, by this function's contract. `around` is its address rounded
        // down to a multiple of four, so the four bytes are aligned and in the same page. No
        // reference is made to bytes outside the word. Whatever they hold, another atomic or
        // anything else, is only a number to this block.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            core::arch::asm!("mov {0:e}, dword ptr [{1}]", out(reg) value, in(reg) self.around,
                options(nostack, preserves_flags, readonly));
            #[cfg(target_arch = "aarch64")]
            core::arch::asm!("ldr {0:w}, [{1}]", out(reg) value, in(reg) self.around,
                options(nostack, preserves_flags, readonly));
            #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
            {
                value = self.around.read_volatile();
            }
        }
        value
    }
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
    let lane = Lane::of(word);
    // SAFETY: if a word is mapped, so are the 32 bits around it, and they are aligned.
    let sleep = |around| unsafe { shared_wait(lane.around, around, lane.bits(mask), deadline) };
    // SAFETY: the word is mapped, by this function's contract, and so are the 32 bits around it, in
    // the same page.
    unsafe { wait_by(lane, expected, deadline, sleep) }
}

/// [`wait`] with the given way to sleep while the 32 bits around the word have the given value.
///
/// # Safety
/// The lane's 32 bits are mapped.
#[inline]
unsafe fn wait_by(
    lane: Lane,
    expected: u64,
    deadline: Option<&Deadline>,
    mut sleep: impl FnMut(u32) -> Result<(), Errno>,
) -> Result<(), Error> {
    let mut passed = false;
    loop {
        // SAFETY: the lane's 32 bits are mapped, by this function's contract.
        let around = unsafe { lane.load_around() };
        if lane.value(around) != expected {
            return Err(Error::Mismatch);
        }
        if passed {
            return Err(Error::TimedOut);
        }
        match sleep(around) {
            // Our own word or a neighbour has changed: look again. As long as neighbours keep
            // changing, the kernel never gets to check the time.
            Err(Errno::AGAIN) => passed = deadline.is_some_and(Deadline::has_passed),
            result => return Ok(result?),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sys::clock::Clock;
    use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

    #[repr(C, align(4))]
    struct Around([AtomicU8; 4]);

    /// `tests/shared/neighbours.rs` hits this case only by chance, and only with CPUs to spare.
    #[test]
    fn a_neighbour_that_changes_between_look_and_sleep_ends_no_wait() {
        let around = Around([0, 7, 0, 0].map(AtomicU8::new));
        let [_, word, neighbour, _] = &around.0;
        let lane = Lane::of(WordPtr { address: word.as_ptr().cast(), size: Size::U8 });
        let wait = |deadline, change: &AtomicU8| {
            let mut sleeps = 0;
            let sleep = |_| {
                sleeps += 1;
                if sleeps > 3 {
                    return Ok(());
                }
                change.fetch_add(1, Relaxed);
                Err(Errno::AGAIN)
            };
            // SAFETY: the lane is part of `around`.
            let waited = unsafe { wait_by(lane, 7, deadline, sleep) };
            (waited, sleeps)
        };
        assert_eq!(wait(None, neighbour), (Ok(()), 4));
        let passed = Deadline::at(Clock::Monotonic, core::time::Duration::ZERO);
        assert_eq!(wait(Some(&passed), neighbour), (Err(Error::TimedOut), 1));
        assert_eq!(wait(None, word), (Err(Error::Mismatch), 1));
    }
}
