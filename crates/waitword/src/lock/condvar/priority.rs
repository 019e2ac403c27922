//! Private condvars with a priority-inheriting mutex: waiters sleep in the kernel on `sequence`, and a signal moves
//! them to the mutex there (FUTEX_WAIT_REQUEUE_PI, FUTEX_CMP_REQUEUE_PI). So a signalled waiter lends its priority to
//! whoever holds the mutex, and the waiters of a broadcast get it in the order of their priorities.
//!
//! ```text
//!   waiter                                   signaller
//!   ──────                                   ─────────
//!   mutex ◄─ its address; BY_PRIORITY        sequence += 1
//!   seen = sequence                          FUTEX_CMP_REQUEUE_PI(sequence → mutex)
//!   unlock the mutex
//!   FUTEX_WAIT_REQUEUE_PI(sequence, seen → mutex)
//! ```
//!
//! A signal between the unlock and the wait has changed the sequence: the wait ends at once, as if woken. (It
//! would have to be signalled exactly 2^32 times in between to be missed.)
//!
//! Nobody counts those who wait, since a waiter that was signalled must not touch the condvar any more. So from the first
//! wait with such a mutex on, a signal makes a system call whether or not somebody waits, with the address of a
//! mutex that need not exist any more: the kernel looks at that only if somebody waits, and then it does.

use super::{BY_PRIORITY, RawCondvar};
use crate::atomic::{AtomicU32, Ordering};
use crate::futex::Scope;
use crate::lock::pi::{self, CondWait};
use crate::lock::{LockError, RawMutex};
use crate::sys::clock::Deadline;

pub(super) fn wait(
    condvar: &RawCondvar,
    mutex: &RawMutex,
    word: &AtomicU32,
    scope: Scope,
    deadline: Option<&Deadline>,
) -> Result<(), LockError> {
    mutex.check_owner()?;
    if scope == Scope::Shared {
        return super::shared::wait(condvar, mutex, deadline);
    }
    // Relaxed: with the mutex held, as whoever signals has held it since, if it is to find this waiter.
    let address = core::ptr::from_ref(word).expose_provenance() as u64;
    condvar.mutex.store(address, Ordering::Relaxed);
    if condvar.traits.load(Ordering::Relaxed) & BY_PRIORITY == 0 {
        condvar.traits.fetch_or(BY_PRIORITY, Ordering::Relaxed);
    }
    let seen = condvar.sequence.load(Ordering::Relaxed);
    mutex.unlock_to_sleep();
    let result = match pi::wait_requeue_pi(&condvar.sequence, seen, deadline, word, scope) {
        CondWait::Locked(_) => return Ok(()),
        CondWait::Changed | CondWait::Interrupted => Ok(()),
        CondWait::TimedOut => Err(LockError::TimedOut),
        CondWait::Failed(error) => Err(error.into()),
    };
    // A mutex with an owner can fail to be locked; then that is what the caller must hear of.
    mutex.lock_checked().and(result)
}

/// Signals up to `count`; how many.
pub(super) fn notify(condvar: &RawCondvar, count: usize) -> usize {
    let address = condvar.mutex.load(Ordering::Relaxed);
    let word = core::ptr::with_exposed_provenance::<AtomicU32>(address as usize);
    // Release: a waiter that finds it changed comes back with what was done before.
    let expected = condvar
        .sequence
        .fetch_add(1, Ordering::Release)
        .wrapping_add(1);
    let others = u32::try_from(count - 1).unwrap_or(u32::MAX);
    // SAFETY: the address is handed to the kernel, which follows it only if somebody waits with that mutex.
    let signalled =
        unsafe { pi::requeue_pi_at(&condvar.sequence, expected, word, others, Scope::Private) };
    // What can fail is the mutex, which its waiters will hear of when they lock it.
    signalled.unwrap_or(0)
}
