//! Private condvars: waiters queue in our waiter table, first under the condvar's address, then
//! under the mutex's.
//!
//! ```text
//!   waiter                                   signaller
//!   ──────                                   ─────────
//!   lock the condvar's bucket                lock both buckets
//!     mutex ◄─ its address; queue              mutex held, or (broadcast) has a successor?
//!   unlock the bucket                            yes: move the waiter(s) to the mutex, set PARKED
//!   unlock the mutex                             no:  unlink one, wake it; move the rest
//!   sleep                                      queue empty? mutex ◄─ 0
//!   ...                                      unlock the buckets
//!   woken: lock the mutex
//! ```
//!
//! # Why no signal is lost or taken by a later waiter (glibc bugs 25847 and 13165)
//!
//! The waiter is queued before it unlocks the mutex. The queue is in order of arrival (real-time
//! threads first) under one lock. So a thread that changes the condition with the mutex held
//! signals exactly the waiters that came before, in that order. There are no groups to switch and
//! no signals to steal.
//!
//! # Deadlines
//!
//! A waiter that times out looks, under the lock, where it is queued. If it is still here, it
//! leaves and was not signalled. If it was moved to the mutex or claimed, it was signalled in time:
//! the deadline no longer counts, and it waits for the mutex. (A waiter in a mutex's queue must not
//! leave that queue because of a condvar's deadline.)
//!
//! # After the signal
//!
//! Woken waiters do not touch the condvar, so it may be freed as soon as all have been signalled.
//! `mutex` changes only under the bucket lock, when a thread queues, leaves or signals. While it is
//! not 0 and a waiter is queued, that waiter waits with this mutex, so the mutex exists. (In a
//! child of `fork` the queue is empty and `mutex` may be stale. So a signaller looks at the queue
//! first, and a thread that waits with another mutex checks that the queue is empty.)
//!
//! # Values that another process may have written
//!
//! Whether a condvar is private is recorded in the condvar itself. A process that shares its memory
//! can make a process-shared one look private and write any address into `mutex`. So a waiter
//! records in its node, on its own stack, which mutex it waits with. A signaller follows the
//! address only if a waiter is queued here whose node holds the same address, and it wakes or moves
//! only those waiters.
//!
//! # A mutex that stays held, or is not ours
//!
//! A waiter that holds a recursive mutex more than once must not be moved to the queue of that
//! mutex, which only it can unlock. A waiter with another library's mutex (`wait_with`) has no
//! queue to be moved to. While such a waiter may be queued (KEPT), signals wake, and the mutex is
//! not looked at.
//!
//! # How many are woken
//!
//! If the mutex is free, one waiter is woken; or a few, if woken waiters have recently got the
//! mutex at once (`mutex/policy/wakes.rs`). If it is held, none is woken: each needs the mutex and
//! would be woken only to wait. A broadcast also wakes no waiter if the mutex has a successor,
//! which then wakes them one by one. A signal still does, since the successor may wait for a CPU
//! for a long time.

use super::word::{BY_PRIORITY, KEPT, RawCondvar, Wakeup};
use crate::atomic::Ordering;
use crate::futex::parking::{self, Parked, Plan, Request, Requeued, Token, Tokens};
use crate::lock::mutex::after_wait::Stands;
use crate::lock::mutex::waiter::{FromCondvar, Waiter};
use crate::lock::{LockError, RawPosixMutex, key_of, key_of_mutex_at};
use crate::park::Until;
use crate::private::Choice;
use crate::stats::{self, Event};
use core::cell::Cell;

/// The value that the condvar is bound to while the caller waits with this mutex, which it holds.
fn binding(mutex: &RawPosixMutex) -> u64 {
    let kept = if mutex.is_held_more_than_once() { KEPT } else { 0 };
    core::ptr::from_ref(mutex).expose_provenance() as u64 | kept
}

fn from(condvar: &RawCondvar) -> FromCondvar {
    FromCondvar::at(core::ptr::from_ref(condvar).addr())
}

/// How a wait in the table ended.
pub(super) enum Ended {
    /// Signalled. The token is passed to the mutex when it is locked again.
    Signalled(Token),
    TimedOut,
    /// Another thread interrupted the wait. No signal was consumed.
    Interrupted,
    /// The wait did not begin, and `unlock` was not called: threads wait here with another mutex.
    OtherMutex,
    /// The wait did not begin, and `unlock` was not called: this is a handler that interrupted this
    /// crate's own code.
    InHandler,
}

pub(super) fn wait(
    condvar: &RawCondvar,
    mutex: &RawPosixMutex,
    until: Until<'_>,
) -> Result<Wakeup, LockError> {
    mutex.check_owner()?;
    let unlock = || mutex.unlock_to_sleep(from(condvar));
    let ended = wait_in_table(condvar, binding(mutex), unlock, until);
    let (token, result) = match ended {
        Ended::Signalled(token) => (token, Ok(Wakeup::Signalled)),
        Ended::TimedOut => (0, Err(LockError::TimedOut)),
        Ended::Interrupted => (0, Ok(Wakeup::Interrupted)),
        Ended::InHandler => return Ok(Wakeup::Interrupted),
        Ended::OtherMutex => return Err(LockError::Invalid),
    };
    mutex.lock_after_wait(token);
    result
}

/// Queues at the condvar, bound to `ours`, calls `unlock`, and sleeps. The caller holds the mutex.
/// It no longer does when this returns, if the wait began.
pub(super) fn wait_in_table(
    condvar: &RawCondvar,
    ours: u64,
    unlock: impl Fn(),
    until: Until<'_>,
) -> Ended {
    let other_mutex = Cell::new(false);
    let unlocked = Cell::new(false);
    let waiter = Waiter::at_condvar(from(condvar)).entry();
    let request = Request::new(key_of(condvar), waiter, until).bound_to((ours & !KEPT) as usize);
    let parked = parking::park(
        request,
        || {
            // Relaxed, all of them: read and written under the bucket lock.
            let theirs = match condvar.bound_to() {
                // Those waiters are gone: all threads that wait at the same time use the same
                // mutex.
                by_priority if by_priority & BY_PRIORITY != 0 => 0,
                theirs => theirs,
            };
            other_mutex.set(theirs != 0 && (theirs ^ ours) & !KEPT != 0);
            if !other_mutex.get() {
                condvar.mutex.store(theirs | ours, Ordering::Relaxed);
            }
            !other_mutex.get()
        },
        || {
            unlocked.set(true);
            unlock();
        },
        |queue| {
            if !queue.has_waiters() {
                condvar.mutex.store(0, Ordering::Relaxed);
            }
        },
    );
    if other_mutex.get() {
        return match unbind_if_empty(condvar) {
            true => wait_in_table(condvar, ours, unlock, until),
            false => Ended::OtherMutex,
        };
    }
    if !unlocked.get() {
        return Ended::InHandler;
    }
    match parked {
        Parked::Woken(token) => Ended::Signalled(token),
        Parked::TimedOut => Ended::TimedOut,
        Parked::Interrupted | Parked::Invalid => Ended::Interrupted,
    }
}

/// Unbinds the condvar if no waiter is queued here, as in a forked child whose parent had waiters.
/// Returns whether the queue is empty.
pub(super) fn unbind_if_empty(condvar: &RawCondvar) -> bool {
    let mut is_empty = false;
    parking::unpark(
        key_of(condvar),
        |_| Choice::Stop,
        |unparked| {
            is_empty = !unparked.more;
            if is_empty && condvar.bound_to() & BY_PRIORITY == 0 {
                condvar.mutex.store(0, Ordering::Relaxed);
            }
            0
        },
    );
    is_empty
}

/// Signals up to `count` waiters. Returns how many, or `None` without signalling any if the condvar
/// is bound to something else by now.
pub(super) fn notify(condvar: &RawCondvar, bound_to: u64, count: usize) -> Option<usize> {
    let address = (bound_to & !KEPT) as usize;
    let mutex = core::ptr::with_exposed_provenance::<RawPosixMutex>(address);
    let still = Cell::new(false);
    let accepted = Cell::new(false);
    let moves = Cell::new(false);
    // Whether the first waiter is a real-time thread. If it is not, none of them is.
    let real_time = Cell::new(false);
    let mutex = || {
        // SAFETY: called under the bucket lock. A waiter that is bound to this mutex is queued
        // here, or was just taken out or moved and cannot have woken yet: its own node records the
        // address. (The condvar's value alone may be from a process that shares its memory.) That
        // waiter is still in its wait and keeps the mutex alive.
        unsafe { &*mutex }
    };
    let plan = |first| {
        still.set(condvar.bound_to() == bound_to);
        if !still.get() {
            return Plan { wake: 0, moved: 0 };
        }
        if bound_to & KEPT != 0 || !matches!(mutex().waiters_stand(), Stands::InTable) {
            // Nor can waiters be moved to a mutex whose waiters sleep in the kernel.
            return Plan { wake: count, moved: 0 };
        }
        moves.set(true);
        real_time.set(Waiter(first).is_real_time());
        accepted.set(mutex().accept_waiters(real_time.get(), count > 1));
        let wake = match accepted.get() {
            true => 0,
            false if real_time.get() => 1,
            false => mutex().best_woken().min(count),
        };
        Plan { wake, moved: count - wake }
    };
    let change = |requeued: Requeued| {
        // Without a waiter, `plan` was not called.
        let is_bound = still.get() || condvar.bound_to() == bound_to;
        if is_bound && !requeued.more {
            condvar.mutex.store(0, Ordering::Relaxed);
        }
        if moves.get() && !accepted.get() && requeued.woken > 0 {
            return mutex().accept_waiters_of_woken(requeued.moved > 0, real_time.get());
        }
        Tokens::from(0)
    };
    let requeued =
        parking::unpark_requeue(key_of(condvar), (address, key_of_mutex_at(address)), plan, change);
    if count > 1 && requeued.moved > 0 {
        stats::count(Event::HerdsAvoided);
        stats::count_many(Event::HerdWaiters, requeued.moved);
    }
    still.get().then_some(requeued.woken + requeued.moved)
}
