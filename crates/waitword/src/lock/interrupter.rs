//! What one thread ends another's wait with. The protocol is in `park/interrupt.rs`.
//!
//! A wait with a priority-inheriting mutex is in the kernel (`condvar/priority.rs`), where only a signal to the condvar wakes it. So
//! the waiter says at which condvar it waits, and whoever interrupts it wakes all who wait there, for no reason, as POSIX allows:
//!
//! | `waits_at` | meaning |
//! |------------|---------|
//! | null | it waits at none |
//! | a condvar | it waits there; it does not leave without taking this back |
//! | the same and BORROWED | and whoever interrupts it uses the condvar: it must not leave yet |

use super::RawCondvar;
use crate::atomic::{AtomicPtr, Ordering, full_fence};
use crate::park::Until;
use crate::park::interrupt::Interrupts;
use crate::private::repository;
use crate::sys::clock::Deadline;

/// What one thread ends another's wait with: `pthread_cancel` needs it, and a runtime that stops its threads.
///
/// A thread waits with it ([`Semaphore::wait_interruptible_by`](crate::Semaphore::wait_interruptible_by),
/// [`RawCondvar::wait_interruptible`](crate::RawCondvar::wait_interruptible)), one wait at a time, and any other thread may
/// [`interrupt`](Self::interrupt). A request stays until it is [cleared](Self::clear): a wait that begins later ends at once. So clear it,
/// look whether you are to stop, and wait: whoever asks you to stop and then interrupts is heard.
///
/// It lives as long as anybody may interrupt.
///
/// ```
/// use waitword::{Interrupter, Semaphore};
///
/// static STOP: Interrupter = Interrupter::new();
/// static WORK: Semaphore = Semaphore::new(0);
///
/// let worker = std::thread::spawn(|| {
///     while WORK.wait_interruptible_by(None, &STOP).is_ok() {
///         // ... work ...
///     }
/// });
/// STOP.interrupt();
/// worker.join().unwrap();
/// ```
#[derive(Debug)]
pub struct Interrupter {
    sleeps: Interrupts,
    waits_at: AtomicPtr<RawCondvar>,
}

/// In `waits_at`. (Condvars are aligned to 8 bytes.)
const BORROWED: usize = 1;

impl Interrupter {
    /// One that nobody has asked yet.
    pub const fn new() -> Self {
        Self {
            sleeps: Interrupts::new(),
            waits_at: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    /// Ends the wait of the thread that waits with this, now or as soon as it would sleep. If it is signalled at the same moment,
    /// either may be what ends it; a signal is not lost.
    ///
    /// Does not block. Not for signal handlers.
    pub fn interrupt(&self) {
        self.sleeps.request(&repository().parkers);
        // Behind the request's fence. Relaxed: nothing is done with it before it is borrowed.
        let condvar = self.waits_at.load(Ordering::Relaxed);
        if condvar.is_null() || condvar.addr() & BORROWED != 0 {
            // In the second case another interrupter is about to do the same.
            return;
        }
        let borrowed = condvar.map_addr(|address| address | BORROWED);
        // Acquire: what the condvar was made of.
        let is_there =
            self.waits_at
                .compare_exchange(condvar, borrowed, Ordering::Acquire, Ordering::Relaxed);
        if is_there.is_ok() {
            // SAFETY: its waiter does not leave before it is given back, and keeps it until then (`wait_interruptible`).
            unsafe { &*condvar }.notify_all();
            // Release: we are done with it.
            self.waits_at.store(condvar, Ordering::Release);
        }
    }

    /// The caller is about to wait at `condvar` in the kernel. Behind this it looks at the word that it will wait on, and then whether
    /// it [is interrupted](Self::is_interrupted).
    pub(super) fn waits_at(&self, condvar: &RawCondvar) {
        // Release: see `interrupt`.
        self.waits_at
            .store(core::ptr::from_ref(condvar).cast_mut(), Ordering::Release);
        full_fence();
    }

    /// It waits there no longer; afterwards nobody uses the condvar for it.
    pub(super) fn has_left(&self, condvar: &RawCondvar) {
        const NAP: i64 = 50_000;
        let condvar = core::ptr::from_ref(condvar).cast_mut();
        let nowhere = core::ptr::null_mut();
        // Acquire: who borrowed it is done.
        while self
            .waits_at
            .compare_exchange(condvar, nowhere, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            // Not a spin: the borrower may be of a lower real-time priority.
            crate::sys::sched::sleep_nanoseconds(NAP);
        }
    }

    /// Whether somebody has interrupted since it was last cleared.
    #[inline]
    pub fn is_interrupted(&self) -> bool {
        self.sleeps.is_requested()
    }

    /// Forgets that somebody has. For the thread that waits with it, before it looks whether it is to stop.
    #[inline]
    pub fn clear(&self) {
        self.sleeps.clear();
    }

    /// For a wait that this ends, or the deadline.
    #[inline]
    pub(crate) fn until<'a>(&'a self, deadline: Option<&'a Deadline>) -> Until<'a> {
        Until {
            deadline,
            by: Some(&self.sleeps),
        }
    }
}

impl Default for Interrupter {
    fn default() -> Self {
        Self::new()
    }
}
