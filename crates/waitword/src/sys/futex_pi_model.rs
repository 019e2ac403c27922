//! The kernel's priority-inheriting futexes as loom sees them: a queue for all words behind one mutex, each
//! waiter told apart, so that a hand-over reaches the one that it is for and nobody else.
//!
//! Priorities are not modelled: who came first is served first. A deadline has always passed.

use super::clock::{Clock, Deadline};
use super::moving_time::Time;
use super::tid::tid;
use crate::atomic::{AtomicU32, Ordering};
use crate::checker::sync::{Condvar, Mutex, MutexGuard};
use rustix::io::Errno;

const WAITERS: u32 = 0x8000_0000;
const OWNER_DIED: u32 = 0x4000_0000;
const TID_MASK: u32 = 0x3fff_ffff;

/// Who waits, and on the word at which address.
struct Waiter {
    tid: u32,
    address: usize,
}

crate::checker::lazy_static! {
    static ref KERNEL: (Mutex<Vec<Waiter>>, Condvar) = (Mutex::new(Vec::new()), Condvar::new());
    /// Which thread a signal has been sent to, of which it has not run the handler yet; 0: none.
    static ref SIGNALLED: Mutex<u32> = Mutex::new(0);
}

/// Sends a signal to a thread. Its handler interrupts only [`wait_requeue`].
pub(crate) fn signal(tid: u32) {
    let _waiters = KERNEL.0.lock().unwrap();
    *SIGNALLED.lock().unwrap() = tid;
    KERNEL.1.notify_all();
}

/// Runs the handler if a signal has come; whether one has.
fn handles_signal(tid: u32) -> bool {
    let mut signalled = SIGNALLED.lock().unwrap();
    let is_for_me = *signalled == tid;
    if is_for_me {
        *signalled = 0;
    }
    is_for_me
}

fn address(word: &AtomicU32) -> usize {
    (&raw const *word).addr()
}

/// Sleeps until no longer among the waiters, which is to say, until owner.
fn sleep(mut waiters: MutexGuard<'_, Vec<Waiter>>, me: u32) {
    while waiters.iter().any(|waiter| waiter.tid == me) {
        waiters = KERNEL.1.wait(waiters).unwrap();
    }
}

/// Makes `tid` the owner if there is none; otherwise marks the word. Whether it is the owner.
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
    take(word, tid(), contended)
        .then_some(())
        .ok_or(Errno::AGAIN)
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

pub(crate) fn wait_requeue(
    word: &AtomicU32,
    expected: u32,
    (time, _): (&Time, Clock),
    _: &AtomicU32,
    _: bool,
) -> Result<(), Errno> {
    let (me, address) = (tid(), address(word));
    loop {
        // Read before it stands in the queue, as in the kernel.
        let is_never = time.is_never();
        let mut waiters = KERNEL.0.lock().unwrap();
        if word.load(Ordering::Relaxed) != expected {
            return Err(Errno::AGAIN);
        }
        if !is_never {
            return Err(Errno::TIMEDOUT);
        }
        waiters.push(Waiter { tid: me, address });
        loop {
            let Some(mine) = waiters.iter().position(|waiter| waiter.tid == me) else {
                return Ok(());
            };
            if handles_signal(me) {
                let was_moved = waiters.remove(mine).address != address;
                if was_moved {
                    return Err(Errno::AGAIN);
                }
                // The call is restarted.
                break;
            }
            waiters = KERNEL.1.wait(waiters).unwrap();
        }
    }
}

/// # Safety
/// The mutex exists.
pub(crate) unsafe fn requeue(
    word: &AtomicU32,
    expected: u32,
    mutex: *const AtomicU32,
    others: u32,
    _: bool,
) -> Result<usize, Errno> {
    // SAFETY: the caller's promise.
    let mutex = unsafe { &*mutex };
    let mut waiters = KERNEL.0.lock().unwrap();
    if word.load(Ordering::Relaxed) != expected {
        return Err(Errno::AGAIN);
    }
    let mut count = 0;
    while count <= others as usize {
        let address_of_word = address(word);
        let found = waiters
            .iter()
            .position(|waiter| waiter.address == address_of_word);
        let Some(first) = found else { break };
        let waiter = waiters.remove(first);
        let address = address(mutex);
        let contended = waiters.iter().any(|waiter| waiter.address == address);
        if take(mutex, waiter.tid, contended) {
            KERNEL.1.notify_all();
        } else {
            waiters.push(Waiter { address, ..waiter });
        }
        count += 1;
    }
    Ok(count)
}
