//! Private condvars with a priority-inheriting mutex: waiters sleep in the kernel (`counted.rs`), a
//! signal wakes one, and the woken thread locks the mutex.
//!
//! # Priorities
//!
//! The kernel wakes the waiter of the highest priority first, and the oldest among equals. The
//! waiter runs as soon as its priority allows. It then asks for the mutex and lends its priority to
//! the holder. No lock of ours lies on that path which a low-priority thread could hold without
//! inheriting. (The internal lock of glibc's condition variables was such a lock: glibc bug 11588.)
//! That is why these waiters are not queued in our waiter table.
//!
//! # Why a signal does not hand the mutex off
//!
//! The kernel can also move a waiter to the mutex without waking it (FUTEX_CMP_REQUEUE_PI). This
//! was tried here and took up to three times as long. With it, a signal gives a free mutex to a
//! sleeping thread. Until that thread has a CPU, no other thread can take the mutex. All threads
//! that arrive meanwhile sleep too, and each is handed the mutex by a system call, with a switch
//! for every critical section. A broadcast to 64 waiters with the mutex free took 2 switches per
//! thread; now it takes 1. Requeueing took fewer switches only with the mutex held (2 instead of
//! 3). Threads without a real-time priority are served in order of arrival either way.

use super::counted::{Sleep, signal};
use super::private;
use super::word::{BY_PRIORITY, RawCondvar, Waited, Wakeup};
use crate::atomic::{AtomicU32, Ordering};
use crate::lock::interrupter::Interrupter;
use crate::lock::kernel_wait::Slept;
use crate::lock::mutex::waiter::FromCondvar;
use crate::lock::pi::{Acquired, PiError};
use crate::lock::{LockError, RawPosixMutex};
use crate::record::{self, Object};
use crate::sys::clock::Deadline;

pub(super) fn wait(
    condvar: &RawCondvar,
    mutex: &RawPosixMutex,
    deadline: Option<&Deadline>,
    by: Option<&Interrupter>,
) -> Waited {
    if let Err(error) = mutex.check_owner().and_then(|()| bind(condvar)) {
        return Waited::clean(Err(error));
    }
    let sleep = Sleep::begin(&condvar.sequence);
    mutex.unlock_to_sleep(FromCondvar::ELSEWHERE);
    let (address, has_deadline) = (condvar.address(), deadline.is_some());
    let slept = record::waiting(Object::Condvar, address, has_deadline, || {
        match sleep.sleep(deadline, by) {
            Slept::Woken => Ok(()),
            ended => Err(ended),
        }
    });
    let slept = slept.map_or_else(|ended| ended, |()| Slept::Woken);
    let ended = match slept {
        Slept::Woken => Ok(Wakeup::Signalled),
        Slept::Interrupted => Ok(Wakeup::Interrupted),
        Slept::TimedOut => Err(LockError::TimedOut),
        // An error other than that of the deadline must mean that the mutex is not held.
        Slept::Failed(refused) => return Waited::NotHeld(PiError::from(refused).into()),
    };
    // A recursive mutex may have stayed held.
    let locked = match mutex.take_level_back() {
        true => Ok(Acquired::Clean),
        false => mutex.lock_pi(None),
    };
    match locked {
        Ok(acquired) => Waited::Held { owner_died: acquired == Acquired::OwnerDied, ended },
        Err(error) => Waited::NotHeld(error),
    }
}

/// Records that waiters sleep in the kernel.
fn bind(condvar: &RawCondvar) -> Result<(), LockError> {
    loop {
        let theirs = condvar.bound_to();
        if theirs == BY_PRIORITY {
            return Ok(());
        }
        if theirs != 0 {
            // A waiter in the table relies on the value that it has written.
            if !private::unbind_if_empty(condvar) {
                return Err(LockError::Invalid);
            }
            continue;
        }
        // Relaxed: published by the mutex. A signal that must find this waiter comes from a thread
        // that has held the mutex since.
        let (free, ours) = (0, BY_PRIORITY);
        let bound =
            condvar.mutex.compare_exchange(free, ours, Ordering::Relaxed, Ordering::Relaxed);
        if bound.is_ok() {
            // The first wait. Relaxed: as above.
            condvar.sequence.fetch_add(unlikely(), Ordering::Relaxed);
        }
    }
}

/// Returns a different number each time, for 2^32 calls.
fn unlikely() -> u32 {
    /// 2^32 divided by the golden ratio: far from all numbers before.
    const APART: u32 = 0x9e37_79b9;
    static LAST: AtomicU32 = AtomicU32::new(0);
    LAST.fetch_add(APART, Ordering::Relaxed).wrapping_add(APART)
}

/// Signals up to `count` waiters. Returns how many.
pub(super) fn notify(condvar: &RawCondvar, count: usize) -> usize {
    signal(&condvar.sequence, count)
}
