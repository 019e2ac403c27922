//! What ends one thread's waits before their time: the words that say so. How they are used:
//! `park/interrupt.rs`, and `lock/interrupter.rs` for waits in the kernel.
//!
//! | word | written by |
//! |------|------------|
//! | `requested` | any thread: the wait is to end |
//! | `leaving` | a signal handler of the thread itself, which wants to leave the function that it interrupted |
//! | `parker`, `time`, `tid` | the thread: where it sleeps. An interrupter moves `time` to the past |

use super::moving_time::Time;
use crate::atomic::{AtomicU32, Ordering};

const NOT_ASKED: u32 = 0;
const ASKED: u32 = 1;

/// How one thread's waits are reached.
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

/// What was known of a wait that a signal handler has interrupted, while it waits itself.
#[derive(Clone, Copy, Debug)]
pub struct SetAside {
    leaving: bool,
    parker: u32,
}

impl Interrupts {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self {
            requested: AtomicU32::new(NOT_ASKED),
            leaving: AtomicU32::new(0),
            parker: AtomicU32::new(0),
            tid: AtomicU32::new(0),
            time: Time::past(),
        }
    }

    /// The same for a model, in which atomics are not made in constants.
    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self {
            requested: AtomicU32::new(NOT_ASKED),
            leaving: AtomicU32::new(0),
            parker: AtomicU32::new(0),
            tid: AtomicU32::new(0),
            time: Time::past(),
        }
    }

    /// Asks. Its place among what follows is the caller's to see to.
    pub(crate) fn ask(&self) {
        // Relaxed: a fence follows.
        self.requested.store(ASKED, Ordering::Relaxed);
    }

    /// Says whether the thread leaves. For itself and its own signal handlers.
    pub(crate) fn set_leaving(&self, leaving: bool) {
        // Relaxed: it is read by the same thread.
        self.leaving.store(leaving.into(), Ordering::Relaxed);
    }

    /// Whether another thread has asked, and was not heard yet.
    pub(crate) fn is_asked(&self) -> bool {
        // Relaxed: what comes first is told by the fences, and by `calls` (`park/interrupt.rs`).
        self.requested.load(Ordering::Relaxed) != NOT_ASKED
    }

    /// Whether it leaves.
    pub(crate) fn is_leaving(&self) -> bool {
        // Relaxed: it is written by the same thread.
        self.leaving.load(Ordering::Relaxed) != 0
    }

    /// Whether the wait is to end.
    pub(crate) fn is_requested(&self) -> bool {
        self.is_asked() || self.is_leaving()
    }

    /// Nobody has asked.
    pub(crate) fn clear(&self) {
        // Relaxed: the thread looks next whether it was asked.
        self.requested.store(NOT_ASKED, Ordering::Relaxed);
    }

    /// Sets aside what the function that a signal handler has interrupted needs.
    pub(crate) fn set_aside(&self) -> SetAside {
        // Relaxed, all of them, here and below: of this thread; who interrupts it wakes it for
        // nothing at worst.
        let aside = SetAside {
            leaving: self.is_leaving(),
            parker: self.parker.load(Ordering::Relaxed),
        };
        self.set_leaving(false);
        aside
    }

    /// The handler's own wait is over.
    pub(crate) fn take_up(&self, aside: SetAside) {
        // Relaxed: see `set_aside`. (Release for the parker, as where it was first stored.)
        self.parker.store(aside.parker, Ordering::Release);
        self.leaving.store(aside.leaving.into(), Ordering::Relaxed);
    }
}
