//! Interrupting another thread's wait. The protocol for waits in the waiter table is in
//! `park/interrupt.rs`.
//!
//! A wait with a priority-inheriting mutex sleeps in the kernel (`condvar/counted.rs`), where only
//! a signal to the condvar wakes it. An interrupter cannot signal the condvar: it may be freed as
//! soon as the waiter has been signalled, whether or not that waiter has returned. But a signal
//! handler ends the system call, and one argument of the call is a pointer to the time at which the
//! wait ends. That time is stored here, and an interrupter moves it to the past:
//!
//! ```text
//!   waiter                                       interrupter
//!   ──────                                       ───────────
//!   time = its deadline, or never                requested = true
//!   fence                                        fence
//!   requested? then time = past                  time already past? done
//!   FUTEX_WAIT(.., &time)                        time = past
//!     the kernel reads the time                  send a signal to the waiter's thread
//!   time = past: it no longer waits
//!   timed out, or a handler ran:
//!     requested? interrupted; else start again
//! ```
//!
//! One of the two fences comes first. If it is the interrupter's, the waiter finds the request. If
//! it is the waiter's, the interrupter finds the time and moves it. The kernel reads the time
//! afterwards, or has read it before; then the signal ends the call. A late interrupter moves the
//! time of a later wait, which finds no request and starts again.
//!
//! A waiter that finds the request makes the system call all the same. The kernel compares the word
//! before it looks at the time, so a waiter that was signalled before returns as signalled and not
//! as interrupted.

use super::const_fn::const_fn;
use super::kernel_wait::{Slept, wait_in_kernel};
use crate::atomic::Ordering;
use crate::park::Until;
use crate::park::interrupt::Interrupts;
use crate::private::waiter_table;
use crate::sys::Errno;
use crate::sys::clock::{Clock, Deadline};
pub use crate::sys::interrupts::SetAside;
use crate::sys::moving_time::Time;

/// Ends another thread's waits: what `pthread_cancel` needs, or a runtime that stops its threads.
///
/// A thread waits with it ([`Semaphore::wait_interruptible_by`][semaphore],
/// [`RawCondvar::wait_interruptible`][condvar]), one wait at a time, and any other thread may
/// [`interrupt`](Self::interrupt) it. A request stays until it is [cleared](Self::clear): a wait
/// that begins later ends at once. So clear the request, check whether you are to stop, and then
/// wait. A thread that asks you to stop and then interrupts is never missed.
///
/// [semaphore]: crate::abi_support::SemaphoreHooks::wait_interruptible_by
/// [condvar]: crate::abi_support::CondvarHooks::wait_interruptible
///
/// It must live as long as any thread may interrupt with it.
///
/// A wait with a priority-inheriting mutex sleeps in the kernel, where the waiter checks every 100
/// ms whether it is interrupted. A thread that can send it a signal ends the wait at once: see
/// [`signalled`](Self::signalled) and [`interrupt_with`](Self::interrupt_with).
///
/// ```
/// use waitword::Semaphore;
/// use waitword::abi_support::{SemaphoreHooks as _, Interrupter};
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
    /// Whether the waiter checks by itself in the kernel, because no thread sends it a signal.
    /// (False in zeroed memory, like everything else initially: an interrupter that is signalled.)
    looks: bool,
}

impl Interrupter {
    const_fn! {
        /// Creates an interrupter without a request.
        pub const fn new() -> Self {
            Self {
                sleeps: Interrupts::new(),
                looks: true,
            }
        }
    }

    const_fn! {
        /// The same, for a thread to which every interrupter sends a signal where one is needed,
        /// through [`interrupt_with`](Self::interrupt_with). Its waits do not check every 100 ms.
        pub const fn signalled() -> Self {
            Self {
                sleeps: Interrupts::new(),
                looks: false,
            }
        }
    }

    /// Ends the wait of the thread that waits with this, now or as soon as it would sleep. If the
    /// thread is signalled at the same moment, either may end the wait; a signal is not lost. Does
    /// not touch the object that the thread waits for, which may be gone.
    ///
    /// Does not block. Not for signal handlers.
    pub fn interrupt(&self) {
        self.interrupt_with(|_| {});
    }

    /// The same, with a signal. If the thread may be asleep in the kernel with a
    /// priority-inheriting mutex, calls `send_signal` with its TID (`gettid(2)`). `send_signal`
    /// must send that thread a signal that has a handler; it does not matter what the handler does.
    /// (The thread may have left the wait meanwhile, and is then interrupted for nothing.)
    pub fn interrupt_with(&self, send_signal: impl FnOnce(u32)) {
        self.sleeps.request(&waiter_table().parkers);
        // After the request's fence.
        if self.sleeps.time.move_to_the_past() {
            send_signal(self.sleeps.tid.load(Ordering::Relaxed));
        }
    }

    /// Ends the waits of the calling thread, which is in a signal handler that has interrupted one.
    /// The waiting function is left as soon as the handler has returned.
    pub fn leave(&self) {
        self.sleeps.set_leaving(true);
        self.sleeps.wake(&waiter_table().parkers);
        // The kernel reads the time again when the handler has returned.
        self.sleeps.time.move_to_the_past();
    }

    /// Records that the function has been left.
    pub fn has_left(&self) {
        self.sleeps.set_leaving(false);
    }

    /// Sets aside the interrupted function's waits while a signal handler waits itself.
    pub fn set_aside(&self) -> SetAside {
        self.sleeps.set_aside()
    }

    /// Restores what was set aside: the handler's own wait is over.
    pub fn take_up(&self, aside: SetAside) {
        self.sleeps.take_up(aside);
    }

    /// Returns `deadline`, or never. It is brought forward to now once the thread is to leave the
    /// function. With `hears_requests`, another thread's [`interrupt`](Self::interrupt) does that,
    /// too.
    ///
    /// # Safety
    /// The deadline and its copies are used only while this is borrowed, and only on this thread.
    pub unsafe fn bring_forward(
        &self,
        deadline: Option<&Deadline>,
        hears_requests: bool,
    ) -> Deadline {
        // SAFETY: forwards this function's own contract.
        unsafe { Deadline::brought_forward(deadline, &self.sleeps, hears_requests) }
    }

    /// Waits in the kernel with `wait`, which gets the time at which the wait ends.
    pub(super) fn wait_in_kernel(
        &self,
        deadline: Option<&Deadline>,
        wait: impl Fn(&Time, Clock) -> Result<(), Errno>,
    ) -> Slept {
        wait_in_kernel(&self.sleeps, self.looks, deadline, || self.is_interrupted(), wait)
    }

    /// Whether a thread has interrupted since the last [`clear`](Self::clear).
    #[inline]
    pub fn is_interrupted(&self) -> bool {
        self.sleeps.is_requested()
    }

    /// Whether another thread has interrupted, not counting the calling thread's own handlers.
    #[inline]
    pub fn is_asked(&self) -> bool {
        self.sleeps.is_asked()
    }

    /// Clears the request. For the thread that waits with this, before it checks whether it is to
    /// stop.
    #[inline]
    pub fn clear(&self) {
        self.sleeps.clear();
    }

    /// For a wait that ends by this or by the deadline.
    #[inline]
    pub(crate) fn until<'a>(&'a self, deadline: Option<&'a Deadline>) -> Until<'a> {
        Until { deadline, by: Some(&self.sleeps), at_once: false }
    }
}

impl Default for Interrupter {
    fn default() -> Self {
        Self::new()
    }
}
