//! A time at which a wait in the kernel ends, and which another thread may move to the past
//! meanwhile.

use super::clock::Deadline;
use crate::atomic::{AtomicI64, Ordering, const_fn};

/// A `timespec` as the kernel reads it. A wait that restarts because a signal handler ran reads it
/// again.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Time {
    seconds: AtomicI64,
    nanoseconds: AtomicI64,
}

/// On either clock, whatever the nanoseconds.
const PAST: i64 = 0;

impl Time {
    const_fn! {
        pub(crate) const fn past() -> Self {
            Self {
                seconds: AtomicI64::new(PAST),
                nanoseconds: AtomicI64::new(0),
            }
        }
    }

    /// This time; `None`: never.
    pub(crate) fn at(deadline: Option<&Deadline>) -> Self {
        let time = Self::past();
        time.set(deadline);
        time
    }

    /// Sets the time.
    pub(crate) fn set(&self, deadline: Option<&Deadline>) {
        let (seconds, nanoseconds) = match deadline {
            Some(deadline) => (deadline.seconds, deadline.nanoseconds),
            None => (i64::MAX, 0),
        };
        // Relaxed: the kernel reads both later, on this thread.
        self.nanoseconds.store(nanoseconds.into(), Ordering::Relaxed);
        // Release: a thread that moves the time sees what was written before.
        self.seconds.store(seconds, Ordering::Release);
    }

    /// Moves the time to the past; returns whether it was not already past.
    pub(crate) fn move_to_the_past(&self) -> bool {
        // Acquire: see `set`.
        self.seconds.swap(PAST, Ordering::Acquire) != PAST
    }

    /// Whether it will not come, unless it is moved.
    pub(crate) fn is_never(&self) -> bool {
        self.seconds.load(Ordering::Relaxed) == i64::MAX
    }
}
