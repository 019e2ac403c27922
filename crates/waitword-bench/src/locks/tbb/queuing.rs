//! oneTBB's queuing mutexes, and where their nodes are.
//!
//! Who locks one brings a node that stands in the queue until it is unlocked: a `scoped_lock`. In a C++ program
//! that lies on the caller's stack. Here the locking and the unlocking are two calls, so each thread has nodes of its own, of
//! which it takes one to lock and gets it back when it unlocks. Where a node is remembered meanwhile:
//!
//! | node | is remembered | since |
//! |---|---|---|
//! | of a mutex, of a writer | beside the lock, on a cache line of its own | there is one, and locks may be nested |
//! | of a reader | in the thread, one at a time | there are many |
//!
//! That adds a load and a store or two in the thread's own memory. A node in a queue is never freed, even if its thread ends and leaves
//! the lock locked.

use super::library::functions;
use crate::locks::{BenchMutex, BenchRwLock};
use core::cell::{Cell, UnsafeCell};
use core::ffi::c_void;
use core::ptr::{NonNull, null_mut};

/// Room for a `scoped_lock`, on a cache line of its own: its thread spins on it.
#[derive(Debug)]
#[repr(C, align(128))]
struct Node {
    place: UnsafeCell<[usize; 4]>,
    /// In its thread's list, if it is free.
    next: Cell<Option<NonNull<Self>>>,
}

impl Node {
    fn place(node: NonNull<Self>) -> *mut c_void {
        // SAFETY: nodes are freed only by the thread that has them in its list, and only if they are free.
        unsafe { node.as_ref().place.get().cast() }
    }
}

/// A thread's nodes that are free.
struct Free(Cell<Option<NonNull<Node>>>);

impl Free {
    #[inline(always)]
    fn take(&self) -> NonNull<Node> {
        let Some(node) = self.0.get() else {
            return Self::make();
        };
        // SAFETY: in the list, so not freed.
        self.0.set(unsafe { node.as_ref().next.get() });
        node
    }

    #[cold]
    fn make() -> NonNull<Node> {
        NonNull::from(Box::leak(Box::new(Node {
            place: UnsafeCell::new([0; 4]),
            next: Cell::new(None),
        })))
    }

    /// Of a node that stands in no queue and that nobody else has.
    #[inline(always)]
    fn give_back(&self, node: NonNull<Node>) {
        // SAFETY: a node that `make` has made and that is not freed.
        unsafe { node.as_ref().next.set(self.0.get()) };
        self.0.set(Some(node));
    }
}

impl Drop for Free {
    fn drop(&mut self) {
        while let Some(node) = self.0.get() {
            // SAFETY: made by `make`; in the list, so nobody else has it.
            let node = unsafe { Box::from_raw(node.as_ptr()) };
            self.0.set(node.next.get());
        }
    }
}

thread_local! {
    static FREE: Free = const { Free(Cell::new(None)) };
    /// Of the lock that the thread holds for reading.
    static READER: Cell<Option<NonNull<Node>>> = const { Cell::new(None) };
}

/// The node by which the lock is held, beside the lock: touched by the holder only.
#[derive(Debug)]
#[repr(align(128))]
struct Held(Cell<*mut Node>);

impl Held {
    const fn new() -> Self {
        Self(Cell::new(null_mut()))
    }

    #[inline(always)]
    fn put(&self, node: NonNull<Node>) {
        self.0.set(node.as_ptr());
    }

    /// # Safety
    /// The calling thread holds the lock and has [`Held::put`] its node here.
    #[inline(always)]
    unsafe fn node(&self) -> NonNull<Node> {
        // SAFETY: as the caller says.
        unsafe { NonNull::new_unchecked(self.0.get()) }
    }
}

/// `tbb::queuing_mutex`.
#[derive(Debug)]
#[repr(C)]
pub struct QueuingMutex {
    tail: UnsafeCell<usize>,
    held: Held,
}

// SAFETY: the tail is an atomic to those who may touch it; `held` is touched by the holder only.
unsafe impl Send for QueuingMutex {}
// SAFETY: as above.
unsafe impl Sync for QueuingMutex {}

// SAFETY: oneTBB's own lock.
unsafe impl BenchMutex for QueuingMutex {
    const NAME: &'static str = "tbb::queuing_mutex";

    fn new() -> Self {
        Self {
            tail: UnsafeCell::new(0),
            held: Held::new(),
        }
    }

    #[inline(never)]
    fn lock(&self) {
        let node = FREE.with(Free::take);
        // SAFETY: a lock made by `new`, and a node of which nobody else knows.
        unsafe { (functions().queuing_lock)(self.tail.get(), Node::place(node)) };
        self.held.put(node);
    }

    #[inline(never)]
    fn try_lock(&self) -> bool {
        let node = FREE.with(Free::take);
        // SAFETY: as in `lock`.
        let locked = unsafe { (functions().queuing_try_lock)(self.tail.get(), Node::place(node)) };
        if locked {
            self.held.put(node);
        } else {
            FREE.with(|free| free.give_back(node));
        }
        locked
    }

    #[inline(never)]
    unsafe fn unlock(&self) {
        // SAFETY: held by the caller, as it says.
        let node = unsafe { self.held.node() };
        // SAFETY: in the queue, as the holder's.
        unsafe { (functions().queuing_unlock)(Node::place(node)) };
        FREE.with(|free| free.give_back(node));
    }
}

/// `tbb::queuing_rw_mutex`. A thread holds at most one for reading at a time.
#[derive(Debug)]
#[repr(C)]
pub struct QueuingRwMutex {
    tail: UnsafeCell<usize>,
    writer: Held,
}

// SAFETY: as for `QueuingMutex`.
unsafe impl Send for QueuingRwMutex {}
// SAFETY: as above.
unsafe impl Sync for QueuingRwMutex {}

// SAFETY: oneTBB's own lock.
unsafe impl BenchRwLock for QueuingRwMutex {
    const NAME: &'static str = "tbb::queuing_rw_mutex";

    fn new() -> Self {
        Self {
            tail: UnsafeCell::new(0),
            writer: Held::new(),
        }
    }

    #[inline(never)]
    fn read_lock(&self) {
        let node = FREE.with(Free::take);
        // SAFETY: a lock made by `new`, and a node of which nobody else knows.
        unsafe { (functions().queuing_rw_lock_shared)(self.tail.get(), Node::place(node)) };
        let other = READER.replace(Some(node));
        debug_assert!(other.is_none(), "one read lock a thread at a time");
    }

    #[inline(never)]
    unsafe fn read_unlock(&self) {
        let node = READER
            .take()
            .expect("the calling thread has locked for reading");
        // SAFETY: in this lock's queue, as the caller says.
        unsafe { (functions().queuing_rw_unlock)(Node::place(node)) };
        FREE.with(|free| free.give_back(node));
    }

    #[inline(never)]
    fn write_lock(&self) {
        let node = FREE.with(Free::take);
        // SAFETY: as in `read_lock`.
        unsafe { (functions().queuing_rw_lock)(self.tail.get(), Node::place(node)) };
        self.writer.put(node);
    }

    #[inline(never)]
    unsafe fn write_unlock(&self) {
        // SAFETY: held by the caller for writing, as it says.
        let node = unsafe { self.writer.node() };
        // SAFETY: in the queue, as the holder's.
        unsafe { (functions().queuing_rw_unlock)(Node::place(node)) };
        FREE.with(|free| free.give_back(node));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn nested_locks_have_nodes_of_their_own_and_give_them_back() {
        assert!(super::super::is_there(), "the build had it");
        thread::spawn(|| {
            let locks = [QueuingMutex::new(), QueuingMutex::new()];
            let mut nodes = Vec::new();
            for order in [[0, 1], [1, 0]] {
                for lock in &locks {
                    lock.lock();
                    assert!(!lock.try_lock(), "locked twice");
                }
                nodes.push(locks.each_ref().map(|lock| lock.held.0.get()));
                for index in order {
                    // SAFETY: locked above.
                    unsafe { locks[index].unlock() };
                }
            }
            assert_ne!(nodes[0][0], nodes[0][1]);
            nodes.iter_mut().for_each(|nodes| nodes.sort_unstable());
            // The failed attempts have taken and given back a third.
            let mut free = Vec::new();
            FREE.with(|list| {
                let mut next = list.0.get();
                while let Some(node) = next {
                    free.push(node.as_ptr());
                    // SAFETY: in the list, so not freed.
                    next = unsafe { node.as_ref().next.get() };
                }
            });
            assert_eq!(free.len(), 3, "none is lost, none is there twice");
            assert!(nodes.concat().iter().all(|node| free.contains(node)));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_thread_may_end_and_leave_it_locked() {
        assert!(super::super::is_there(), "the build had it");
        let (mutex, lock) = (QueuingMutex::new(), QueuingRwMutex::new());
        thread::scope(|scope| {
            scope.spawn(|| {
                mutex.lock();
                lock.read_lock();
            });
        });
        assert!(!mutex.try_lock(), "its node still stands in the queue");
        // Joins the queue behind the other's node.
        lock.read_lock();
        // SAFETY: locked above.
        unsafe { lock.read_unlock() };
    }
}
