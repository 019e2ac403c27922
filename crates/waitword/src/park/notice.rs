//! What a sleeper waits for: see the module above for its states and why none is missed.

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
    /// Nowhere: it looks by itself, and needs no call.
    Not,
    /// On its group's word.
    InGroup,
    /// On its parker's own word.
    Alone,
}

/// The notices that one thread waits for: one, or several.
pub(crate) trait Notices {
    /// Whether one has been given. Acquire: what its giver did before is visible.
    fn any_given(&self) -> bool;

    /// Tells the givers of all of them that we are about to sleep. False if one has been given: then we
    /// must not.
    fn announce(&self, sleeps: Sleeps) -> bool;
}

impl Notice {
    pub(crate) fn new() -> Self {
        Self {
            state: AtomicU32::new(AWAKE),
        }
    }

    /// Gives it; where its thread sleeps. The waker's last touch: the notice may be gone at once.
    #[inline]
    pub(crate) fn give(&self) -> Sleeps {
        // Release: what the waker did before is visible to the woken. Acquire: the count of the call
        // that follows must come after what the sleeper saw before it announced itself.
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
        // Release: see `give`. Acquire on failure: as `any_given`.
        self.state
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| {
                (state != GIVEN).then_some(announced)
            })
            .is_ok()
    }
}
