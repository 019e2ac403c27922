//! Real-time threads at a mutex.
//!
//! POSIX: when an unlock makes the mutex available, the scheduling policy decides which waiter gets
//! it. So a thread under `SCHED_FIFO`, `SCHED_RR` or `SCHED_DEADLINE` waits only in the queue, in
//! the order of priorities, and never depends on an awake waiter of a lower priority:
//!
//! * **The queue is in the order of priorities** at all times. A waiter that has waited before goes
//!   to the front of the waiters of its own priority, and of no others.
//! * **A real-time thread that parks sets URGENT**, which removes the successor from the word. The
//!   unlock that follows therefore goes to the queue, although the former successor may still be
//!   awake. The former successor parks as soon as it sees URGENT. While URGENT is set, no thread
//!   becomes the successor.
//! * **An unlock that finds a real-time thread at the front** hands it the lock, if its priority is
//!   higher than the unlocker's. If it is not, the unlock wakes the thread, and other threads may
//!   take the lock first, as they can at any futex. Keeping the lock for a thread that must wait
//!   for the unlocker's CPU would cost a switch for each section.
//! * **A real-time thread takes any free lock**, even one that is reserved for the successor. It
//!   does not yield its place to other waiters, and does not yield its CPU to a late successor.
//! * **It spins no longer than other waiters**, and not at all while URGENT is set.
//!
//! A thread's priority is looked up when it parks, and at most every 10 ms (`sys/sched.rs`). An
//! unlock looks up its own only if URGENT is set. So programs without real-time threads pay
//! nothing. Process-shared mutexes have their waiters in the kernel, whose queues are in this
//! order.
//!
//! # Why no waiter is left asleep
//!
//! URGENT is set under the bucket's lock, either by a thread that parks and sees that the lock is
//! held, or by a condvar that moves waiters. The condvar moves them to a lock that is held, or to
//! one for which it has just woken a waiter that will take the lock. So from then on, an unlock
//! will look at the queue, and the removed successor need not make sure that another waiter wakes
//! up. The removed successor may act as if it still were the successor: it takes the lock if it is
//! free, and parks if it is held. Either step may remove a successor that was appointed since, for
//! which the same holds.
//!
//! URGENT is HANDOFF without a successor (`word.rs`). It may be left over from a waiter that is
//! gone; the next unlock clears it.

use super::RawPosixMutex;
use super::waiter::HOLDER;
use super::waiter::Waiter;
use crate::futex::parking::{self, Token};
use crate::stats::{self, Event};
use crate::sys::sched;

/// Releases the mutex if a real-time thread is parked. Returns whether it did.
#[inline]
pub(super) fn unlock(mutex: &RawPosixMutex) -> bool {
    mutex.state().is_urgent() && unlock_urgently(mutex)
}

#[cold]
#[inline(never)]
fn unlock_urgently(mutex: &RawPosixMutex) -> bool {
    // Looked up before the bucket is locked: this may make a system call.
    let unlocker = sched::priority();
    let mut is_released = false;
    let is_real_time = |first| Waiter(first).is_real_time();
    let change = |woken: Option<u64>, others_wait| match woken {
        Some(woken) => {
            is_released = true;
            release_to(mutex, Waiter(woken), unlocker, others_wait)
        }
        None => {
            mutex.set(|state| state.with_ordinary_left(others_wait));
            0
        }
    };
    parking::unpark_one(mutex.key(), is_real_time, change);
    is_released
}

/// For the models' assertions.
#[cfg(all(test, loom))]
impl RawPosixMutex {
    /// The highest priority of the threads that are parked now.
    pub(crate) fn highest_parked(&self) -> u8 {
        use crate::futex::parking::unpark;
        use crate::private::Choice;
        let highest = core::cell::Cell::new(0);
        let look = |kind| {
            highest.set(highest.get().max(Waiter(kind).priority()));
            Choice::Pass
        };
        unpark(self.key(), look, |_| 0);
        highest.get()
    }
}

/// Releases the mutex, with the real-time thread `first` just taken from its queue: to `first` if
/// its priority is higher than the unlocker's, or else to any thread. Returns the token for
/// `first`. Called under the bucket's lock.
#[cold]
#[inline(never)]
pub(super) fn release_to(
    mutex: &RawPosixMutex,
    first: Waiter,
    unlocker: u8,
    others_wait: bool,
) -> Token {
    let is_handed_off = first.is_impatient() || first.priority() > unlocker;
    mutex.release(|state| {
        let left = state.with_parked(others_wait);
        match is_handed_off {
            true => left,
            false => left.released(),
        }
    });
    match is_handed_off {
        true => {
            stats::count(Event::HandOffs);
            HOLDER
        }
        // Not as the successor: no other waiter depends on it.
        false => 0,
    }
}
