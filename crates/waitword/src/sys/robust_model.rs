//! The kernel's part in robust mutexes, for loom: one queue for all words behind one mutex, from
//! which a wake takes exactly one sleeper; and the kernel's `handle_futex_death`.

use super::clock::Deadline;
use crate::atomic::{AtomicU32, Ordering};
use crate::checker::sync::{Condvar, Mutex};
use crate::sys::Errno;

const WAITERS: u32 = 0x8000_0000;
const OWNER_DIED: u32 = 0x4000_0000;
const TID_MASK: u32 = 0x3fff_ffff;

#[derive(Default)]
struct Queue {
    /// Each sleeper, by a number of its own, and the address it sleeps on.
    sleepers: Vec<(u32, usize)>,
    last: u32,
}

crate::checker::lazy_static! {
    static ref KERNEL: (Mutex<Queue>, Condvar) = (Mutex::new(Queue::default()), Condvar::new());
}

fn address(word: *const AtomicU32) -> usize {
    word.addr()
}

pub(crate) fn wait(
    word: &AtomicU32,
    expected: u32,
    deadline: Option<&Deadline>,
) -> Result<(), Errno> {
    let mut queue = KERNEL.0.lock().unwrap();
    if word.load(Ordering::Relaxed) != expected {
        return Err(Errno::AGAIN);
    }
    if deadline.is_some() {
        return Err(Errno::TIMEDOUT);
    }
    queue.last += 1;
    let me = queue.last;
    queue.sleepers.push((me, address(word)));
    while queue.sleepers.iter().any(|&(sleeper, _)| sleeper == me) {
        queue = KERNEL.1.wait(queue).unwrap();
    }
    Ok(())
}

pub(crate) fn wake_one(word: *const AtomicU32) {
    let mut queue = KERNEL.0.lock().unwrap();
    let first = queue
        .sleepers
        .iter()
        .position(|&(_, at)| at == address(word));
    if let Some(first) = first {
        queue.sleepers.remove(first);
        KERNEL.1.notify_all();
    }
}

pub(crate) fn has_sleepers(word: &AtomicU32, expected: u32) -> Result<bool, Errno> {
    let queue = KERNEL.0.lock().unwrap();
    if word.load(Ordering::Relaxed) != expected {
        return Err(Errno::AGAIN);
    }
    Ok(queue.sleepers.iter().any(|&(_, at)| at == address(word)))
}

/// The kernel's `handle_futex_death`, for words without priority inheritance.
pub(crate) fn owner_dies(word: &AtomicU32, owner: u32, pending: bool) {
    loop {
        // A read-modify-write, to see the newest value.
        let seen = word.fetch_or(0, Ordering::AcqRel);
        if pending && seen & TID_MASK == 0 {
            return wake_one(word);
        }
        if seen & TID_MASK != owner {
            return;
        }
        let left = seen & WAITERS | OWNER_DIED;
        let changed = word.compare_exchange(seen, left, Ordering::AcqRel, Ordering::Relaxed);
        if changed.is_ok() {
            if seen & WAITERS != 0 {
                wake_one(word);
            }
            return;
        }
    }
}
