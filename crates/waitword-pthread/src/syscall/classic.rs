//! futex(2).

use super::{Arguments, Errno, memory};
use core::ptr::with_exposed_provenance_mut;
use waitword::Interrupter;
use waitword::door::{self, Timespec};

const WAIT: usize = 0;
const WAKE: usize = 1;
const REQUEUE: usize = 3;
const CMP_REQUEUE: usize = 4;
const WAKE_OP: usize = 5;
const WAIT_BITSET: usize = 9;
const WAKE_BITSET: usize = 10;

pub(super) const PRIVATE: usize = 128;
const CLOCK_REALTIME: usize = 256;

/// The kernel looks at the low half.
fn operation(arguments: &Arguments) -> usize {
    arguments[1] as u32 as usize
}

/// Whether it is about private words, and something that the table does, on memory that is there. (If it is not, the kernel says
/// so. There is nobody to be found or lost on a word that cannot be read.)
pub(super) fn is_ours(arguments: &Arguments) -> bool {
    let operation = operation(arguments);
    if operation & PRIVATE == 0 {
        return false;
    }
    let [word, _, _, time, second, _] = *arguments;
    match operation & !(PRIVATE | CLOCK_REALTIME) {
        WAIT | WAIT_BITSET => {
            memory::word_is_readable(word)
                && (time == 0 || memory::is_readable(time, size_of::<Timespec>()))
        }
        CMP_REQUEUE => memory::word_is_readable(word),
        WAKE_OP => memory::word_is_writable(second),
        WAKE | REQUEUE | WAKE_BITSET => true,
        _ => false,
    }
}

/// The same for a thread that may be interrupted.
///
/// # Safety
/// As [`call`].
pub(super) unsafe fn call_interruptible(
    arguments: &Arguments,
    by: &Interrupter,
) -> Result<usize, Errno> {
    let [word, _, value, time_or_value, second, third_value] = *arguments;
    // SAFETY: the caller's promise.
    unsafe {
        door::futex_interruptible(
            with_exposed_provenance_mut(word),
            operation(arguments) as i32,
            value as u32,
            time_or_value,
            with_exposed_provenance_mut(second),
            third_value as u32,
            by,
        )
    }
}

/// # Safety
/// It [is ours](is_ours), and the arguments are those of futex(2).
#[inline]
pub(super) unsafe fn call(arguments: &Arguments) -> Result<usize, Errno> {
    let [word, _, value, time_or_value, second, third_value] = *arguments;
    // SAFETY: the caller's promise.
    unsafe {
        door::futex(
            with_exposed_provenance_mut(word),
            operation(arguments) as i32,
            value as u32,
            time_or_value,
            with_exposed_provenance_mut(second),
            third_value as u32,
        )
    }
}
