//! What a thread did and when, for a replay.

use serde::{Deserialize, Serialize};

/// What a thread begins to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// It begins to wait.
    Waits,
    /// It has acquired what it waited for.
    Holds,
    /// It has released it.
    Works,
}

/// The most recent events of a thread.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Timeline {
    /// Tick and kind of each event. A ring: the oldest event is at `next`.
    events: Vec<(u64, Event)>,
    next: usize,
}

/// Number of events kept.
const MOST: usize = 1 << 16;

impl Timeline {
    pub(super) fn new() -> Self {
        Self { events: Vec::with_capacity(MOST), next: 0 }
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
