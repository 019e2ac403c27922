//! A notice: the event that a sleeper waits for. The parent module describes its states and why no
//! wake-up is lost.

use crate::atomic::{AtomicU32, Ordering};

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;
const ALONE: u32 = 2;
const GIVEN: u32 = 3;

/// One reason to wake up, given once.
pub(crate) struct Notice {
    state: AtomicU32,
}

/// Where the thread that waits for a notice sleeps, if it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sleeps {
    /// Nowhere: it reads the notice itself and needs no wake call.
    Not,
    /// On its group's word.
    InGroup,
    /// On its parker's own word.
    Alone,
}

/// The notices that one thread waits for: one, or several.
pub(crate) trait Notices {
    /// Whether one has been given. Acquire: everything its giver did before is visible.
    fn any_given(&self) -> bool;

    /// Announces to the givers of all of them that this thread is about to sleep. Returns false if
    /// one has been given; then the thread must not sleep.
    fn announce(&self, sleeps: Sleeps) -> bool;
}

impl Notice {
    pub(crate) fn new() -> Self {
        Self { state: AtomicU32::new(AWAKE) }
    }

    /// Gives the notice; returns where its thread sleeps. This is the waker's last access: the
    /// notice may be gone at once.
    #[inline]
    pub(crate) fn give(&self) -> Sleeps {
        // Release: what the waker did before is visible to the woken thread. Acquire: the increment
        // of `calls` that follows must come after everything that the sleeper read before it
        // announced itself.
        match self.state.swap(GIVEN, Ordering::AcqRel) {
            ASLEEP => Sleeps::InGroup,
            ALONE => Sleeps::Alone,
            _ => Sleeps::Not,
        }
    }
}

impl Notices for Notice {
    #[inline]
    fn any_given(&self) -> bool {
        self.state.load(Ordering::Acquire) == GIVEN
    }

    #[inline]
    fn announce(&self, sleeps: Sleeps) -> bool {
        let announced = match sleeps {
            Sleeps::Not => AWAKE,
            Sleeps::InGroup => ASLEEP,
            Sleeps::Alone => ALONE,
        };
        // Release: see `give`. Acquire on failure: as in `any_given`.
        self.state
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| {
                (state != GIVEN).then_some(announced)
            })
            .is_ok()
    }
}
