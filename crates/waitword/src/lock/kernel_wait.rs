//! A wait in the kernel that another thread can end by moving the time at which it ends.
//! `interrupter.rs` has the protocol.

use crate::atomic::{Ordering, full_fence};
use crate::park::interrupt::Interrupts;
use crate::sys::Errno;
use crate::sys::clock::{Clock, Deadline};
use crate::sys::moving_time::Time;
use crate::sys::tid::tid;
use core::time::Duration;

/// How often a waiter in the kernel checks if it is not signalled.
const LOOKS_EVERY: Duration = Duration::from_millis(100);

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Slept {
    /// Signalled, or woken spuriously.
    Woken,
    /// The deadline has passed. No signal was consumed.
    TimedOut,
    /// Another thread interrupted the wait. No signal was consumed.
    Interrupted,
    /// The kernel refused the wait.
    Failed(Errno),
}

impl From<Result<(), Errno>> for Slept {
    fn from(ended: Result<(), Errno>) -> Self {
        match ended {
            // Woken; or the sequence has changed; or the condvar is gone, which means that the
            // caller was signalled.
            Ok(()) | Err(Errno::AGAIN | Errno::FAULT) => Self::Woken,
            Err(Errno::TIMEDOUT) => Self::TimedOut,
            Err(refused) => Self::Failed(refused),
        }
    }
}

/// Waits in the kernel with `wait`, which gets the time at which the wait ends: the deadline, or
/// the past once it is moved there through `by`. The wait is then interrupted if `is_interrupted`
/// returns true. `looks` if no thread sends this one a signal.
pub(super) fn wait_in_kernel(
    by: &Interrupts,
    looks: bool,
    deadline: Option<&Deadline>,
    is_interrupted: impl Fn() -> bool,
    wait: impl Fn(&Time, Clock) -> Result<(), Errno>,
) -> Slept {
    // Relaxed: the time is set after it.
    by.tid.store(tid(), Ordering::Relaxed);
    loop {
        let look = looks.then(|| Deadline::after(LOOKS_EVERY));
        let ends = match (deadline, &look) {
            (Some(deadline), Some(look)) if deadline.time_left() > LOOKS_EVERY => Some(look),
            (None, look) => look.as_ref(),
            (deadline, _) => deadline,
        };
        by.time.set(ends);
        full_fence();
        if is_interrupted() {
            by.time.move_to_the_past();
        }
        let ended = wait(&by.time, ends.map_or(Clock::Monotonic, |ends| ends.clock));
        by.time.move_to_the_past();
        match ended {
            Err(Errno::TIMEDOUT) if is_interrupted() => return Slept::Interrupted,
            Err(Errno::TIMEDOUT) if !deadline.is_some_and(Deadline::has_passed) => {}
            Err(Errno::INTR) => {}
            ended => return ended.into(),
        }
    }
}
