//! What one thread ends another's wait with. The protocol of waits in the table is in `park/interrupt.rs`.
//!
//! A wait with a priority-inheriting mutex is in the kernel (`condvar/counted.rs`), where only a
//! signal to the condvar wakes it. An interrupter cannot give one: the condvar may be freed as soon
//! as the waiter has been signalled, whether or not it has returned. But a signal handler ends the
//! system call, and one of its arguments is a pointer to the time at which the wait ends. That time
//! lies here, and an interrupter moves it to the past:
//!
//! ```text
//!   waiter                                       interrupter
//!   ──────                                       ───────────
//!   time = its deadline, or never                requested
//!   fence                                        fence
//!   requested? then time = past                  time: past already? done
//!   FUTEX_WAIT(.., &time)                        time = past
//!     the kernel reads the time                  a signal to the waiter's thread
//!   time = past: it does not wait any more
//!   its time was over, or a handler ran:
//!     requested? interrupted; else anew
//! ```
//!
//! One of the two fences is first. If it is the interrupter's, the waiter finds the request. If it
//! is the waiter's, the interrupter finds the time and moves it; the kernel reads it afterwards, or
//! has read it before, and then the signal ends the call. An interrupter that is late moves the
//! time of a later wait, which then finds no request and begins anew.
//!
//! A waiter that finds the request makes the system call all the same. The kernel compares the word
//! before it looks at the time, so a waiter that was signalled before returns as signalled, and not
//! as interrupted.

use super::condvar::Slept;
use crate::atomic::{Ordering, full_fence};
use crate::park::Until;
use crate::park::interrupt::Interrupts;
use crate::private::waiter_table;
use crate::sys::Errno;
use crate::sys::clock::{Clock, Deadline};
pub use crate::sys::interrupts::SetAside;
use crate::sys::moving_time::Time;
use crate::sys::tid::tid;
use core::time::Duration;

/// What one thread ends another's wait with: `pthread_cancel` needs it, and a runtime that stops
/// its threads.
///
/// A thread waits with it ([`Semaphore::wait_interruptible_by`][semaphore],
/// [`RawCondvar::wait_interruptible`][condvar]), one wait at a time, and any other thread may
/// [`interrupt`](Self::interrupt). A request stays until it is [cleared](Self::clear): a wait that
/// begins later ends at once. So clear it, look whether you are to stop, and wait: a thread that
/// asks you to stop and then interrupts is heard.
///
/// [semaphore]: crate::abi_support::CancellableSemaphore::wait_interruptible_by
/// [condvar]: crate::abi_support::CancellableCondvar::wait_interruptible
///
/// It lives as long as anybody may interrupt.
///
/// A wait with a priority-inheriting mutex is a system call of the kernel's own, in which the waiter looks every
/// 100 ms whether it is interrupted. Whoever can send that thread a signal ends it at once: [`signalled`](Self::signalled),
/// [`interrupt_with`](Self::interrupt_with).
///
/// ```
/// use waitword::Semaphore;
/// use waitword::abi_support::{CancellableSemaphore as _, Interrupter};
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
    /// Whether it looks by itself, there, since nobody sends it a signal. (False, as everything else at first, in zeroed memory: one that is
    /// signalled.)
    looks: bool,
}

/// How often a waiter in the kernel looks if it is not signalled.
const LOOKS_EVERY: Duration = Duration::from_millis(100);

impl Interrupter {
    /// One that nobody has asked yet.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self {
            sleeps: Interrupts::new(),
            looks: true,
        }
    }

    /// The same for a thread to which all who interrupt send a signal where that is needed: they call
    /// [`interrupt_with`](Self::interrupt_with). Its waits do not look every 100 ms.
    #[cfg(not(loom))]
    pub const fn signalled() -> Self {
        Self {
            looks: false,
            ..Self::new()
        }
    }

    /// The same for a model, in which atomics are not made in constants.
    #[cfg(loom)]
    pub(crate) fn signalled() -> Self {
        Self {
            sleeps: Interrupts::new(),
            looks: false,
        }
    }

    /// Ends the wait of the thread that waits with this, now or as soon as it would sleep. If it is signalled at the same moment,
    /// either may be what ends it; a signal is not lost. It does not touch what the thread waits for, which may be gone.
    ///
    /// Does not block. Not for signal handlers.
    pub fn interrupt(&self) {
        self.interrupt_with(|_| {});
    }

    /// The same. `send_signal` is called if the thread may be asleep in the kernel with a priority-inheriting mutex, with its TID
    /// (`gettid(2)`): it sends that thread a signal that has a handler, whatever it does. (The thread may have left that wait meanwhile,
    /// and then is interrupted for nothing.)
    pub fn interrupt_with(&self, send_signal: impl FnOnce(u32)) {
        self.sleeps.request(&waiter_table().parkers);
        // Behind the request's fence.
        if self.sleeps.time.move_to_the_past() {
            send_signal(self.sleeps.tid.load(Ordering::Relaxed));
        }
    }

    /// Ends the waits of the calling thread, which is in a signal handler and has interrupted one: the function that waits is left as
    /// soon as the handler has returned.
    #[cfg(not(loom))]
    pub fn leave(&self) {
        self.sleeps.set_leaving(true);
        self.sleeps.wake(&waiter_table().parkers);
        // The kernel reads it anew when the handler has returned.
        self.sleeps.time.move_to_the_past();
    }

    /// The function has been left.
    pub fn has_left(&self) {
        self.sleeps.set_leaving(false);
    }

    /// For a signal handler's own waits, while those of the function that it has interrupted stand still.
    pub fn set_aside(&self) -> SetAside {
        self.sleeps.set_aside()
    }

    /// The handler's own wait is over.
    pub fn take_up(&self, aside: SetAside) {
        self.sleeps.take_up(aside);
    }

    /// `deadline`, or never, unless the thread is to leave: then now. With `hears_requests` also if another thread
    /// [interrupts](Self::interrupt) it.
    ///
    /// # Safety
    /// The deadline and its copies are used no longer than this is borrowed, and on this thread.
    pub unsafe fn bring_forward(
        &self,
        deadline: Option<&Deadline>,
        hears_requests: bool,
    ) -> Deadline {
        // SAFETY: forwards this function's own contract.
        unsafe { Deadline::brought_forward(deadline, &self.sleeps, hears_requests) }
    }

    /// Waits in the kernel with `wait`, which is given the time at which that ends.
    pub(super) fn wait_in_kernel(
        &self,
        deadline: Option<&Deadline>,
        wait: impl Fn(&Time, Clock) -> Result<(), Errno>,
    ) -> Slept {
        wait_in_kernel(
            &self.sleeps,
            self.looks,
            deadline,
            || self.is_interrupted(),
            wait,
        )
    }

    /// Whether somebody has interrupted since it was last cleared.
    #[inline]
    pub fn is_interrupted(&self) -> bool {
        self.sleeps.is_requested()
    }

    /// Whether another thread has, as the calling thread's own handlers have not.
    #[inline]
    pub fn is_asked(&self) -> bool {
        self.sleeps.is_asked()
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
            at_once: false,
        }
    }
}

/// Waits in the kernel with `wait`, which is given the time at which that ends: `by` this, if `is_interrupted` says so when it was
/// moved, or the deadline. `looks` if nobody sends the thread a signal.
pub(super) fn wait_in_kernel(
    by: &Interrupts,
    looks: bool,
    deadline: Option<&Deadline>,
    is_interrupted: impl Fn() -> bool,
    wait: impl Fn(&Time, Clock) -> Result<(), Errno>,
) -> Slept {
    // Relaxed: the time is set behind it.
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

#[cfg(not(loom))]
impl Default for Interrupter {
    fn default() -> Self {
        Self::new()
    }
}
