//! The process-shared barrier. A thread that has arrived sleeps until the number of rounds changes.
//!
//! ```text
//!   each but the last                        the last
//!   ─────────────────                        ────────
//!   inside += 1                              inside += 1
//!   arrived += 1; rounds == 7                arrived = 0, rounds = 8  (one step)
//!   sleep while rounds == 7                  wake all
//!   inside -= 1  (last touch)                inside -= 1  (last touch)
//! ```
//!
//! A thread of the next round may arrive while some threads of this one are still asleep. They see
//! that the number of rounds has changed, whatever else has.

use super::{ARRIVAL, arrived};
use crate::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::futex::Scope;
use crate::lock::sleep::{self, Signals, Spot};
use crate::private::Awaited;
use crate::record::{self, Object};
use crate::sys::clock::Deadline;

/// In `inside`: a thread waits for the count to become zero.
const DESTROYING: u32 = 1 << 31;

const fn round(state: u64) -> u32 {
    state as u32
}

/// Arrives. Returns `Some(true)` for the last thread of the round, and `None` if the deadline
/// passed.
pub(super) fn arrive(
    state: &AtomicU64,
    count: u32,
    inside: &AtomicU32,
    deadline: Option<&Deadline>,
) -> Option<bool> {
    let _inside = Inside::enter(inside);
    let mut now = state.load(Ordering::Relaxed);
    loop {
        let is_last = arrived(now).saturating_add(1) >= count;
        let next = match is_last {
            true => u64::from(round(now).wrapping_add(1)),
            false => now + ARRIVAL,
        };
        // Release: what we did is visible after the barrier. Acquire: the last thread sees what all
        // other threads did.
        match state.compare_exchange_weak(now, next, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) if is_last => {
                Spot::of(state, Scope::Shared).wake(usize::MAX);
                return Some(true);
            }
            Ok(_) => break,
            Err(changed) => now = changed,
        }
    }
    let address = core::ptr::from_ref(state).addr();
    let waited = record::waiting(Object::Barrier, address, deadline.is_some(), || {
        wait_while_in(state, round(now), deadline)
    });
    waited.ok().map(|()| false)
}

/// Sleeps until this round is over. The error is that the deadline has passed, and the arrival is
/// withdrawn.
#[inline(always)]
fn wait_while_in(state: &AtomicU64, mine: u32, deadline: Option<&Deadline>) -> Result<(), ()> {
    // Acquire: what all threads did before the barrier is visible.
    while round(state.load(Ordering::Acquire)) == mine {
        let waited =
            sleep::wait(Awaited::Barrier, state, Scope::Shared, mine, deadline, Signals::Ignored);
        if waited.is_err() && take_back(state, mine) {
            return Err(());
        }
    }
    Ok(())
}

/// Withdraws the arrival if the round has not ended. Returns whether it did.
fn take_back(state: &AtomicU64, mine: u32) -> bool {
    // Acquire on failure: the round is over.
    state
        .fetch_update(Ordering::Relaxed, Ordering::Acquire, |state| {
            (round(state) == mine).then(|| state.saturating_sub(ARRIVAL))
        })
        .is_ok()
}

/// A thread inside `wait`.
struct Inside<'a>(&'a AtomicU32);

impl<'a> Inside<'a> {
    fn enter(inside: &'a AtomicU32) -> Self {
        // Relaxed: `destroy` may be called only by a thread that knows, by way of the barrier
        // itself, that we have arrived.
        inside.fetch_add(1, Ordering::Relaxed);
        Self(inside)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        // Release: our accesses to the barrier come before the end of its memory.
        if self.0.fetch_sub(1, Ordering::Release) == DESTROYING + 1 {
            // From here on the memory may be gone.
            Spot::of(self.0, Scope::Shared).wake(usize::MAX);
        }
    }
}

/// Waits until no thread is inside.
pub(super) fn until_all_are_out(inside: &AtomicU32) {
    // Acquire here and below: pairs with the Release of each thread that leaves.
    let mut now = inside.fetch_or(DESTROYING, Ordering::Acquire) | DESTROYING;
    while now != DESTROYING {
        let _ = sleep::wait(Awaited::Barrier, inside, Scope::Shared, now, None, Signals::Ignored);
        now = inside.load(Ordering::Acquire);
    }
    inside.store(0, Ordering::Relaxed);
}
