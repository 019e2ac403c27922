//! Ending another thread's sleep before its notice: what `pthread_cancel` needs.
//!
//! An interruptible wait is given an [`Interrupts`], through which other threads reach it. The
//! waiter records there where it sleeps. An interrupter first sets the request and then wakes the
//! waiter:
//!
//! ```text
//!   sleeper                                      interrupter
//!   ───────                                      ───────────
//!   parker = its own                             requested = 1
//!   fence                                        fence
//!   seen = calls              (Acquire)          parker: none? done
//!   requested? then it does not sleep            calls += 2                   (Release)
//!   FUTEX_WAIT(calls, seen, bit)                 FUTEX_WAKE(calls, bit)
//!   seen = calls, and look again
//! ```
//!
//! One of the two fences is first. If it is the sleeper's, the interrupter finds the parker. Then
//! either `calls` has changed before the kernel compares it, or the sleeper is woken; it then finds
//! the request, which was made before `calls` was changed. If it is the interrupter's, the sleeper
//! finds the request before it sleeps.
//!
//! The parker may be out of date by the time of the call. The call then wakes an unrelated thread,
//! which finds no notice and sleeps again (`park/mod.rs`).

use super::{Parker, ParkerId, Pool, Sleeps, Until};
use crate::atomic::{Ordering, full_fence};
pub(crate) use crate::sys::interrupts::Interrupts;

impl Interrupts {
    /// Requests the end of the wait, and wakes the thread where it sleeps now.
    pub(crate) fn request(&self, pool: &Pool) {
        self.ask();
        self.wake(pool);
    }

    /// Wakes the thread where it sleeps now. The caller has already stored the reason to end the
    /// wait.
    pub(crate) fn wake(&self, pool: &Pool) {
        full_fence();
        // Acquire: the parker's memory is mapped.
        let sleeps_in = self.parker.load(Ordering::Acquire);
        if let Some(parker) = ParkerId::from_number(sleeps_in) {
            pool.wake_one(Some(parker), Sleeps::InGroup);
        }
    }

    /// Records that the thread is about to sleep in this parker.
    pub(super) fn sleeps_in(&self, parker: ParkerId) {
        // Release: see `wake`.
        self.parker.store(parker.number(), Ordering::Release);
        full_fence();
    }

    /// Records that the thread no longer sleeps.
    pub(super) fn is_awake(&self) {
        self.parker.store(0, Ordering::Relaxed);
    }
}

/// A thread's sleep in `parker`; interruptible if `until` has an [`Interrupts`].
pub(super) struct Interruptible<'a>(Until<'a>);

impl<'a> Interruptible<'a> {
    #[inline]
    pub(super) fn begin(until: Until<'a>, parker: &Parker<'_>) -> Self {
        if let (Some(by), Some(id)) = (until.reached_by(), parker.id()) {
            by.sleeps_in(id);
        }
        Self(until)
    }

    #[inline]
    pub(super) fn is_requested(&self) -> bool {
        self.0.is_asked()
    }
}

impl Drop for Interruptible<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(by) = self.0.reached_by() {
            by.is_awake();
        }
    }
}
