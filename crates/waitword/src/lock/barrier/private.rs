//! The private barrier. Arriving means queueing.
//!
//! ```text
//!   each but the last                        the last
//!   ─────────────────                        ────────
//!   bucket locked: arrived += 1, queue       bucket locked: take the whole queue, arrived = 0
//!   sleep                                    notify each: "over"
//!   notified "over": return                  return
//! ```
//!
//! Arriving and queueing are one step, so the waiters that the last thread takes out of the queue
//! are exactly the threads that have arrived. The message is written to their nodes, and they read
//! nothing else. Once the bucket is unlocked, no thread touches the barrier.
//!
//! # The queue is exact, the number is a hint
//!
//! `arrived` tells when it is worthwhile to look at the queue. The round is over only if the queue
//! holds all other threads. The number is never too low, but it can be too high: in a forked child
//! the waiters are gone but the number is still there, and a late wake-up meant for an earlier user
//! of the memory can take a waiter out of the queue. Then the queue turns out to be too short. All
//! waiters in it are told to look again, and they arrive once more, from zero.
//!
//! # Orderings
//!
//! The state changes only under the bucket lock. That lock and the notices order the threads' own
//! accesses. One more pair is needed: the look without the lock is Acquire and each change is
//! Release, so a thread that sees an arrival also sees the table that the other thread queued in.

use super::{ARRIVAL, arrived};
use crate::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};
use crate::futex::parking::{Entry, Parked, Request, Token, park, unpark};
use crate::lock::key_of;
use crate::park::{Until, spin};
use crate::private::{Awaited, Choice, Queue};
use crate::record::{self, Object};
use crate::sys::clock::Deadline;

const LOOK_AGAIN: Token = 0;
const OVER: Token = 1;

/// All waiters have the same kind.
const ARRIVED: u64 = 1;

/// The number of threads still missing once the caller has arrived.
fn missing(state: &AtomicU64, count: u32) -> u32 {
    // Saturating, like all arithmetic here: another process may have written nonsense.
    count.saturating_sub(arrived(state.load(Acquire)).saturating_add(1))
}

/// Whether the next thread to arrive is the last.
fn is_last(state: &AtomicU64, count: u32) -> bool {
    missing(state, count) == 0
}

/// How a thread waits while this many other threads are missing.
fn until(missing: u32, deadline: Option<&Deadline>) -> Until<'_> {
    Until { at_once: !spin::is_worth_while_for(missing), ..deadline.into() }
}

/// Arrives. Returns `Some(true)` for the last thread of the round, and `None` if the deadline
/// passed.
pub(super) fn arrive(state: &AtomicU64, count: u32, deadline: Option<&Deadline>) -> Option<bool> {
    let am_last = || is_last(state, count);
    loop {
        // Without the lock this is only a hint. It also faults the page in.
        if am_last() {
            if complete(state, count) {
                return Some(true);
            }
            continue;
        }
        let announce = || {
            let others_are_missing = !am_last();
            if others_are_missing {
                state.store(state.load(Acquire).wrapping_add(ARRIVAL), Release);
            }
            others_are_missing
        };
        let until = until(missing(state, count), deadline);
        let leave =
            |_: &Queue<'_>| state.store(state.load(Acquire).saturating_sub(ARRIVAL), Release);
        let entry = Entry::of_this_thread(Awaited::Barrier, ARRIVED);
        let request = Request::new(key_of(state), entry, until);
        let address = core::ptr::from_ref(state).addr();
        let parked = record::waiting(Object::Barrier, address, deadline.is_some(), || {
            match park(request, announce, || {}, leave) {
                Parked::TimedOut => Err(()),
                parked => Ok(parked),
            }
        });
        match parked {
            // The barrier may be gone.
            Ok(Parked::Woken(OVER)) => return Some(false),
            Ok(_) => {}
            Err(()) => return None,
        }
    }
}

/// Ends the round if all other threads are in the queue. Returns whether it did.
fn complete(state: &AtomicU64, count: u32) -> bool {
    let mut is_over = false;
    unpark(
        key_of(state),
        |_| {
            // Another thread may have been the last, between our look and the lock. These waiters
            // then belong to the next round.
            match is_last(state, count) {
                true => Choice::Take,
                false => Choice::Stop,
            }
        },
        |unparked| {
            if !is_last(state, count) {
                return LOOK_AGAIN;
            }
            is_over = unparked.woken + 1 == count as usize;
            state.store(0, Release);
            match is_over {
                true => OVER,
                false => LOOK_AGAIN,
            }
        },
    );
    is_over
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sys::generation::ends_well;

    /// Runs in a child process, because the whole process counts as running on a loaded machine
    /// from then on.
    #[test]
    fn beside_a_busy_process_a_thread_stays_awake_only_for_as_many_as_have_a_cpu() {
        assert!(ends_well(|| {
            let stays_for = |missing| !until(missing, None).at_once;
            // Overrides what yields have shown in the parent.
            spin::pretend_to_be_beside_others(0);
            let is_quiet = stays_for(1) && stays_for(u32::MAX);
            spin::pretend_to_be_beside_others(u64::from(u32::MAX));
            is_quiet && stays_for(spin::cpus() - 1) && !stays_for(spin::cpus())
        }));
    }
}
