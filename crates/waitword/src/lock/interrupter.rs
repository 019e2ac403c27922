//! What one thread ends another's wait with. The protocol is in `park/interrupt.rs`.

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
/// Eight bytes. It lives as long as anybody may interrupt.
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
pub struct Interrupter(Interrupts);

impl Interrupter {
    /// One that nobody has asked yet.
    pub const fn new() -> Self {
        Self(Interrupts::new())
    }

    /// Ends the wait of the thread that waits with this, now or as soon as it would sleep. If it is signalled at the same moment,
    /// either may be what ends it; a signal is not lost.
    ///
    /// Does not block. Not for signal handlers.
    pub fn interrupt(&self) {
        self.0.request(&repository().parkers);
    }

    /// Whether somebody has interrupted since it was last cleared.
    #[inline]
    pub fn is_interrupted(&self) -> bool {
        self.0.is_requested()
    }

    /// Forgets that somebody has. For the thread that waits with it, before it looks whether it is to stop.
    #[inline]
    pub fn clear(&self) {
        self.0.clear();
    }

    /// For a wait that this ends, or the deadline.
    #[inline]
    pub(super) fn until<'a>(&'a self, deadline: Option<&'a Deadline>) -> Until<'a> {
        Until {
            deadline,
            by: Some(&self.0),
        }
    }
}

impl Default for Interrupter {
    fn default() -> Self {
        Self::new()
    }
}
