//! The wait-wake mutex: a thread that finds it taken sleeps at once, an unlock wakes the oldest
//! waiter, and a running thread may take the lock first. (Drepper's second mutex, and what
//! `pthread_mutex_lock` does today.)
//!
//! For sections that sleep or are long, and for loads where every CPU has other work. A thread may
//! wait without bound while others take the lock past it. The word and the parking are those of
//! `private.rs`, without a successor.

use super::private;
use super::waiter::{HOLDER, SUCCESSOR, Waiter};
use super::{LockTimedOut, RawPosixMutex, real_time};
use crate::atomic::Ordering;
use crate::futex::parking::{self, Parked, Request};
use crate::stats::{self, Event};
use crate::sys::clock::{Deadline, nanoseconds as now};

/// Takes the lock, for a thread that has found it taken.
#[cold]
pub(super) fn lock(mutex: &RawPosixMutex, deadline: Option<&Deadline>) -> Result<(), LockTimedOut> {
    let began = now();
    let mut has_parked = false;
    loop {
        let state = mutex.state();
        if !state.is_locked() {
            if mutex.change(state, state.taken(), Ordering::Acquire).is_ok() {
                return Ok(());
            }
            continue;
        }
        if core::mem::replace(&mut has_parked, true) {
            stats::count(Event::SleptAgain);
        }
        let waiter = Waiter::since(began);
        let parked = parking::park(
            Request::new(mutex.key(), waiter.entry(), deadline),
            || {
                mutex.announce(|state| {
                    let held = state.is_locked();
                    let parked = match waiter.is_real_time() {
                        true => state.with_real_time_parked(),
                        false => state.with_parked(true),
                    };
                    held.then_some(parked)
                })
            },
            || {},
            |queue| mutex.note_parked(queue.has_waiters()),
        );
        match parked {
            Parked::Woken(HOLDER) => return Ok(()),
            // Woken by an unlock of another flavour (`default_flavour.rs`): the word records a
            // successor, and that is this thread.
            Parked::Woken(SUCCESSOR) => return private::lock(mutex, deadline, SUCCESSOR),
            Parked::TimedOut => return Err(LockTimedOut),
            Parked::Woken(_) | Parked::Invalid | Parked::Interrupted => {}
        }
    }
}

/// Releases the lock and wakes the oldest waiter; a real-time thread is handed the lock
/// (`real_time.rs`).
#[cold]
pub(super) fn unlock_and_wake(mutex: &RawPosixMutex) {
    if real_time::unlock(mutex) {
        return;
    }
    parking::unpark_one(
        mutex.key(),
        |_| true,
        |_, others_wait| {
            mutex.release(|state| state.with_parked(others_wait).released());
            0
        },
    );
}
