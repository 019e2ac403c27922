//! Waiters that sleep in the kernel on a word of a condvar, and are counted outside of it.
//!
//! ```text
//!   waiter                                   signaller
//!   ──────                                   ─────────
//!   count in                                 none counted? done, without a system call
//!   seen = sequence                          sequence += 1
//!   unlock the mutex                         FUTEX_WAKE(sequence)
//!   FUTEX_WAIT(sequence, seen)
//!   count off
//!   lock the mutex
//! ```
//!
//! A signal between the unlock and the sleep has changed the sequence: the wait ends at once, as if
//! woken. (Only exactly 2^32 signals in between would be missed.)
//!
//! # Memory
//!
//! A condvar may be freed as soon as all its waiters have been signalled, and a signalled waiter
//! does not know that yet. So from the unlock on a waiter touches the condvar only in the kernel,
//! by its address:
//!
//! * The count of waiters stands elsewhere, in one of [`COUNTERS`] counters that condvars share by
//!   address. A count that belongs to another condvar costs a system call, and nothing else. So
//!   does one that a child of `fork` has inherited from threads that exist in its parent only.
//! * A waiter that was signalled between its unlock and its sleep compares the sequence in memory
//!   that may have been freed. It must not fall asleep there because of what that memory holds now.
//!   So a sequence begins at a number that other words are unlikely to hold (a new condvar's is
//!   zero), and unmapped memory means the same as a changed sequence.
//!
//! # What is not lost
//!
//! The kernel takes a waiter out of its queue once: by a wake, or because its time is over, or
//! because a signal handler ran. In the last two cases no signal of the condvar was spent on it. If
//! it begins anew and finds the sequence changed, it returns as if woken: a signal that found the
//! queue empty in between is not lost either.

use crate::atomic::{AtomicU32, Ordering};
use crate::lock::interrupter::Interrupter;
use crate::stats::{self, Event};
use crate::sys::Errno;
use crate::sys::clock::{Clock, Deadline};
use crate::sys::futex::{wait_by_time, wake_by_address};
use crate::sys::moving_time::Time;

/// How a wait ended. The mutex is not held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Slept {
    /// Signalled; or for no reason.
    Woken,
    /// The deadline has passed, and no signal was spent.
    TimedOut,
    /// Another thread has interrupted it, and no signal was spent.
    Interrupted,
    /// The kernel refuses.
    Failed(Errno),
}

/// One wait, which has begun: with the mutex held.
#[derive(Clone, Copy)]
#[must_use]
pub(crate) struct Sleep {
    /// An address: nothing but the kernel follows it.
    sequence: *const AtomicU32,
    seen: u32,
}

impl Sleep {
    /// From now on a signal by a thread that has held the mutex since finds the caller, which holds
    /// it.
    #[inline]
    pub(crate) fn begin(sequence: &AtomicU32) -> Self {
        // Relaxed: the mutex makes it known.
        counter(sequence).fetch_add(1, Ordering::Relaxed);
        // Acquire: a signal that has changed it comes with what was done before.
        let seen = sequence.load(Ordering::Acquire);
        Self { sequence, seen }
    }

    /// Until signalled, and so on. The caller has let go of the mutex.
    #[inline]
    pub(crate) fn sleep(self, deadline: Option<&Deadline>, by: Option<&Interrupter>) -> Slept {
        stats::count(Event::Sleeps);
        let wait = |time: &Time, clock| wait_by_time(self.sequence, self.seen, (time, clock));
        let slept = match by {
            Some(by) => by.wait_in_kernel(deadline, wait),
            None => sleep_through_handlers(deadline, wait),
        };
        // Relaxed: the caller does not sleep any more, so no signal needs to find it.
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

impl From<Result<(), Errno>> for Slept {
    fn from(ended: Result<(), Errno>) -> Self {
        match ended {
            // Woken; or the sequence has changed; or the condvar is gone, and so the caller was
            // signalled.
            Ok(()) | Err(Errno::AGAIN | Errno::FAULT) => Self::Woken,
            Err(Errno::TIMEDOUT) => Self::TimedOut,
            Err(refused) => Self::Failed(refused),
        }
    }
}

/// Signals up to `count` waiters, those of high priority first and else in order of arrival; how
/// many slept.
#[inline]
pub(crate) fn signal(sequence: &AtomicU32, count: usize) -> usize {
    // Relaxed: see `Sleep::begin`.
    if counter(sequence).load(Ordering::Relaxed) == 0 {
        return 0;
    }
    // Release: a waiter that finds it changed comes back with what was done before.
    sequence.fetch_add(1, Ordering::Release);
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    wake_by_address(sequence, count)
}

/// 4 KiB; two condvars share a counter by chance of 1 in 64.
const COUNTERS: usize = 64;

/// How many wait on the condvars that share it, each in a cache line of its own.
#[repr(align(64))]
struct Counter(AtomicU32);

#[cfg(not(loom))]
fn counter(sequence: *const AtomicU32) -> &'static AtomicU32 {
    static WAITERS: [Counter; COUNTERS] = [const { Counter(AtomicU32::new(0)) }; COUNTERS];
    /// 2^64 over the golden ratio: its upper bits tell neighbours apart.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let address = sequence.addr() as u64;
    let number = address.wrapping_mul(SPREAD) >> (u64::BITS - COUNTERS.ilog2());
    &WAITERS[number as usize].0
}

#[cfg(loom)]
fn counter(_: *const AtomicU32) -> &'static AtomicU32 {
    crate::checker::lazy_static! {
        // A new one in each execution of a model.
        static ref WAITERS: Counter = Counter(AtomicU32::new(0));
    }
    &WAITERS.0
}
