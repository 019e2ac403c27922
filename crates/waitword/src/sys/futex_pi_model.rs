//! The kernel's priority-inheriting futexes for loom: one queue for all words, behind one mutex.
//! Waiters are distinguished, so that a hand-off reaches exactly the waiter it is for.
//!
//! Priorities are not modelled: waiters are served in order of arrival. Every deadline has already
//! passed.

use super::clock::Deadline;
use super::tid::tid;
use crate::atomic::{AtomicU32, Ordering};
use crate::checker::sync::{Condvar, Mutex, MutexGuard};
use crate::sys::Errno;

const WAITERS: u32 = 0x8000_0000;
const OWNER_DIED: u32 = 0x4000_0000;
const TID_MASK: u32 = 0x3fff_ffff;

/// A waiter's number, and the address of the word it waits on.
struct Waiter {
    tid: u32,
    address: usize,
}

crate::checker::lazy_static! {
    static ref KERNEL: (Mutex<Vec<Waiter>>, Condvar) = (Mutex::new(Vec::new()), Condvar::new());
}

fn address(word: &AtomicU32) -> usize {
    (&raw const *word).addr()
}

/// Sleeps until this thread is no longer among the waiters, that is, until it is the owner.
fn sleep(mut waiters: MutexGuard<'_, Vec<Waiter>>, me: u32) {
    while waiters.iter().any(|waiter| waiter.tid == me) {
        waiters = KERNEL.1.wait(waiters).unwrap();
    }
}

/// Makes `tid` the owner if there is none; otherwise marks the word. Returns whether it is the
/// owner.
fn take(word: &AtomicU32, tid: u32, contended: bool) -> bool {
    loop {
        let seen = word.load(Ordering::Relaxed);
        let (next, taken) = match seen & TID_MASK {
            0 if contended => (seen & OWNER_DIED | tid | WAITERS, true),
            0 => (seen & OWNER_DIED | tid, true),
            _ => (seen | WAITERS, false),
        };
        let changed = word.compare_exchange(seen, next, Ordering::AcqRel, Ordering::Relaxed);
        if changed.is_ok() {
            return taken;
        }
    }
}

pub(crate) fn lock(word: &AtomicU32, _: bool, deadline: Option<&Deadline>) -> Result<(), Errno> {
    let mut waiters = KERNEL.0.lock().unwrap();
    let (me, address) = (tid(), address(word));
    if word.load(Ordering::Relaxed) & TID_MASK == me {
        return Err(Errno::DEADLK);
    }
    let contended = waiters.iter().any(|waiter| waiter.address == address);
    if take(word, me, contended) {
        return Ok(());
    }
    if deadline.is_some() {
        return Err(Errno::TIMEDOUT);
    }
    waiters.push(Waiter { tid: me, address });
    sleep(waiters, me);
    Ok(())
}

pub(crate) fn try_lock(word: &AtomicU32, _: bool) -> Result<(), Errno> {
    let waiters = KERNEL.0.lock().unwrap();
    if word.load(Ordering::Relaxed) & TID_MASK != 0 {
        return Err(Errno::AGAIN);
    }
    let contended = waiters.iter().any(|waiter| waiter.address == address(word));
    take(word, tid(), contended).then_some(()).ok_or(Errno::AGAIN)
}

pub(crate) fn unlock(word: &AtomicU32, _: bool) -> Result<(), Errno> {
    let mut waiters = KERNEL.0.lock().unwrap();
    if word.load(Ordering::Relaxed) & TID_MASK != tid() {
        return Err(Errno::PERM);
    }
    let address = address(word);
    match waiters.iter().position(|waiter| waiter.address == address) {
        Some(first) => {
            let next = waiters.remove(first);
            word.swap(next.tid | WAITERS, Ordering::AcqRel);
            KERNEL.1.notify_all();
        }
        None => {
            word.swap(0, Ordering::AcqRel);
        }
    }
    Ok(())
}
