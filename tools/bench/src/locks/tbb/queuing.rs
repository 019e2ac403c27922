//! oneTBB's queuing mutexes, and the storage of their nodes.
//!
//! A thread that locks one supplies a node that stays in the queue until it unlocks: a
//! `scoped_lock`. In a C++ program the node is on the caller's stack. Here locking and unlocking
//! are two calls, so each thread has its own nodes; it takes one to lock and gets it back when it
//! unlocks. Meanwhile the node is remembered:
//!
//! | node of | remembered | reason |
//! |---|---|---|
//! | a mutex, a writer | next to the lock, on its own cache line | there is one; locks may nest |
//! | a reader | in the thread, one at a time | there are many |
//!
//! This adds a load and a store or two in the thread's own memory. A node in a queue is never
//! freed, even if its thread exits and leaves the lock locked.

use super::library::functions;
use crate::locks::traits::{BenchMutex, BenchRwLock};
use core::cell::{Cell, UnsafeCell};
use core::ffi::c_void;
use core::ptr::{NonNull, null_mut};

/// Memory for a `scoped_lock`, on its own cache line because its thread spins on it.
#[derive(Debug)]
#[repr(C, align(128))]
struct Node {
    place: UnsafeCell<[usize; 4]>,
    /// The next node in the thread's list, if this one is free.
    next: Cell<Option<NonNull<Self>>>,
}

impl Node {
    fn place(node: NonNull<Self>) -> *mut c_void {
        // SAFETY: a node is freed only while it is free, by the thread that has it in its list.
        unsafe { node.as_ref().place.get().cast() }
    }
}

/// A thread's free nodes.
struct Free(Cell<Option<NonNull<Node>>>);

impl Free {
    #[inline(always)]
    fn take(&self) -> NonNull<Node> {
        let Some(node) = self.0.get() else {
            return Self::make();
        };
        // SAFETY: the node is in the list, so it has not been freed.
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

    /// The node must be in no queue and have no other user.
    #[inline(always)]
    fn give_back(&self, node: NonNull<Node>) {
        // SAFETY: the node was made by `make` and has not been freed.
        unsafe { node.as_ref().next.set(self.0.get()) };
        self.0.set(Some(node));
    }
}

impl Drop for Free {
    fn drop(&mut self) {
        while let Some(node) = self.0.get() {
            // SAFETY: made by `make`, and in the list, so it has no other user.
            let node = unsafe { Box::from_raw(node.as_ptr()) };
            self.0.set(node.next.get());
        }
    }
}

thread_local! {
    static FREE: Free = const { Free(Cell::new(None)) };
    /// The node of the lock that the thread holds for reading.
    static READER: Cell<Option<NonNull<Node>>> = const { Cell::new(None) };
}

/// The holder's node, next to the lock; only the holder accesses it.
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
        // SAFETY: the caller guarantees it.
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

// SAFETY: the tail is accessed only atomically by oneTBB's functions, `held` only by the holder.
unsafe impl Send for QueuingMutex {}
// SAFETY: as above.
unsafe impl Sync for QueuingMutex {}

// SAFETY: oneTBB's own lock.
unsafe impl BenchMutex for QueuingMutex {
    const NAME: &'static str = "tbb::queuing_mutex";

    fn new() -> Self {
        Self { tail: UnsafeCell::new(0), held: Held::new() }
    }

    #[inline(never)]
    fn lock(&self) {
        let node = FREE.with(Free::take);
        // SAFETY: the lock was made by `new`, and no other thread has the node.
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
        // SAFETY: the caller holds the lock, per this method's contract.
        let node = unsafe { self.held.node() };
        // SAFETY: it is the holder's node in the queue.
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
        Self { tail: UnsafeCell::new(0), writer: Held::new() }
    }

    #[inline(never)]
    fn read_lock(&self) {
        let node = FREE.with(Free::take);
        // SAFETY: the lock was made by `new`, and no other thread has the node.
        unsafe { (functions().queuing_rw_lock_shared)(self.tail.get(), Node::place(node)) };
        let other = READER.replace(Some(node));
        debug_assert!(other.is_none(), "one read lock a thread at a time");
    }

    #[inline(never)]
    unsafe fn read_unlock(&self) {
        let node = READER.take().expect("the calling thread has locked for reading");
        // SAFETY: the node is in this lock's queue, because the caller holds it for reading.
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
        // SAFETY: the caller holds it for writing, per this method's contract.
        let node = unsafe { self.writer.node() };
        // SAFETY: it is the holder's node in the queue.
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
        assert!(super::super::is_there(), "it was present at build time");
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
            // The failed attempts have taken and returned a third node.
            let mut free = Vec::new();
            FREE.with(|list| {
                let mut next = list.0.get();
                while let Some(node) = next {
                    free.push(node.as_ptr());
                    // SAFETY: the node is in the list, so it has not been freed.
                    next = unsafe { node.as_ref().next.get() };
                }
            });
            assert_eq!(free.len(), 3, "no node is lost or duplicated");
            assert!(nodes.concat().iter().all(|node| free.contains(node)));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_thread_may_end_and_leave_it_locked() {
        assert!(super::super::is_there(), "it was present at build time");
        let (mutex, lock) = (QueuingMutex::new(), QueuingRwMutex::new());
        thread::scope(|scope| {
            scope.spawn(|| {
                mutex.lock();
                lock.read_lock();
            });
        });
        assert!(!mutex.try_lock(), "its node is still in the queue");
        // Joins the queue behind the other thread's node.
        lock.read_lock();
        // SAFETY: locked above.
        unsafe { lock.read_unlock() };
    }
}
