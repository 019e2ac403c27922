//! Private condvars: the waiters stand in our table, first under the condvar's address, then under the mutex's.
//!
//! ```text
//!   waiter                                   signaller
//!   ──────                                   ─────────
//!   lock bucket of the condvar               lock both buckets
//!     mutex ◄─ its address; queue              mutex held, or has a successor?
//!   unlock                                       yes: move the waiter to the mutex's queue, set PARKED
//!   unlock the mutex                             no:  unlink it, wake it; others (broadcast): move them
//!   sleep                                      nobody left? mutex ◄─ 0
//!   ...                                      unlock
//!   woken: take the mutex
//! ```
//!
//! # Why no signal is lost, and none goes to a later one (glibc bugs 25847 and 13165)
//!
//! The waiter is queued before it gives the mutex back, and the queue is in order of arrival under one lock. So whoever
//! changes the condition with the mutex held signals those, and only those, who came before, the oldest first; there are no
//! groups to switch and nothing to steal.
//!
//! # A deadline
//!
//! A waiter whose time is over looks, under the lock, where it stands. Still here: it leaves, and was not signalled.
//! Moved to the mutex, or claimed: it was signalled in time, the deadline no longer counts (nothing in the queue of a mutex may
//! leave it by a condvar's deadline), and it waits for the mutex.
//!
//! # After the signal
//!
//! Woken waiters do not touch the condvar: it may be freed as soon as all have been signalled. `mutex` is
//! changed under the bucket's lock only, by who queues, leaves or signals; while it is not 0 and somebody stands in the
//! queue, it is with that mutex, so that exists. (In a child of `fork` the queue is empty and `mutex` may be stale. So who
//! signals looks at the queue first, and who comes with another mutex sees to it that nobody is there.)
//!
//! # What another process may have written
//!
//! Whether a condvar is private stands in it, and so a process that shares its memory can make a process-shared one look private, and then
//! write any address into `mutex`. So a waiter says in its node, on its own stack, which mutex it goes to; a signaller follows
//! the address only if somebody stands here who says the same, and wakes or moves only those.
//!
//! # A mutex that stays held, or is not ours
//!
//! A waiter that holds a recursive mutex more than once must not be moved to the queue of a mutex that only itself can unlock;
//! and one that waits with somebody else's mutex (`wait_with`) has no queue to be moved to. While such a one is there
//! (KEPT), signals wake, and the mutex is not looked at.
//!
//! # How many are woken
//!
//! Of a mutex that is free one, or some, if lately those who were woken have had it at once (`mutex/extras.rs`); of one that is
//! held none: each needs the mutex, and would be woken only to wait. Nor does a broadcast wake anybody if the mutex has an
//! successor, which wakes them one by one; a signal does, since the successor may wait for a CPU for long.

use super::{BY_PRIORITY, KEPT, RawCondvar, Wakeup};
use crate::atomic::Ordering;
use crate::futex::parking::{self, Parked, Plan, Requeued, Token, Tokens};
use crate::lock::mutex::after_wait::Stands;
use crate::lock::mutex::waiter::{FromCondvar, Waiter};
use crate::lock::{LockError, RawPosixMutex, key_of, key_of_mutex_at};
use crate::park::Until;
use crate::private::{Choice, waiter_table};
use crate::stats::{self, Event};
use core::cell::Cell;

/// What the condvar is bound to while the caller waits with this mutex, which it holds.
fn binding(mutex: &RawPosixMutex) -> u64 {
    let kept = if mutex.is_held_more_than_once() {
        KEPT
    } else {
        0
    };
    core::ptr::from_ref(mutex).expose_provenance() as u64 | kept
}

fn from(condvar: &RawCondvar) -> FromCondvar {
    FromCondvar::at(core::ptr::from_ref(condvar).addr())
}

/// How a wait in the table ended.
pub(super) enum Ended {
    /// Signalled: what the mutex is told when it is taken again.
    Signalled(Token),
    TimedOut,
    /// Somebody asked for it, and no signal was spent on it.
    Interrupted,
    /// It did not begin, and `unlock` was not called: others wait here with another mutex.
    OtherMutex,
    /// It did not begin, and `unlock` was not called: this is a handler that interrupted this crate's own code.
    InHandler,
}

pub(super) fn wait(
    condvar: &RawCondvar,
    mutex: &RawPosixMutex,
    until: Until<'_>,
) -> Result<Wakeup, LockError> {
    mutex.check_owner()?;
    let unlock = || mutex.unlock_to_sleep(from(condvar));
    let ended = stand(condvar, binding(mutex), unlock, until);
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

/// Queues at the condvar, bound to `ours`, unlocks, and sleeps. The caller has the mutex; when this returns, it has not, if the
/// wait began.
pub(super) fn stand(condvar: &RawCondvar, ours: u64, unlock: impl Fn(), until: Until<'_>) -> Ended {
    let other_mutex = Cell::new(false);
    let unlocked = Cell::new(false);
    let parked = parking::park_bound_to(
        waiter_table(),
        key_of(condvar),
        (ours & !KEPT) as usize,
        Waiter::at_condvar(from(condvar)).entry(),
        until,
        || {
            // Relaxed, all of them: read and written under the bucket's lock.
            let theirs = match condvar.bound_to() {
                // Whoever waited last is gone: all who wait do so with the same mutex.
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
        |others_wait| {
            if !others_wait {
                condvar.mutex.store(0, Ordering::Relaxed);
            }
        },
    );
    if other_mutex.get() {
        return match forget_the_dead(condvar) {
            true => stand(condvar, ours, unlock, until),
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

/// Unbinds it if nobody stands here (but did in the process that this one was forked from); whether nobody does.
pub(super) fn forget_the_dead(condvar: &RawCondvar) -> bool {
    let mut nobody = false;
    parking::unpark(
        waiter_table(),
        key_of(condvar),
        |_| Choice::Stop,
        |unparked| {
            nobody = !unparked.more;
            if nobody && condvar.bound_to() & BY_PRIORITY == 0 {
                condvar.mutex.store(0, Ordering::Relaxed);
            }
            0
        },
    );
    nobody
}

/// Signals up to `count`; how many. `None`, and nobody is signalled, if it is bound to something else by now.
pub(super) fn notify(condvar: &RawCondvar, bound_to: u64, count: usize) -> Option<usize> {
    let address = (bound_to & !KEPT) as usize;
    let mutex = core::ptr::with_exposed_provenance::<RawPosixMutex>(address);
    let still = Cell::new(false);
    let accepted = Cell::new(false);
    let moves = Cell::new(false);
    // Whether the first is a real-time thread. If it is not, none of them is.
    let real_time = Cell::new(false);
    let mutex = || {
        // SAFETY: under the bucket's lock, with somebody standing here who is bound to this mutex and says so in its own node (what
        // stands in the condvar may be from a process that shares its memory), it exists (and they keep it).
        unsafe { &*mutex }
    };
    let plan = |first| {
        still.set(condvar.bound_to() == bound_to);
        if !still.get() {
            return Plan { wake: 0, moved: 0 };
        }
        if bound_to & KEPT != 0 || !matches!(mutex().waiters_stand(), Stands::InTable) {
            // Nor can those of a mutex be moved whose waiters stand in the kernel.
            return Plan {
                wake: count,
                moved: 0,
            };
        }
        moves.set(true);
        real_time.set(Waiter(first).is_real_time());
        accepted.set(mutex().accept_waiters(real_time.get(), count > 1));
        let wake = match accepted.get() {
            true => 0,
            false if real_time.get() => 1,
            false => mutex().best_woken().min(count),
        };
        Plan {
            wake,
            moved: count - wake,
        }
    };
    let change = |requeued: Requeued| {
        // With nobody here there was no plan.
        let is_bound = still.get() || condvar.bound_to() == bound_to;
        if is_bound && !requeued.more {
            condvar.mutex.store(0, Ordering::Relaxed);
        }
        if moves.get() && !accepted.get() && requeued.woken > 0 {
            return mutex().accept_waiters_of_woken(requeued.moved > 0, real_time.get());
        }
        Tokens::from(0)
    };
    let requeued = parking::unpark_requeue(
        waiter_table(),
        key_of(condvar),
        (address, key_of_mutex_at(address)),
        plan,
        change,
    );
    if count > 1 && requeued.moved > 0 {
        stats::count(Event::HerdsAvoided);
        stats::count_many(Event::HerdWaiters, requeued.moved);
    }
    still.get().then_some(requeued.woken + requeued.moved)
}
