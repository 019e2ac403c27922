//! The longest waits, in fixed memory.

use crate::read::Fold;
use core::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use waitword_record::format::Wait;

/// A wait of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The thread that waited.
    pub thread: u32,
    /// The wait.
    pub wait: Wait,
}

impl Listed {
    fn rank(&self) -> (u64, Reverse<u64>, Reverse<u32>) {
        (self.wait.took, Reverse(self.wait.began), Reverse(self.thread))
    }
}

impl Ord for Listed {
    /// A longer wait is greater; of equal ones the earlier.
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl PartialOrd for Listed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The longest waits for locks, or those for anything else.
#[derive(Debug)]
pub struct Longest {
    limit: usize,
    of_locks: bool,
    kept: BinaryHeap<Reverse<Listed>>,
    left_out: u64,
}

impl Longest {
    /// Keeps no more than `limit` waits: those for locks, or all others.
    pub fn new(limit: usize, of_locks: bool) -> Self {
        Self { limit, of_locks, kept: BinaryHeap::new(), left_out: 0 }
    }

    /// The longest first, and the number of those that are not among them.
    pub fn finish(self) -> (Vec<Listed>, u64) {
        // Sorted in descending order, because of `Reverse`.
        let kept = self.kept.into_sorted_vec();
        (kept.into_iter().map(|Reverse(listed)| listed).collect(), self.left_out)
    }
}

impl Fold for Longest {
    fn add(&mut self, thread: u32, wait: &Wait) {
        if wait.object().is_none_or(|object| object.is_lock() != self.of_locks) {
            return;
        }
        let listed = Listed { thread, wait: *wait };
        if self.kept.len() >= self.limit {
            self.left_out += 1;
            match self.kept.peek() {
                Some(Reverse(shortest)) if *shortest < listed => _ = self.kept.pop(),
                _ => return,
            }
        }
        self.kept.push(Reverse(listed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sites::tests::wait;
    use waitword_record::format::Object;

    #[test]
    fn the_longest_are_kept_and_the_others_counted() {
        let mut longest = Longest::new(3, true);
        for took in [5, 3, 9, 1, 7, 7] {
            longest.add(1, &wait(Object::Mutex, took, 1, 0));
            longest.add(1, &wait(Object::Condvar, 1000, 1, 0));
        }
        let (kept, left_out) = longest.finish();
        assert_eq!(kept.iter().map(|it| it.wait.took).collect::<Vec<_>>(), [9, 7, 7]);
        assert_eq!(left_out, 3);
        let mut none = Longest::new(0, false);
        none.add(1, &wait(Object::Condvar, 1000, 1, 0));
        assert_eq!(none.finish(), (vec![], 1));
    }
}
