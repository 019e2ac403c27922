//! Chains: what a holder itself waited for while it kept a lock.
//!
//! A thread remembers its last waits for locks and who kept them. When it releases a lock that
//! other threads wait for, and it spent most of that time in such a wait, the release is charged to
//! the holder of *that* lock. That one's release was charged in the same way, so a wait is charged
//! to the end of its chain.

use crate::holders::By;
use core::cell::Cell;

/// How many waits are remembered.
const KEPT: usize = 4;

/// A wait for a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waited {
    pub(crate) address: u64,
    pub(crate) began: u64,
    pub(crate) ended: u64,
    /// Who kept it.
    pub(crate) by: By,
}

/// The last waits of a thread for locks.
#[derive(Debug)]
pub(crate) struct Chain {
    waits: [Cell<Waited>; KEPT],
    next: Cell<usize>,
}

impl Chain {
    pub(crate) const fn new() -> Self {
        const NONE: Waited = Waited {
            address: 0,
            began: 0,
            ended: 0,
            by: By {
                thread: 0,
                stack: 0,
                shares: crate::holders::Shares { running: 0, preempted: 0, asleep: 0, call: 0 },
                next: 0,
            },
        };
        Self { waits: [const { Cell::new(NONE) }; KEPT], next: Cell::new(0) }
    }

    /// The thread has waited for a lock.
    pub(crate) fn note(&self, waited: Waited) {
        let next = self.next.get() % KEPT;
        self.waits[next].set(waited);
        self.next.set(next + 1);
    }

    /// The wait that took more than half of the time between these two.
    pub(crate) fn most_of(&self, since: u64, now: u64) -> Option<Waited> {
        self.waits.iter().map(Cell::get).find(|wait| {
            let both = wait.ended.min(now).saturating_sub(wait.began.max(since));
            both > now.saturating_sub(since) / 2
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_that_took_most_of_the_time_is_found() {
        let chain = Chain::new();
        assert_eq!(chain.most_of(0, 100), None);
        let wait = |address, began, ended| Waited { address, began, ended, by: By::default() };
        chain.note(wait(0x10, 0, 30));
        chain.note(wait(0x20, 40, 95));
        let found = |since, now| chain.most_of(since, now).map(|wait| wait.address);
        assert_eq!(found(0, 100), Some(0x20));
        assert_eq!(found(0, 120), None);
        assert_eq!(found(0, 35), Some(0x10));
        // What came before does not count.
        assert_eq!(found(90, 110), None);
        assert_eq!(found(96, 100), None);
        (0..KEPT as u64).for_each(|n| chain.note(wait(0x30, 200 + n, 200 + n)));
        assert_eq!(found(0, 100), None);
    }
}
