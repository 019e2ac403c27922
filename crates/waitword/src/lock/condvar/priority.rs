//! Private condvars with a priority-inheriting mutex: waiters sleep in the kernel (`counted.rs`), a
//! signal wakes, and a woken thread takes the mutex.
//!
//! # Priorities
//!
//! The kernel wakes the waiter of the highest priority first, and of equal ones the oldest. It runs
//! as soon as its priority lets it, asks for the mutex, and from then on lends its priority to the
//! holder. No lock of ours stands on that way, which a thread of low priority could hold without
//! inheriting. (The internal lock of glibc's condition variables was such a one: its bug 11588.)
//! That is why these waiters do not stand in our table.
//!
//! # Why a signal does not hand the mutex over
//!
//! The kernel can also move a waiter to the mutex without waking it (FUTEX_CMP_REQUEUE_PI). This
//! was done here, and took up to three times as long. A signal then gives a free mutex to a thread
//! that sleeps. Until that thread has a CPU no other can have the mutex: all that come meanwhile
//! sleep too, and each of them is handed it by a system call, with a switch for every section. A
//! broadcast to 64 waiters with the mutex free took 2 switches a thread, and takes 1. Only with the
//! mutex held it took fewer (2, and takes 3). Threads without a real-time priority are served in
//! order of arrival either way.

use super::counted::{Sleep, Slept, signal};
use super::{BY_PRIORITY, RawCondvar, Waited, Wakeup, table};
use crate::atomic::{AtomicU32, Ordering};
use crate::lock::interrupter::Interrupter;
use crate::lock::mutex::waiter::FromCondvar;
use crate::lock::pi::{Acquired, PiError};
use crate::lock::{LockError, RawPosixMutex};
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
    let slept = sleep.sleep(deadline, by);
    let ended = match slept {
        Slept::Woken => Ok(Wakeup::Signalled),
        Slept::Interrupted => Ok(Wakeup::Interrupted),
        Slept::TimedOut => Err(LockError::TimedOut),
        // So that an error other than of the deadline means that the mutex is not held.
        Slept::Failed(refused) => return Waited::NotHeld(PiError::from(refused).into()),
    };
    // A recursive one may have stayed held.
    let locked = match mutex.take_level_back() {
        true => Ok(Acquired::Clean),
        false => mutex.lock_pi(None),
    };
    match locked {
        Ok(acquired) => Waited::Held {
            owner_died: acquired == Acquired::OwnerDied,
            ended,
        },
        Err(error) => Waited::NotHeld(error),
    }
}

/// Says that waiters stand in the kernel.
fn bind(condvar: &RawCondvar) -> Result<(), LockError> {
    loop {
        let theirs = condvar.bound_to();
        if theirs == BY_PRIORITY {
            return Ok(());
        }
        if theirs != 0 {
            // A waiter in the table relies on what it has written.
            if !table::forget_the_dead(condvar) {
                return Err(LockError::Invalid);
            }
            continue;
        }
        // Relaxed: the mutex makes it known. A signal that must find this waiter comes from a
        // thread that has held it since.
        let (free, ours) = (0, BY_PRIORITY);
        let bound =
            condvar
                .mutex
                .compare_exchange(free, ours, Ordering::Relaxed, Ordering::Relaxed);
        if bound.is_ok() {
            // The first wait. Relaxed: as above.
            condvar.sequence.fetch_add(unlikely(), Ordering::Relaxed);
        }
    }
}

/// A number that is another one each time, of the next 2^32.
fn unlikely() -> u32 {
    /// 2^32 over the golden ratio: far from all numbers before.
    const APART: u32 = 0x9e37_79b9;
    static LAST: AtomicU32 = AtomicU32::new(0);
    LAST.fetch_add(APART, Ordering::Relaxed).wrapping_add(APART)
}

/// Signals up to `count` of those who wait; how many.
pub(super) fn notify(condvar: &RawCondvar, count: usize) -> usize {
    signal(&condvar.sequence, count)
}
