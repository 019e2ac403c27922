//! What a thread did, and when: for a replay.

use serde::{Deserialize, Serialize};

/// What a thread begins to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// It waits.
    Waits,
    /// It has what it waited for.
    Holds,
    /// It has given it back.
    Works,
}

/// The last things a thread did.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Timeline {
    /// At which tick it began what. From `next` on, the older ones.
    events: Vec<(u64, Event)>,
    next: usize,
}

/// So many are kept.
const MOST: usize = 1 << 16;

impl Timeline {
    pub(super) fn new() -> Self {
        Self {
            events: Vec::with_capacity(MOST),
            next: 0,
        }
    }

    #[inline]
    pub(super) fn push(&mut self, at: u64, event: Event) {
        if self.events.len() < MOST {
            self.events.push((at, event));
        } else {
            self.events[self.next] = (at, event);
            self.next = (self.next + 1) % MOST;
        }
    }

    /// Oldest first.
    pub fn events(&self) -> impl Iterator<Item = (u64, Event)> + '_ {
        let (new, old) = self.events.split_at(self.next);
        old.iter().chain(new).copied()
    }
}
