//! A waiter's node: its entry in a queue. It is on the waiter's stack (a `wait_any` has one for
//! each word). `chain.rs` describes the queues.
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

use super::awaited::Awaited;
use super::key::{Key, Place};
use crate::atomic::{AtomicU32, AtomicUsize, Ordering};
#[cfg(not(loom))]
use crate::debugger::{Field, fields};
use crate::park::{Notice, Parker, ParkerId, Pool};
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
    pub(super) parker: Option<ParkerId>,
    /// 0 for ordinary threads. Higher priorities come first.
    pub(super) priority: u8,
    pub(super) queued: Cell<bool>,
    /// A message from the waker to the waiter, written by the waker that claims the node, before
    /// its notice.
    pub(super) token: Cell<u8>,
    /// Of a condvar: `thread_or_mutex` holds a mutex's address.
    awaited: Awaited,
    /// `pthread_self()` of the waiter, for debugging a program that hangs. For a waiter at a
    /// condvar: the address of its mutex. This address is trusted; the contents of the condvar are
    /// not.
    thread_or_mutex: usize,
    /// The next ring of the bucket; used only in the first node of a ring.
    pub(super) chain: Cell<*const Node>,
    /// The ring, both ways. `next` also links claimed nodes (`claimed.rs`).
    pub(super) prev: Cell<*const Node>,
    pub(super) next: Cell<*const Node>,
}

#[cfg(not(loom))]
impl Node {
    /// For debuggers.
    pub(super) const FIELDS: [Field; 12] = fields!("node": Self {
        address,
        mask,
        place,
        notice,
        parker,
        priority,
        awaited,
        thread_or_mutex,
        chain,
        prev,
        next,
    });
}

impl Node {
    #[inline]
    pub(crate) fn new(
        key: Key,
        awaited: Awaited,
        mask: u64,
        parker: Option<ParkerId>,
        priority: u8,
    ) -> Self {
        Self {
            address: AtomicUsize::new(key.address),
            place: AtomicU32::new(key.place.to_bits()),
            notice: Notice::new(),
            mask,
            parker,
            priority,
            queued: Cell::new(false),
            token: Cell::new(0),
            awaited,
            thread_or_mutex: thread_handle(),
            chain: Cell::new(ptr::null()),
            prev: Cell::new(ptr::null()),
            next: Cell::new(ptr::null()),
        }
    }

    /// Makes it the node of a waiter at a condvar, which goes from there to this mutex. The parker
    /// then holds the thread.
    #[inline]
    pub(crate) fn bound_to(mut self, mutex: usize, parker: &Parker<'_>) -> Self {
        parker.note_thread(self.thread_or_mutex);
        self.awaited = Awaited::Condvar;
        self.thread_or_mutex = mutex;
        self
    }

    /// Whether it belongs to a condvar's waiter that goes to this mutex.
    #[inline]
    pub(super) fn is_bound_to(&self, mutex: usize) -> bool {
        self.is_bound() && self.thread_or_mutex == mutex
    }

    #[inline]
    fn is_bound(&self) -> bool {
        self.awaited == Awaited::Condvar
    }

    /// `pthread_self()` of the waiter; 0 if that is not known.
    pub(super) fn thread(&self, parkers: &Pool) -> usize {
        match self.is_bound() {
            false => self.thread_or_mutex,
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

fn thread_handle() -> usize {
    // SAFETY: `pthread_self` has no preconditions; it reads the thread pointer.
    unsafe { libc::pthread_self() as usize }
}
