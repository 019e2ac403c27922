//! Sections with two buckets: a requeue, and the wakes of two words in one step.
//!
//! The buckets are locked in the order of their addresses, and once if they are the same.

use super::claimed::Claimed;
use super::key::Key;
use super::node::Node;
use super::section::{Section, claim_from, has_waiters};
use super::table::Found;
use super::waiter_table::WaiterTable;
use crate::stats::{self, Event};
use core::ptr;

impl WaiterTable {
    /// Locks the buckets of two keys. First counts a waiter in at `to`, for the waiters that the
    /// caller is about to move there: a later waker of `to` must take the lock.
    pub(crate) fn lock_pair(&self, from: Key, to: Key) -> Pair<'_> {
        let section = Section::enter(self);
        loop {
            let table = self.table();
            let (from_found, to_found) = (table.find(from), table.find(to));
            to_found.bucket.announce(to_found.lane);
            let mut order = [from_found.bucket, to_found.bucket];
            order.sort_unstable_by_key(|&bucket| ptr::from_ref(bucket));
            let [first, second] = order;
            first.lock();
            if self.is_current(table) {
                if !ptr::eq(first, second) {
                    second.lock();
                }
                return Pair { from: (from, from_found), to: (to, to_found), _section: section };
            }
            to_found.bucket.count(to_found.lane, -1);
            // SAFETY: `first` was locked above and not unlocked since. The second was not locked:
            // the table is not current.
            unsafe { first.unlock() };
        }
    }
}

/// Two locked buckets, or one twice: those of a word and of the word that its waiters move to.
pub(crate) struct Pair<'a> {
    from: (Key, Found<'a>),
    to: (Key, Found<'a>),
    _section: Section<'a>,
}

impl Pair<'_> {
    /// Unlinks waiters of the first word; the caller notifies them after the unlock.
    pub(crate) fn claim_from(&self, count: usize, mask: u64, claimed: &mut Claimed) -> usize {
        let (key, found) = self.from;
        // SAFETY: `self` has this bucket locked.
        unsafe { claim_from(found, key, count, mask, claimed) }
    }

    /// Whether any thread waits on the first word.
    pub(crate) fn has_waiters(&self) -> bool {
        let (key, found) = self.from;
        // SAFETY: `self` has this bucket locked.
        unsafe { has_waiters(key, found) }
    }

    /// The mask of the first waiter on the first word, a condvar, that is bound to this mutex.
    pub(crate) fn first_bound_to(&self, mutex: usize) -> Option<u64> {
        let (key, found) = self.from;
        // SAFETY: the first word's bucket is locked as long as `self` exists. The closures only
        // read nodes.
        unsafe { found.bucket.chain(|chain| chain.first(key, |node| node.is_bound_to(mutex))) }
    }

    /// [`claim_from`](Self::claim_from) for the waiters that are bound to this mutex.
    pub(crate) fn claim_bound_to(
        &self,
        mutex: usize,
        count: usize,
        claimed: &mut Claimed,
    ) -> usize {
        let (key, Found { bucket, lane, .. }) = self.from;
        let chosen = |node: &Node| node.is_bound_to(mutex);
        // SAFETY: the first word's bucket is locked as long as `self` exists: `chain`, `take`
        // and `push` require that. `chosen` only reads nodes, and `push` links nodes that
        // `take` has unlinked.
        let taken = unsafe {
            bucket.chain(|chain| chain.take(key, count, chosen, |node| claimed.push(node)))
        };
        bucket.count(lane, -(taken as isize));
        taken
    }

    /// [`claim_from`](Self::claim_from) for waiters of the second word.
    pub(crate) fn claim_to(&self, count: usize, mask: u64, claimed: &mut Claimed) -> usize {
        let (key, found) = self.to;
        // SAFETY: `self` has this bucket locked.
        unsafe { claim_from(found, key, count, mask, claimed) }
    }

    /// Moves up to `count` waiters of the first word behind those of the second; returns how many.
    /// If both are the same word, no waiter moves, but those that would have are counted, as in the
    /// kernel.
    pub(crate) fn move_waiters(&self, count: usize) -> usize {
        self.move_chosen(count, |_| true)
    }

    /// [`move_waiters`](Self::move_waiters) for the waiters that are bound to this mutex, the
    /// second word.
    pub(crate) fn move_bound_to(&self, mutex: usize, count: usize) -> usize {
        self.move_chosen(count, |node| node.is_bound_to(mutex))
    }

    fn move_chosen(&self, count: usize, chosen: impl Fn(&Node) -> bool) -> usize {
        let (from, from_found) = self.from;
        let (to, to_found) = self.to;
        let (from_bucket, to_bucket) = (from_found.bucket, to_found.bucket);
        // SAFETY: both buckets are locked as long as `self` exists, so a node's key may change
        // (`node.rs`, invariant 2). A moved node has just been unlinked, and it stays in place, as
        // the thread that first pushed it has promised. It is put into the other bucket's chain, or
        // behind the nodes of another key in the same one, which `take` allows. Neither
        // bucket's `chain` is called again inside its own.
        let moved = unsafe {
            if from == to {
                from_bucket.chain(|chain| chain.count(from, count))
            } else if ptr::eq(from_bucket, to_bucket) {
                from_bucket.chain(|chain| {
                    chain.take(from, count, &chosen, |node| {
                        node.set_key(to);
                        chain.push(node);
                    })
                })
            } else {
                from_bucket.chain(|from_chain| {
                    to_bucket.chain(|to_chain| {
                        from_chain.take(from, count, &chosen, |node| {
                            node.set_key(to);
                            to_chain.push(node);
                        })
                    })
                })
            }
        };
        if from != to && moved > 0 {
            to_bucket.count(to_found.lane, moved as isize);
            from_bucket.note_move();
            from_bucket.count(from_found.lane, -(moved as isize));
            stats::count_many(Event::Requeues, moved);
        }
        moved
    }
}

impl Drop for Pair<'_> {
    fn drop(&mut self) {
        let (from, to) = (self.from.1.bucket, self.to.1.bucket);
        // The waiter that was counted in at the target before the locks were taken.
        to.count(self.to.1.lane, -1);
        // SAFETY: both were locked when this was made, once if they are the same, and nothing else
        // unlocks them.
        unsafe {
            from.unlock();
            if !ptr::eq(from, to) {
                to.unlock();
            }
        }
    }
}
