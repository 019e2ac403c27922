//! The queues that nodes form inside a bucket.
//!
//! The nodes of one word form a ring in order of arrival. The first node of each ring is a link in
//! the bucket's chain:
//!
//! ```text
//!   bucket.chain ──► A1 ──chain──► B1 ──chain──► C1 ──► ∅        words A, B, C share the bucket
//!                    ║ ring        ║
//!                    A2            B1 (alone: its own neighbour)
//!                    ║
//!                    A3     A1.prev is A3, the last: joining a queue takes no walk
//! ```
//!
//! So a search passes one node for each *word* in the bucket, however many threads wait on a word.
//!
//! "Invariant 3" below is that of `node.rs`: a waiter leaves its stack frame only after its notice,
//! or after it has unlinked the node itself. So a linked node is alive.

use super::key::Key;
use super::node::Node;
use core::cell::Cell;
use core::ptr;

/// A waker's decision about a waiter that it comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Take it out of the queue and wake it.
    Take,
    /// Leave it in the queue; look at the next.
    Pass,
    /// Leave it in the queue, and all behind it.
    Stop,
}

/// All queues of one bucket. Every method is called under the bucket's lock.
pub(crate) struct Chain {
    first: Cell<*const Node>,
}

impl Chain {
    pub(super) fn new() -> Self {
        Self { first: Cell::new(ptr::null()) }
    }

    #[cfg(loom)]
    pub(super) fn is_empty(&self) -> bool {
        self.first.get().is_null()
    }

    /// Forgets all queues: those of a parent, in its forked child.
    pub(super) fn forget(&self) {
        self.first.set(ptr::null());
    }

    /// The link that leads to the first node waiting on `key`, and that node; null if there is
    /// none.
    ///
    /// # Safety
    /// The caller holds the bucket's lock. The same is required by every function below.
    #[inline]
    unsafe fn find(&self, key: Key) -> (&Cell<*const Node>, *const Node) {
        let mut link = &self.first;
        // SAFETY: a link is null or leads to a linked node. That node is alive (invariant 3), and
        // it stays linked while the lock is held, which this function's contract demands.
        while let Some(node) = unsafe { link.get().as_ref() } {
            if node.key() == key {
                break;
            }
            link = &node.chain;
        }
        (link, link.get())
    }

    /// Adds a node behind all nodes of its key whose priority is at least its own.
    ///
    /// # Safety
    /// As above; the node is in no queue and stays in place until it leaves this one.
    #[inline]
    pub(super) unsafe fn push(&self, node: *const Node) {
        // SAFETY: this function's own contract. The place is found under the lock: all pointers are
        // links of linked nodes, which are alive (invariant 3), and in a ring they lead to linked
        // nodes again.
        unsafe {
            self.insert(node, |new, head| {
                // In front of the first node of a ring is behind its last.
                let mut behind = head;
                if (*head.prev.get()).priority >= new.priority {
                    return (behind, false);
                }
                // A real-time waiter: before the first of lower priority.
                while behind.priority >= new.priority {
                    behind = &*behind.next.get();
                }
                (behind, ptr::eq(behind, head))
            });
        }
    }

    /// Adds a node in front of all nodes of its key whose priority is at most its own.
    ///
    /// # Safety
    /// As above.
    pub(super) unsafe fn push_in_front(&self, node: *const Node) {
        // SAFETY: as in `push`.
        unsafe {
            self.insert(node, |new, head| {
                let mut behind = head;
                if head.priority <= new.priority {
                    return (behind, true);
                }
                // Past the waiters of higher priority, which may be all of them.
                while behind.priority > new.priority {
                    behind = &*behind.next.get();
                    if ptr::eq(behind, head) {
                        break;
                    }
                }
                (behind, false)
            });
        }
    }

    /// Adds a node to the ring of its key, or begins that ring. `place` is given the node and the
    /// first one of the ring. It returns the node that the new one goes in front of, and whether
    /// the new one is then the first.
    ///
    /// # Safety
    /// As for [`push`](Self::push); `place` returns a node of the ring.
    #[inline(always)]
    unsafe fn insert<'n>(
        &self,
        node: *const Node,
        place: impl FnOnce(&Node, &'n Node) -> (&'n Node, bool),
    ) {
        // SAFETY: the lock is held, by this function's contract: no other thread follows or changes
        // links. `node` is alive and in no queue, by the same contract. All other pointers are
        // links of linked nodes: those are alive (invariant 3).
        unsafe {
            let new = &*node;
            new.queued.set(true);
            let (link, first) = self.find(new.key());
            let Some(head) = first.as_ref() else {
                new.chain.set(self.first.replace(node));
                new.prev.set(node);
                new.next.set(node);
                return;
            };
            let (behind, is_first) = place(new, head);
            if is_first {
                new.chain.set(head.chain.get());
                link.set(node);
            }
            let ahead = behind.prev.replace(node);
            (*ahead).next.set(node);
            new.prev.set(ahead);
            new.next.set(behind);
        }
    }

    /// Unlinks a node.
    ///
    /// # Safety
    /// As above; the node is in one of this bucket's queues.
    #[inline]
    pub(super) unsafe fn remove(&self, node: &Node) {
        // SAFETY: the lock is held, by this function's contract: no other thread follows or changes
        // links. The node is in one of this bucket's queues, by the same contract, so its ring's
        // links lead to linked nodes, which are alive (invariant 3).
        unsafe {
            node.queued.set(false);
            let (link, first) = self.find(node.key());
            let next = node.next.get();
            if ptr::eq(next, node) {
                link.set(node.chain.get());
                return;
            }
            (*node.prev.get()).next.set(next);
            (*next).prev.set(node.prev.get());
            if ptr::eq(first, node) {
                (*next).chain.set(node.chain.get());
                link.set(next);
            }
        }
    }

    /// Unlinks up to `count` nodes waiting on `key` that `chosen` accepts, in queue order, and
    /// passes each to `take`; returns how many.
    ///
    /// # Safety
    /// As above; `take` does not touch this chain, except to add the node behind the nodes of
    /// another key.
    #[inline]
    pub(super) unsafe fn take(
        &self,
        key: Key,
        count: usize,
        chosen: impl Fn(&Node) -> bool,
        mut take: impl FnMut(&Node),
    ) -> usize {
        let mut taken = 0;
        // SAFETY: the lock is held, by this function's contract, and the nodes of the ring are
        // alive while they are linked (invariant 3). Only this loop unlinks any. The next node is
        // read before this one is taken out, and this one is not touched after `take`.
        unsafe {
            let (_, mut node) = self.find(key);
            let Some(head) = node.as_ref() else {
                return 0;
            };
            let last = head.prev.get();
            while taken < count {
                let next = (*node).next.get();
                let was_last = ptr::eq(node, last);
                if chosen(&*node) {
                    self.remove(&*node);
                    take(&*node);
                    taken += 1;
                }
                if was_last {
                    break;
                }
                node = next;
            }
        }
        taken
    }

    /// Unlinks the nodes waiting on `key` that `choose` takes, in queue order, and passes each to
    /// `take`. Returns how many, and whether others are left.
    ///
    /// # Safety
    /// As above; neither `choose` nor `take` touches this chain.
    #[inline]
    pub(super) unsafe fn take_chosen(
        &self,
        key: Key,
        mut choose: impl FnMut(u64) -> Choice,
        mut take: impl FnMut(&Node),
    ) -> (usize, bool) {
        // SAFETY: the lock is held, by this function's contract, and the nodes of the ring are
        // alive while they are linked (invariant 3). Only this loop unlinks any. The next node is
        // read before this one is taken out; `last` is only compared.
        unsafe {
            let (_, mut node) = self.find(key);
            let Some(head) = node.as_ref() else {
                return (0, false);
            };
            let last = head.prev.get();
            let (mut taken, mut passed) = (0, false);
            loop {
                let next = (*node).next.get();
                match choose((*node).mask) {
                    Choice::Take => {
                        self.remove(&*node);
                        take(&*node);
                        taken += 1;
                    }
                    Choice::Pass => passed = true,
                    Choice::Stop => return (taken, true),
                }
                if ptr::eq(node, last) {
                    return (taken, passed);
                }
                node = next;
            }
        }
    }

    /// Unlinks all nodes and passes each to `take`.
    ///
    /// # Safety
    /// As above; `take` does not touch this chain.
    pub(super) unsafe fn take_all(&self, mut take: impl FnMut(&Node)) {
        // SAFETY: the lock is held, by this function's contract. The first node is linked each time
        // that it is read, and so alive (invariant 3); `remove` finds it in this chain. A node that
        // was taken out is not touched after `take`.
        unsafe {
            while let Some(node) = self.first.get().as_ref() {
                self.remove(node);
                take(node);
            }
        }
    }

    /// How many nodes wait on `key`, counted no further than `limit`.
    ///
    /// # Safety
    /// As above.
    pub(super) unsafe fn count(&self, key: Key, limit: usize) -> usize {
        // SAFETY: the lock is held, by this function's contract, so all nodes stay linked, and
        // alive (invariant 3); in a ring links lead to linked nodes.
        unsafe {
            let (_, first) = self.find(key);
            let mut node = first;
            let mut counted = 0;
            while counted < limit && !node.is_null() {
                counted += 1;
                node = (*node).next.get();
                if node == first {
                    break;
                }
            }
            counted
        }
    }

    /// The mask of the first node that waits on `key` and that `chosen` accepts.
    ///
    /// # Safety
    /// As above.
    pub(super) unsafe fn first(&self, key: Key, chosen: impl Fn(&Node) -> bool) -> Option<u64> {
        // SAFETY: the lock is held, by this function's contract, so all nodes stay linked, and
        // alive (invariant 3); in a ring links lead to linked nodes.
        unsafe {
            let (_, first) = self.find(key);
            let mut node = first;
            while let Some(waiter) = node.as_ref() {
                if chosen(waiter) {
                    return Some(waiter.mask);
                }
                node = waiter.next.get();
                if node == first {
                    break;
                }
            }
            None
        }
    }

    /// Takes out whole rings, and passes each one's first node and length to `to`. A table's
    /// contents move into a larger one this way.
    ///
    /// # Safety
    /// As above.
    pub(super) unsafe fn take_rings(&self, mut to: impl FnMut(&Node, isize)) {
        let mut ring = self.first.replace(ptr::null());
        // SAFETY: the waiters of the rings do not leave, though no chain leads to them for a
        // moment: to leave, a waiter takes the lock of a bucket that the caller holds, by this
        // function's contract. So the nodes are alive. The link to the next ring is read before
        // `to` changes it.
        unsafe {
            while let Some(first) = ring.as_ref() {
                ring = first.chain.get();
                let mut length = 1;
                let mut node = first.next.get();
                while !ptr::eq(node, first) {
                    length += 1;
                    node = (*node).next.get();
                }
                to(first, length);
            }
        }
    }

    /// Adds a whole ring. No other ring of this bucket has its key.
    ///
    /// # Safety
    /// As above.
    pub(super) unsafe fn add_ring(&self, first: &Node) {
        first.chain.set(self.first.replace(first));
    }

    /// Visits every node, ring by ring.
    ///
    /// # Safety
    /// As above; `see` does not touch this chain.
    pub(super) unsafe fn each(&self, mut see: impl FnMut(&Node)) {
        let mut ring = self.first.get();
        // SAFETY: the lock is held, by this function's contract, and `see` changes no links, so all
        // nodes stay linked, and alive (invariant 3).
        unsafe {
            while let Some(first) = ring.as_ref() {
                let mut node = ring;
                loop {
                    see(&*node);
                    node = (*node).next.get();
                    if node == ring {
                        break;
                    }
                }
                ring = first.chain.get();
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
