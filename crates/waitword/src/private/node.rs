//! The waiter's node, and the queues that nodes form inside a bucket.
//!
//! A node is on its waiter's stack (a `wait_any` has one for each word). The nodes of one word form
//! a ring in order of arrival. The first node of each ring is a link in the bucket's chain:
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
//! # The life of a node
//!
//! | state    | meaning | ended by |
//! |----------|---------|----------|
//! | queued   | in the ring of its key | a waker, or its waiter (timeout, signal); bucket locked |
//! | claimed  | unlinked by a waker, which will give notice | that waker, after unlocking |
//! | notified | its notice is given; the waker is done with the node | its waiter, which returns |
//!
//! # Invariants
//!
//! 1. Links, and whether the node is queued, are read and written only under the lock of the bucket
//!    of the node's key.
//! 2. Only a holder of the locks of both buckets changes a queued node's key (requeue).
//! 3. A waiter leaves its stack frame only after its notice, or after it has unlinked the node
//!    itself.

use super::Key;
use super::table::Place;
use crate::atomic::{AtomicU32, AtomicUsize, Ordering};
use crate::park::{Notice, Parker, ParkerId, Pool, Sleeps, WakeCalls};
use crate::stats::{self, Event};
use core::cell::Cell;
use core::ptr;

/// See the module documentation. One cache line: to move a waiter to another word touches this line
/// of its stack and one of its neighbour's, and all those stacks are cold.
#[repr(C, align(64))]
pub(crate) struct Node {
    address: AtomicUsize,
    pub(super) mask: u64,
    place: AtomicU32,
    pub(crate) notice: Notice,
    parker: Option<ParkerId>,
    /// 0 for ordinary threads. Higher priorities come first.
    priority: u8,
    queued: Cell<bool>,
    /// A message from the waker to the waiter, written by the waker that claims the node, before
    /// its notice.
    token: Cell<u8>,
    /// Whether `who` holds a mutex's address.
    who_is_mutex: bool,
    /// `pthread_self()` of the waiter, for debugging a program that hangs. For a waiter at a
    /// condvar: the address of its mutex. This address is trusted; the contents of the condvar are
    /// not.
    who: usize,
    /// The next ring of the bucket; used only in the first node of a ring.
    chain: Cell<*const Node>,
    /// The ring, both ways. `next` also links claimed nodes ([`Claimed`]).
    prev: Cell<*const Node>,
    next: Cell<*const Node>,
}

impl Node {
    #[inline]
    pub(crate) fn new(key: Key, mask: u64, parker: Option<ParkerId>, priority: u8) -> Self {
        Self {
            address: AtomicUsize::new(key.address),
            place: AtomicU32::new(key.place.to_bits()),
            notice: Notice::new(),
            mask,
            parker,
            priority,
            queued: Cell::new(false),
            token: Cell::new(0),
            who_is_mutex: false,
            who: thread_handle(),
            chain: Cell::new(ptr::null()),
            prev: Cell::new(ptr::null()),
            next: Cell::new(ptr::null()),
        }
    }

    /// Makes it the node of a waiter at a condvar, which goes from there to this mutex. The parker
    /// then holds the thread.
    #[inline]
    pub(crate) fn bound_to(mut self, mutex: usize, parker: &Parker<'_>) -> Self {
        parker.note_thread(self.who);
        self.who_is_mutex = true;
        self.who = mutex;
        self
    }

    /// Whether it belongs to a condvar's waiter that goes to this mutex.
    #[inline]
    pub(super) fn is_bound_to(&self, mutex: usize) -> bool {
        self.who_is_mutex && self.who == mutex
    }

    /// `pthread_self()` of the waiter; 0 if that is not known.
    #[cfg(not(loom))]
    pub(super) fn thread(&self, parkers: &Pool) -> usize {
        match self.who_is_mutex {
            false => self.who,
            true => self.parker.map_or(0, |id| parkers.noted_thread(id)),
        }
    }

    /// The current key. Exact only under the lock of its bucket: otherwise a requeue may change it
    /// at any time.
    #[inline]
    pub(super) fn key(&self) -> Key {
        // Relaxed: a reader without the lock looks again once it has it.
        Key {
            address: self.address.load(Ordering::Relaxed),
            place: Place::from_bits(self.place.load(Ordering::Relaxed)),
        }
    }

    pub(super) fn set_key(&self, key: Key) {
        self.address.store(key.address, Ordering::Relaxed);
        self.place.store(key.place.to_bits(), Ordering::Relaxed);
    }

    /// The waker's message: 0 unless it left one. The waiter reads it once its notice is given.
    #[inline]
    pub(crate) fn token(&self) -> u8 {
        self.token.get()
    }

    /// Whether it is in its key's queue. Read under the lock of its bucket.
    pub(super) fn is_queued(&self) -> bool {
        self.queued.get()
    }
}

#[cfg(not(loom))]
fn thread_handle() -> usize {
    // SAFETY: `pthread_self` has no preconditions; it reads the thread pointer.
    unsafe { libc::pthread_self() as usize }
}

#[cfg(loom)]
fn thread_handle() -> usize {
    0
}

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
    #[cfg(loom)]
    pub(super) fn new() -> Self {
        Self {
            first: Cell::new(ptr::null()),
        }
    }

    #[cfg(loom)]
    pub(super) fn is_empty(&self) -> bool {
        self.first.get().is_null()
    }

    /// Forgets all queues: those of a parent, in its forked child.
    #[cfg(not(loom))]
    pub(super) fn forget(&self) {
        self.first.set(ptr::null());
    }

    /// The link that leads to the first node waiting on `key`, and that node; null if there is
    /// none.
    ///
    /// # Safety
    /// The bucket's lock is held. This holds for every function below, too.
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
        // SAFETY: the lock is held, by this function's contract: no other thread follows or changes
        // links. `node` is alive and in no queue, by the same contract. All other pointers are
        // links of linked nodes: those are alive (invariant 3), and in a ring they lead to linked
        // nodes again.
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
            // In front of the first node of a ring is behind its last.
            let mut behind = head;
            if (*head.prev.get()).priority < new.priority {
                // A real-time waiter: before the first of lower priority.
                while behind.priority >= new.priority {
                    behind = &*behind.next.get();
                }
                if ptr::eq(behind, head) {
                    new.chain.set(head.chain.get());
                    link.set(node);
                }
            }
            let ahead = behind.prev.replace(node);
            (*ahead).next.set(node);
            new.prev.set(ahead);
            new.next.set(behind);
        }
    }

    /// Adds a node in front of all nodes of its key whose priority is at most its own.
    ///
    /// # Safety
    /// As above.
    pub(super) unsafe fn push_in_front(&self, node: *const Node) {
        // SAFETY: the lock is held, by this function's contract: no other thread follows or changes
        // links. `node` is alive and in no queue, by the same contract. All other pointers are
        // links of linked nodes: those are alive (invariant 3), and in a ring they lead to linked
        // nodes again.
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
            let mut behind = head;
            if head.priority <= new.priority {
                new.chain.set(head.chain.get());
                link.set(node);
            } else {
                // Past the waiters of higher priority, which may be all of them.
                while behind.priority > new.priority {
                    behind = &*behind.next.get();
                    if ptr::eq(behind, head) {
                        break;
                    }
                }
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

    /// Unlinks up to `count` nodes waiting on `key` with a bit of `mask`, in queue order, and
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
        mask: u64,
        take: impl FnMut(&Node),
    ) -> usize {
        // SAFETY: forwards this function's own contract: `take_those` requires the same of the lock
        // and of `take`.
        unsafe { self.take_those(key, count, |node| node.mask & mask != 0, take) }
    }

    /// The same for the nodes that `chosen` accepts.
    ///
    /// # Safety
    /// As above.
    #[inline]
    pub(super) unsafe fn take_those(
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
    #[cfg(not(loom))]
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

/// Nodes that a waker has taken out and must notify once the bucket is unlocked.
#[must_use = "claimed waiters must be notified"]
pub(crate) struct Claimed {
    first: *const Node,
    last: *const Node,
    count: usize,
}

impl Claimed {
    pub(crate) fn new() -> Self {
        Self {
            first: ptr::null(),
            last: ptr::null(),
            count: 0,
        }
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

#[cfg(all(test, not(loom)))]
mod tests;
