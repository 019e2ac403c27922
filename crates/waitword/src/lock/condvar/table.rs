//! Private condvars: the waiters stand in our table, first under the condvar's address, then under the mutex's.
//!
//! ```text
//!   waiter                                   signaller
//!   ──────                                   ─────────
//!   lock bucket of the condvar               lock both buckets
//!     mutex ◄─ its address; queue              mutex held, or has an heir?
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
//! changed under the bucket's lock only, by who queues, leaves or signals; while it is not 0, somebody waits with that mutex, so it exists.
//!
//! # How many are woken
//!
//! One, of a mutex that is free, and none of one that is held: each needs the mutex, so a second one would be woken only to
//! wait. (Tried: as many as there are CPUs. See ARCHITECTURE.md.)

use super::RawCondvar;
use crate::atomic::Ordering;
use crate::futex::parking::{self, Parked, Plan, Requeued};
use crate::lock::mutex::after_wait::Stands;
use crate::lock::mutex::waiter::{Moment, Waiter};
use crate::lock::{LockError, RawMutex, key_of, key_of_mutex_at};
use crate::private::repository;
use crate::sys::clock::Deadline;
use core::cell::Cell;

fn address(mutex: &RawMutex) -> u64 {
    core::ptr::from_ref(mutex).expose_provenance() as u64
}

pub(super) fn wait(
    condvar: &RawCondvar,
    mutex: &RawMutex,
    deadline: Option<&Deadline>,
) -> Result<(), LockError> {
    let ours = address(mutex);
    let other_mutex = Cell::new(false);
    let unlocked = Cell::new(false);
    mutex.check_owner()?;
    let parked = parking::park(
        repository(),
        key_of(condvar),
        Waiter::since(Moment::now()).0,
        deadline,
        || {
            // Relaxed, all of them: read and written under the bucket's lock.
            let theirs = condvar.bound_to();
            other_mutex.set(theirs != 0 && theirs != ours);
            condvar.mutex.store(ours, Ordering::Relaxed);
            if other_mutex.get() {
                condvar.mutex.store(theirs, Ordering::Relaxed);
            }
            !other_mutex.get()
        },
        || {
            unlocked.set(true);
            mutex.unlock_to_sleep();
        },
        |others_wait| {
            if !others_wait {
                condvar.mutex.store(0, Ordering::Relaxed);
            }
        },
    );
    if other_mutex.get() {
        return Err(LockError::Invalid);
    }
    if !unlocked.get() {
        // It could not wait, from a handler that interrupted this crate's own code.
        return Ok(());
    }
    match parked {
        Parked::Woken(token) => {
            mutex.lock_after_wait(token);
            Ok(())
        }
        Parked::TimedOut => {
            mutex.lock_after_wait(0);
            Err(LockError::TimedOut)
        }
        // A signal handler ran: POSIX has such a wait return for no reason, or go on.
        Parked::Interrupted | Parked::Invalid => {
            mutex.lock_after_wait(0);
            Ok(())
        }
    }
}

/// Signals up to `count`; how many.
pub(super) fn notify(condvar: &RawCondvar, count: usize) -> usize {
    loop {
        let mutex = condvar.bound_to();
        if mutex == 0 {
            return 0;
        }
        if let Some(signalled) = notify_waiters_of(condvar, mutex, count) {
            return signalled;
        }
    }
}

/// The same, if those who wait do so with the mutex of that address.
fn notify_waiters_of(condvar: &RawCondvar, address: u64, count: usize) -> Option<usize> {
    let mutex = core::ptr::with_exposed_provenance::<RawMutex>(address as usize);
    let still = Cell::new(false);
    let accepted = Cell::new(false);
    let moves = Cell::new(false);
    let mutex = || {
        // SAFETY: under the bucket's lock, with somebody waiting with this mutex, it exists (and the waiters keep it).
        unsafe { &*mutex }
    };
    let plan = || {
        still.set(condvar.bound_to() == address);
        if !still.get() {
            return Plan { wake: 0, moved: 0 };
        }
        if !matches!(mutex().waiters_stand(), Stands::InTable) {
            // Those of a mutex whose waiters stand in the kernel cannot be moved there.
            return Plan {
                wake: count,
                moved: 0,
            };
        }
        moves.set(true);
        accepted.set(mutex().accept_waiters());
        let wake = usize::from(!accepted.get());
        Plan {
            wake,
            moved: count - wake,
        }
    };
    let change = |requeued: Requeued| {
        if !still.get() {
            return 0;
        }
        if !requeued.more {
            condvar.mutex.store(0, Ordering::Relaxed);
        }
        if moves.get() && !accepted.get() && requeued.woken > 0 {
            return mutex().accept_waiters_of_woken(requeued.moved > 0);
        }
        0
    };
    let requeued = parking::unpark_requeue(
        repository(),
        key_of(condvar),
        key_of_mutex_at(address as usize),
        plan,
        change,
    );
    still.get().then_some(requeued.woken + requeued.moved)
}
