//! futex(2).

use super::arguments::Arguments;
use crate::memory;
use core::ptr::with_exposed_provenance_mut;
use waitword::abi_support::{self, Interrupter};
use waitword::raw::{Errno, Timespec};

const WAIT: usize = 0;
const WAKE: usize = 1;
const REQUEUE: usize = 3;
const CMP_REQUEUE: usize = 4;
const WAKE_OP: usize = 5;
const LOCK_PI: usize = 6;
const UNLOCK_PI: usize = 7;
const TRYLOCK_PI: usize = 8;
const WAIT_BITSET: usize = 9;
const WAKE_BITSET: usize = 10;
const WAIT_REQUEUE_PI: usize = 11;
const CMP_REQUEUE_PI: usize = 12;
const LOCK_PI2: usize = 13;

pub(super) const PRIVATE: usize = 128;
const CLOCK_REALTIME: usize = 256;

/// The operation. The kernel uses only the low half.
fn operation(arguments: &Arguments) -> usize {
    arguments[1] as u32 as usize
}

/// All arguments, with their types: word, operation, value, time or second value, second word,
/// third value.
#[inline]
fn typed(arguments: &Arguments) -> (*mut u32, i32, u32, usize, *mut u32, u32) {
    let [word, _, value, time_or_value, second, third] = *arguments;
    (
        with_exposed_provenance_mut(word),
        operation(arguments) as i32,
        value as u32,
        time_or_value,
        with_exposed_provenance_mut(second),
        third as u32,
    )
}

/// Whether the call is about private words, an operation of the table, and memory that is mapped.
/// (If it is not mapped, the kernel reports it. On a word that cannot be read there is no waiter to
/// find or lose.)
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

/// Whether the call waits, without priority inheritance.
pub(super) fn waits(arguments: &Arguments) -> bool {
    matches!(operation(arguments) & !(PRIVATE | CLOCK_REALTIME), WAIT | WAIT_BITSET)
}

/// Whether the call is an operation with priority inheritance on private words.
pub(super) fn inherits(arguments: &Arguments) -> bool {
    let operation = operation(arguments);
    operation & PRIVATE != 0
        && matches!(
            operation & !(PRIVATE | CLOCK_REALTIME),
            LOCK_PI | UNLOCK_PI | TRYLOCK_PI | WAIT_REQUEUE_PI | CMP_REQUEUE_PI | LOCK_PI2
        )
}

/// The result of such an operation, or `None`: whatever the kernel returns.
///
/// # Safety
/// It [inherits], and the arguments are those of futex(2).
pub(super) unsafe fn answer_of_pi(arguments: &Arguments) -> Option<Result<usize, Errno>> {
    let (word, operation, value, time_or_value, second, third) = typed(arguments);
    // SAFETY: forwards this function's own contract.
    unsafe { abi_support::answer_of_pi(word, operation, value, time_or_value, second, third) }
}

/// Performs the call. A wait is ended by `by`, also at another thread's request if
/// `hears_requests`.
///
/// # Safety
/// It [is ours](is_ours), and the arguments are those of futex(2).
#[inline]
pub(super) unsafe fn call(
    arguments: &Arguments,
    by: &Interrupter,
    hears_requests: bool,
) -> Result<usize, Errno> {
    let (word, operation, value, time_or_value, second, third) = typed(arguments);
    let by = (by, hears_requests);
    // SAFETY: forwards this function's own contract: what futex(2) demands, of words that were seen
    // to be mapped.
    unsafe {
        abi_support::futex_interruptible(word, operation, value, time_or_value, second, third, by)
    }
}
