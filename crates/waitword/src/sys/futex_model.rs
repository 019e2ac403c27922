//! The kernel's futex as loom sees it: sleepers of all words behind one mutex and one condition.
//!
//! A wake wakes every sleeper of every word; those whose word still holds what they expect (and who
//! were not meant) sleep on. That is more wake-ups than the kernel gives, never fewer checks.

use super::clock::Deadline;
use crate::atomic::{AtomicU32, Ordering};
use core::num::NonZeroU32;
use loom::sync::{Condvar, Mutex};
use rustix::io::Errno;

pub(crate) const ANY_BIT: NonZeroU32 = NonZeroU32::MAX;

loom::lazy_static! {
    static ref KERNEL: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());
}

/// Sleeps while `word` holds `expected`; a deadline has always passed.
pub(crate) fn wait(
    word: &AtomicU32,
    expected: u32,
    _bits: NonZeroU32,
    deadline: Option<&Deadline>,
) -> Result<(), Errno> {
    let kernel = KERNEL.0.lock().unwrap();
    if word.load(Ordering::Relaxed) != expected {
        return Err(Errno::AGAIN);
    }
    if deadline.is_some() {
        return Err(Errno::TIMEDOUT);
    }
    drop(KERNEL.1.wait(kernel).unwrap());
    Ok(())
}

/// Wakes all sleepers.
pub(crate) fn wake(_word: &AtomicU32, _count: u32, _bits: NonZeroU32) {
    let _kernel = KERNEL.0.lock().unwrap();
    KERNEL.1.notify_all();
}

/// Counts on `second` and wakes all sleepers.
pub(crate) fn wake_two(_first: &AtomicU32, second: &AtomicU32, change: u32) -> bool {
    second.fetch_add(change, Ordering::SeqCst);
    let _kernel = KERNEL.0.lock().unwrap();
    KERNEL.1.notify_all();
    true
}
