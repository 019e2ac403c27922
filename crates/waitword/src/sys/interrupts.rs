//! The words through which one thread's waits are ended before their time. Their use is described
//! in `park/interrupt.rs`, and in `lock/interrupter.rs` for waits in the kernel.
//!
//! | word | written by |
//! |------|------------|
//! | `requested` | any thread: the wait is to end |
//! | `leaving` | a signal handler on the thread, to leave the function that it interrupted |
//! | `parker`, `time`, `tid` | the thread: where it sleeps |
//!
//! An interrupter moves `time` to the past.

use super::moving_time::Time;
use crate::atomic::{AtomicU32, Ordering, const_fn};

const NOT_ASKED: u32 = 0;
const ASKED: u32 = 1;

/// The state through which one thread's waits are interrupted.
#[derive(Debug)]
pub(crate) struct Interrupts {
    requested: AtomicU32,
    leaving: AtomicU32,
    /// The number of the parker that it sleeps in; 0: in none.
    pub(crate) parker: AtomicU32,
    /// The thread that waits in the kernel.
    pub(crate) tid: AtomicU32,
    /// When a wait in the kernel ends.
    pub(crate) time: Time,
}

/// The state of a wait that a signal handler has interrupted, saved while the handler waits itself.
#[derive(Clone, Copy, Debug)]
pub struct SetAside {
    leaving: bool,
    parker: u32,
}

impl Interrupts {
    const_fn! {
        pub(crate) const fn new() -> Self {
            Self {
                requested: AtomicU32::new(NOT_ASKED),
                leaving: AtomicU32::new(0),
                parker: AtomicU32::new(0),
                tid: AtomicU32::new(0),
                time: Time::past(),
            }
        }
    }

    /// Makes the request. The caller must order it before what follows.
    pub(crate) fn ask(&self) {
        // Relaxed: a fence follows.
        self.requested.store(ASKED, Ordering::Relaxed);
    }

    /// Sets whether the thread leaves. For the thread itself and its own signal handlers.
    pub(crate) fn set_leaving(&self, leaving: bool) {
        // Relaxed: it is read by the same thread.
        self.leaving.store(leaving.into(), Ordering::Relaxed);
    }

    /// Whether another thread has made a request that is not cleared yet.
    pub(crate) fn is_asked(&self) -> bool {
        // Relaxed: the fences, and `calls`, determine the order (`park/interrupt.rs`).
        self.requested.load(Ordering::Relaxed) != NOT_ASKED
    }

    /// Whether the thread leaves.
    pub(crate) fn is_leaving(&self) -> bool {
        // Relaxed: it is written by the same thread.
        self.leaving.load(Ordering::Relaxed) != 0
    }

    /// Whether the wait is to end.
    pub(crate) fn is_requested(&self) -> bool {
        self.is_asked() || self.is_leaving()
    }

    /// Clears the request.
    pub(crate) fn clear(&self) {
        // Relaxed: the thread checks next whether it was asked.
        self.requested.store(NOT_ASKED, Ordering::Relaxed);
    }

    /// Saves the state of the wait that a signal handler has interrupted, for the handler's own
    /// wait.
    pub(crate) fn set_aside(&self) -> SetAside {
        // Relaxed, all accesses here and below: the thread's own state. At worst an interrupter
        // wakes it for nothing.
        let aside =
            SetAside { leaving: self.is_leaving(), parker: self.parker.load(Ordering::Relaxed) };
        self.set_leaving(false);
        aside
    }

    /// Restores the saved state: the handler's own wait is over.
    pub(crate) fn take_up(&self, aside: SetAside) {
        // Relaxed: see `set_aside`. (Release for the parker, as where it was first stored.)
        self.parker.store(aside.parker, Ordering::Release);
        self.leaving.store(aside.leaving.into(), Ordering::Relaxed);
    }
}
