//! The kernel's futex as loom sees it: sleepers of all words behind one mutex and one condition.
//!
//! A wake wakes every sleeper of every word; those whose word still holds what they expect (and who
//! were not meant) sleep on. That is more wake-ups than the kernel gives, never fewer checks.

use super::clock::Deadline;
use crate::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::checker::sync::{Condvar, Mutex};
use core::num::NonZeroU32;
use rustix::io::Errno;

pub(crate) const ANY_BIT: NonZeroU32 = NonZeroU32::MAX;

crate::checker::lazy_static! {
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

/// Sleepers on low halves of 64-bit words, which are told apart and counted, as the kernel does.
struct Sleepers {
    queue: Vec<Sleeper>,
    next_ticket: usize,
}

#[derive(Clone, Copy)]
struct Sleeper {
    word: usize,
    bits: u32,
    ticket: usize,
}

crate::checker::lazy_static! {
    static ref HALVES: (Mutex<Sleepers>, Condvar) = {
        let sleepers = Sleepers { queue: Vec::new(), next_ticket: 0 };
        (Mutex::new(sleepers), Condvar::new())
    };
}

/// Sleeps while the low half of `word` is `expected`; a deadline has always passed.
pub(crate) fn low_half_wait(
    word: &AtomicU64,
    expected: u32,
    bits: u32,
    deadline: Option<&Deadline>,
) -> Result<(), Errno> {
    let mut sleepers = HALVES.0.lock().unwrap();
    if word.load(Ordering::Relaxed) as u32 != expected {
        return Err(Errno::AGAIN);
    }
    if deadline.is_some() {
        return Err(Errno::TIMEDOUT);
    }
    let ticket = sleepers.next_ticket;
    sleepers.next_ticket += 1;
    sleepers.queue.push(Sleeper {
        word: (&raw const *word).addr(),
        bits,
        ticket,
    });
    while sleepers
        .queue
        .iter()
        .any(|sleeper| sleeper.ticket == ticket)
    {
        sleepers = HALVES.1.wait(sleepers).unwrap();
    }
    Ok(())
}

/// Wakes up to `count` of those who sleep on the word with one of `bits`, in order; how many.
pub(crate) fn low_half_wake(word: *const AtomicU64, count: u32, bits: u32) -> Result<usize, Errno> {
    let mut sleepers = HALVES.0.lock().unwrap();
    let mut woken = 0;
    sleepers.queue.retain(|sleeper| {
        let meant = sleeper.word == word.addr() && sleeper.bits & bits != 0 && woken < count;
        woken += u32::from(meant);
        !meant
    });
    HALVES.1.notify_all();
    Ok(woken as usize)
}
