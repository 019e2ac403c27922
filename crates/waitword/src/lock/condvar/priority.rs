//! Private condvars with a priority-inheriting mutex: waiters sleep in the kernel on `sequence`, and a signal moves
//! them to the mutex there (FUTEX_WAIT_REQUEUE_PI, FUTEX_CMP_REQUEUE_PI). So a signalled waiter lends its priority to
//! whoever holds the mutex, and the waiters of a broadcast get it in the order of their priorities.
//!
//! ```text
//!   waiter                                   signaller
//!   ──────                                   ─────────
//!   mutex ◄─ its address | BY_PRIORITY       sequence += 1
//!   seen = sequence                          FUTEX_CMP_REQUEUE_PI(sequence → mutex)
//!   unlock the mutex
//!   FUTEX_WAIT_REQUEUE_PI(sequence, seen → mutex)
//! ```
//!
//! A signal between the unlock and the wait has changed the sequence: the wait ends at once, as if woken. (It
//! would have to be signalled exactly 2^32 times in between to be missed.)
//!
//! # Memory
//!
//! A waiter that was signalled between its unlock and its wait looks at the sequence once more, in the kernel, when the
//! condvar may have been freed already. It must not fall asleep there for whatever has become of the memory: so
//! the sequence begins at a number that no other is likely to hold (a new condvar's is zero), and memory that is not
//! there any more means the same as a sequence that has changed.
//!
//! # Who waits
//!
//! Nobody counts those who wait, since a waiter that was signalled must not touch the condvar any more. So from the first
//! wait with such a mutex on, a signal makes a system call whether or not somebody waits, with the address of a
//! mutex that need not exist any more: the kernel looks at that only if somebody waits, and then it does.

use super::{BETWEEN_PROCESSES, BY_PRIORITY, RawCondvar, Wakeup, table};
use crate::atomic::{AtomicU32, Ordering};
use crate::futex::Scope;
use crate::lock::interrupter::Interrupter;
use crate::lock::pi::{self, CondWait, PiError};
use crate::lock::{LockError, RawMutex};
use crate::sys::Errno;
use crate::sys::clock::Deadline;

const EFAULT: i32 = Errno::FAULT.raw_os_error();

pub(super) fn wait(
    condvar: &RawCondvar,
    mutex: &RawMutex,
    word: &AtomicU32,
    scope: Scope,
    deadline: Option<&Deadline>,
    by: Option<&Interrupter>,
) -> Result<Wakeup, LockError> {
    mutex.check_owner()?;
    if mutex.is_held_more_than_once() {
        // The kernel would refuse to move it to a mutex that it holds, and every later signal with it.
        return Err(LockError::Invalid);
    }
    bind(condvar, word, scope)?;
    // Acquire: a signal that has changed it comes with what was done before.
    let seen = condvar.sequence.load(Ordering::Acquire);
    mutex.unlock_to_sleep();
    // From here on it touches the condvar only in the kernel, by its address.
    let waited = pi::wait_requeue_pi(&condvar.sequence, seen, deadline, by, word, scope);
    let result = match waited {
        CondWait::Locked(_) => return Ok(Wakeup::Signalled),
        CondWait::Interrupted if by.is_some_and(Interrupter::is_interrupted) => {
            Ok(Wakeup::Interrupted)
        }
        CondWait::Changed | CondWait::Interrupted => Ok(Wakeup::Signalled),
        CondWait::TimedOut => Err(LockError::TimedOut),
        // The condvar is gone, and so the caller was signalled. (That its mutex is not, is seen next.)
        CondWait::Failed(PiError::Kernel(EFAULT)) => Ok(Wakeup::Signalled),
        CondWait::Failed(error) => Err(error.into()),
    };
    // A mutex with an owner can fail to be locked; then that is what the caller must hear of.
    mutex.lock_checked().and(result)
}

/// Says with which mutex the caller is about to wait.
fn bind(condvar: &RawCondvar, word: &AtomicU32, scope: Scope) -> Result<(), LockError> {
    let between_processes = match scope {
        Scope::Private => 0,
        Scope::Shared => BETWEEN_PROCESSES,
    };
    let address = core::ptr::from_ref(word).expose_provenance() as u64;
    let ours = address | between_processes | BY_PRIORITY;
    let mut theirs = condvar.bound_to();
    while theirs != ours {
        if theirs != 0 && theirs & BY_PRIORITY == 0 {
            // Those in the table are sure to find what they have written.
            if !table::forget_the_dead(condvar) {
                return Err(LockError::Invalid);
            }
            theirs = condvar.bound_to();
            continue;
        }
        // Relaxed: with the mutex held, as whoever signals has held it since, if it is to find this waiter.
        let bound =
            condvar
                .mutex
                .compare_exchange(theirs, ours, Ordering::Relaxed, Ordering::Relaxed);
        match bound {
            Ok(_) => {
                // Whoever waits by an earlier mutex still, which is not allowed, wakes up for no reason.
                condvar.sequence.fetch_add(unlikely(), Ordering::Relaxed);
                return Ok(());
            }
            Err(now) => theirs = now,
        }
    }
    Ok(())
}

/// A number that is another one each time, of the next 2^32.
fn unlikely() -> u32 {
    /// 2^32 over the golden ratio: far from all numbers before.
    const APART: u32 = 0x9e37_79b9;
    static LAST: AtomicU32 = AtomicU32::new(0);
    LAST.fetch_add(APART, Ordering::Relaxed).wrapping_add(APART)
}

/// Signals up to `count` of those who wait as `bound_to` says; how many.
pub(super) fn notify(condvar: &RawCondvar, bound_to: u64, count: usize) -> usize {
    let scope = match bound_to & BETWEEN_PROCESSES {
        0 => Scope::Private,
        _ => Scope::Shared,
    };
    let address = bound_to & !(BETWEEN_PROCESSES | BY_PRIORITY);
    let word = core::ptr::with_exposed_provenance::<AtomicU32>(address as usize);
    // Release: a waiter that finds it changed comes back with what was done before.
    let expected = condvar
        .sequence
        .fetch_add(1, Ordering::Release)
        .wrapping_add(1);
    let others = u32::try_from(count - 1).unwrap_or(u32::MAX);
    // SAFETY: the address is handed to the kernel, which follows it only if somebody waits with that mutex.
    let signalled = unsafe { pi::requeue_pi_at(&condvar.sequence, expected, word, others, scope) };
    // What can fail is the mutex, which its waiters will hear of when they lock it.
    signalled.unwrap_or(0)
}
