//! Ending another thread's sleep before its notice: what `pthread_cancel` needs.
//!
//! A wait that may be interrupted is given something that others reach it by ([`Interrupts`]). The waiter writes down there where
//! it sleeps; whoever interrupts it asks first, and wakes then:
//!
//! ```text
//!   sleeper                                      interrupter
//!   ───────                                      ───────────
//!   parker = its own                             requested = 1
//!   fence                                        fence
//!   seen = calls              (Acquire)          parker: none? done
//!   requested? then it does not sleep            calls += 1                   (Release)
//!   FUTEX_WAIT(calls, seen, bit)                 FUTEX_WAKE(calls, bit)
//!   seen = calls, and look again
//! ```
//!
//! One of the two fences is first. If it is the sleeper's, the interrupter finds the parker, and either `calls` has changed before the
//! kernel compares it or the sleeper is woken; it then finds the request, which was made before `calls` was changed. If it is
//! the interrupter's, the sleeper finds the request before it sleeps.
//!
//! Which parker it was may be out of date by the time of the call. That wakes a stranger, who finds no notice and sleeps on
//! (`park/mod.rs`).

use super::{Parker, ParkerId, Pool, Sleeps};
use crate::atomic::{AtomicU32, Ordering, full_fence};

const NOT_ASKED: u32 = 0;
const ASKED: u32 = 1;

/// How one thread's waits are reached by others.
#[derive(Debug)]
pub(crate) struct Interrupts {
    requested: AtomicU32,
    /// The number of the parker that it sleeps in; 0: in none.
    parker: AtomicU32,
}

impl Interrupts {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self {
            requested: AtomicU32::new(NOT_ASKED),
            parker: AtomicU32::new(0),
        }
    }

    /// The same for a model, in which atomics are not made in constants.
    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self {
            requested: AtomicU32::new(NOT_ASKED),
            parker: AtomicU32::new(0),
        }
    }

    /// Asks, and wakes the thread where it sleeps now.
    pub(crate) fn request(&self, pool: &Pool) {
        self.requested.store(ASKED, Ordering::Relaxed);
        full_fence();
        // Acquire: the memory of the parker is there.
        let sleeps_in = self.parker.load(Ordering::Acquire);
        if let Some(parker) = ParkerId::from_number(sleeps_in) {
            pool.wake_one(Some(parker), Sleeps::InGroup);
        }
    }

    /// Whether somebody has asked.
    pub(crate) fn is_requested(&self) -> bool {
        // Relaxed: what comes first is told by the fences, and by `calls`.
        self.requested.load(Ordering::Relaxed) != NOT_ASKED
    }

    /// Nobody has asked.
    pub(crate) fn clear(&self) {
        self.requested.store(NOT_ASKED, Ordering::Relaxed);
    }

    /// The thread is about to sleep in this parker.
    pub(super) fn sleeps_in(&self, parker: ParkerId) {
        // Release: see `request`.
        self.parker.store(parker.number(), Ordering::Release);
        full_fence();
    }

    /// The thread sleeps no longer.
    pub(super) fn is_awake(&self) {
        self.parker.store(0, Ordering::Relaxed);
    }
}

/// The sleep of a thread, in `parker`, that may be interrupted if there is something to reach it by.
pub(super) struct Interruptible<'a>(Option<&'a Interrupts>);

impl<'a> Interruptible<'a> {
    #[inline]
    pub(super) fn begin(by: Option<&'a Interrupts>, parker: &Parker<'_>) -> Self {
        if let (Some(by), Some(id)) = (by, parker.id()) {
            by.sleeps_in(id);
        }
        Self(by)
    }

    #[inline]
    pub(super) fn is_requested(&self) -> bool {
        self.0.is_some_and(Interrupts::is_requested)
    }
}

impl Drop for Interruptible<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(by) = self.0 {
            by.is_awake();
        }
    }
}
