//! Claimed waiters: a waker has unlinked their nodes, and notifies them once the bucket is
//! unlocked.
//!
//! The waker keeps the nodes in a list through their `next` links, so it needs no memory however
//! many there are. It makes one system call for each group of 32 sleepers (`park/batch.rs`).
//! "Invariant 3" below is that of `node.rs`: a waiter leaves its stack frame only after its notice.

use super::node::Node;
use crate::park::{ParkerId, Pool, Sleeps, WakeCalls};
use crate::stats::{self, Event};
use core::ptr;

/// Nodes that a waker has taken out and must notify once the bucket is unlocked.
#[must_use = "claimed waiters must be notified"]
pub(crate) struct Claimed {
    first: *const Node,
    last: *const Node,
    count: usize,
}

impl Claimed {
    pub(crate) fn new() -> Self {
        Self { first: ptr::null(), last: ptr::null(), count: 0 }
    }

    /// Claims a node that has just been unlinked.
    ///
    /// # Safety
    /// The lock of the bucket that it was in is still held.
    #[inline]
    pub(super) unsafe fn push(&mut self, node: &Node) {
        node.next.set(ptr::null());
        // SAFETY: null, or the node that was claimed last. It has not been notified, since that
        // consumes `self`, and until then its waiter does not leave (invariant 3).
        match unsafe { self.last.as_ref() } {
            None => self.first = node,
            Some(last) => last.next.set(node),
        }
        self.last = node;
        self.count += 1;
    }

    /// Leaves a token in each node for its waiter to find when it wakes up: one for the first,
    /// another for the rest.
    pub(crate) fn set_tokens(&self, first: u8, others: u8) {
        let mut node = self.first;
        let mut token = first;
        // SAFETY: null, or a node that was claimed and not notified yet, since that consumes
        // `self`. Its waiter does not leave before (invariant 3), and only the thread that claimed
        // it touches it.
        while let Some(claimed) = unsafe { node.as_ref() } {
            claimed.token.set(token);
            token = others;
            node = claimed.next.get();
        }
    }

    /// Notifies all of them, with few system calls; returns how many there were.
    ///
    /// No bucket lock may be held: this makes system calls.
    #[inline]
    pub(crate) fn notify(self, pool: &Pool) -> usize {
        match self.count {
            0 => {}
            // SAFETY: the one claimed node, which this thread has claimed and not notified yet.
            // `self` is consumed, so the node is not touched again.
            1 => unsafe {
                let (parker, sleeps) = notify(self.first);
                pool.wake_one(parker, sleeps);
            },
            _ => self.notify_all(pool),
        }
        stats::count_many(Event::Wakes, self.count);
        self.count
    }

    #[cold]
    fn notify_all(&self, pool: &Pool) {
        let mut calls = WakeCalls::new(pool);
        let mut node = self.first;
        // SAFETY: null, or a node that this thread has claimed and not notified yet: its waiter
        // does not leave before (invariant 3).
        while let Some(claimed) = unsafe { node.as_ref() } {
            node = claimed.next.get();
            // SAFETY: claimed and not notified yet. The link to the next node has been read, and
            // this node is not touched again.
            let (parker, sleeps) = unsafe { notify(claimed) };
            calls.add(parker, sleeps);
        }
    }
}

/// The last access to a claimed node. Returns the parker of its thread, and where that sleeps.
///
/// # Safety
/// The caller has claimed the node, and does not touch it again.
#[inline]
unsafe fn notify(node: *const Node) -> (Option<ParkerId>, Sleeps) {
    // SAFETY: the caller has claimed the node, so its waiter does not leave before the notice
    // (invariant 3). `give` is the last use of the reference: from then on the node may be gone.
    let node = unsafe { &*node };
    let parker = node.parker;
    (parker, node.notice.give())
}
