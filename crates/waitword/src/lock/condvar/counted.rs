//! Condvar waiters that sleep in the kernel, on a word of the condvar. They are counted outside of
//! it.
//!
//! ```text
//!   waiter                                   signaller
//!   ──────                                   ─────────
//!   count in                                 count is zero? done, without a system call
//!   seen = sequence                          sequence += 1
//!   unlock the mutex                         FUTEX_WAKE(sequence)
//!   FUTEX_WAIT(sequence, seen)
//!   count out
//!   lock the mutex
//! ```
//!
//! A signal between the unlock and the sleep has changed the sequence, so the wait ends at once, as
//! if woken. (Only exactly 2^32 signals in between would be missed.)
//!
//! # Memory
//!
//! A condvar may be freed as soon as all its waiters have been signalled, and a signalled waiter
//! does not know that yet. So once it has unlocked the mutex, a waiter touches the condvar only
//! through the kernel, by address:
//!
//! * The count of waiters lies elsewhere, in one of [`COUNTERS`] counters that condvars share by
//!   address. A waiter of another condvar in the same counter costs a system call, and nothing
//!   else. So does a count that a child of `fork` inherits from threads that exist only in its
//!   parent.
//! * A waiter that is signalled between its unlock and its sleep compares the sequence in memory
//!   that may have been freed. It must not fall asleep because of what that memory holds now. So a
//!   sequence starts at a number that other words are unlikely to hold (a new condvar's is zero),
//!   and unmapped memory counts as a changed sequence.
//!
//! # No signal is lost
//!
//! The kernel removes a waiter from its queue once: on a wake, on a timeout, or because a signal
//! handler ran. A timeout or a handler consumes no signal of the condvar. If the waiter starts the
//! call again and finds the sequence changed, it returns as if woken, so a signal that found the
//! queue empty in between is not lost either.

use crate::atomic::{AtomicU32, Ordering};
use crate::lock::interrupter::Interrupter;
use crate::lock::kernel_wait::Slept;
use crate::stats::{self, Event};
use crate::sys::Errno;
use crate::sys::clock::{Clock, Deadline};
use crate::sys::futex::{wait_by_time, wake_by_address};
use crate::sys::moving_time::Time;

/// One wait. It begins with the mutex held.
#[derive(Clone, Copy)]
#[must_use]
pub(crate) struct Sleep {
    /// Used as an address only: nothing but the kernel follows it.
    sequence: *const AtomicU32,
    seen: u32,
}

impl Sleep {
    /// Counts the caller in. The caller holds the mutex. From now on, a signal finds it if the
    /// signalling thread has held the mutex since.
    #[inline]
    pub(crate) fn begin(sequence: &AtomicU32) -> Self {
        // Relaxed: published by the mutex.
        counter(sequence).fetch_add(1, Ordering::Relaxed);
        // Acquire: a signal that has changed the sequence brings what was done before it.
        let seen = sequence.load(Ordering::Acquire);
        Self { sequence, seen }
    }

    /// Sleeps until the wait ends. The caller has unlocked the mutex.
    #[inline]
    pub(crate) fn sleep(self, deadline: Option<&Deadline>, by: Option<&Interrupter>) -> Slept {
        stats::count(Event::Sleeps);
        let wait = |time: &Time, clock| wait_by_time(self.sequence, self.seen, (time, clock));
        let slept = match by {
            Some(by) => by.wait_in_kernel(deadline, wait),
            None => sleep_through_handlers(deadline, wait),
        };
        // Relaxed: the caller no longer sleeps, so no signal needs to find it.
        counter(self.sequence).fetch_sub(1, Ordering::Relaxed);
        slept
    }
}

fn sleep_through_handlers(
    deadline: Option<&Deadline>,
    wait: impl Fn(&Time, Clock) -> Result<(), Errno>,
) -> Slept {
    let time = Time::at(deadline);
    let clock = deadline.map_or(Clock::Monotonic, |deadline| deadline.clock);
    loop {
        match wait(&time, clock) {
            Err(Errno::INTR) => {}
            ended => return ended.into(),
        }
    }
}

/// Signals up to `count` waiters, by priority and then in order of arrival. Returns how many were
/// asleep.
#[inline]
pub(crate) fn signal(sequence: &AtomicU32, count: usize) -> usize {
    // Relaxed: see `Sleep::begin`.
    if counter(sequence).load(Ordering::Relaxed) == 0 {
        return 0;
    }
    // Release: a waiter that finds the sequence changed sees what was done before.
    sequence.fetch_add(1, Ordering::Release);
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    wake_by_address(sequence, count)
}

/// 4 KiB in total. Two condvars share a counter with a probability of 1 in 64.
const COUNTERS: usize = 64;

/// The number of waiters of all condvars that share the counter. Each lies in its own cache line.
#[repr(align(64))]
struct Counter(AtomicU32);

#[cfg(not(loom))]
fn counter(sequence: *const AtomicU32) -> &'static AtomicU32 {
    static WAITERS: [Counter; COUNTERS] = [const { Counter(AtomicU32::new(0)) }; COUNTERS];
    /// 2^64 divided by the golden ratio. The upper bits of a product with it differ between
    /// neighbours.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let address = sequence.addr() as u64;
    let number = address.wrapping_mul(SPREAD) >> (u64::BITS - COUNTERS.ilog2());
    &WAITERS[number as usize].0
}

#[cfg(loom)]
fn counter(_: *const AtomicU32) -> &'static AtomicU32 {
    crate::checker::lazy_static! {
        // A new counter in each execution of a model.
        static ref WAITERS: Counter = Counter(AtomicU32::new(0));
    }
    &WAITERS.0
}
