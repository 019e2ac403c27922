//! The calling thread's list of the robust mutexes that it holds. It is glibc's own list, which the
//! kernel walks when the thread ends.
//!
//! The kernel knows one list head per thread, and glibc registers its own in every thread, when the
//! thread starts and in a forked child. Registering another head would hide glibc's robust mutexes
//! from the kernel. So our mutexes are linked into glibc's list, among glibc's own, in any order.
//! That requires glibc's way of linking and the offsets of the two links in `pthread_mutex_t`:
//!
//! ```text
//!   glibc's thread                               a mutex, ours or glibc's
//!   head -  8  robust_prev ------> last node     +  0  word
//!   head +  0  list -------------> first node    ...
//!   head +  8  futex_offset: -32                 + 24  prev  --> predecessor's `next` (or head)
//!   head + 16  list_op_pending --> node or null  + 32  next  --> successor's `next` (or head)
//! ```
//!
//! 1. A link points to a node's `next`, and the word lies `futex_offset` from there. Bit 0 of a
//!    link means that the node it points to has priority inheritance. (`prev`, which the kernel
//!    does not read, never has it.)
//! 2. The kernel reads `list`, each `next`, and `list_op_pending` when the thread ends. So every
//!    store to them leaves a list that it can walk: a new node points into the list before the list
//!    points to it, and a node is bypassed before it is cleared.
//! 3. `list_op_pending` is set before the word or the links are touched and cleared afterwards.
//!    Where the list is not up to date about this one mutex, the kernel finds it there.
//! 4. Only the thread itself, and the kernel on its behalf, touch a list, in program order. So only
//!    the compiler must be kept from reordering: all accesses are Relaxed, with compiler fences in
//!    between.
//! 5. The kernel follows 2048 links. Mutexes beyond those, the ones locked first, are not handled.
//!
//! # Threads without glibc's head
//!
//! A thread without a head (a child made by the bare system call) gets one of ours, in its
//! thread-local storage, which exists until the kernel has ended the thread. A head with another
//! offset (musl's: -28) belongs to mutexes of another layout: [`RobustError::Unsupported`].

use super::error::RobustError;
use super::step::{Step, step};
use crate::sys::generation::generation;
use crate::sys::robust;
use core::cell::Cell;
use core::marker::PhantomData;
use core::mem::offset_of;
use core::sync::atomic::compiler_fence;
use core::sync::atomic::{
    AtomicIsize, AtomicU32, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst,
};

/// The links of a mutex.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Node {
    prev: AtomicUsize,
    next: AtomicUsize,
}

impl Node {
    pub(super) const fn new() -> Self {
        Self { prev: AtomicUsize::new(0), next: AtomicUsize::new(0) }
    }
}

/// A mutex as the list needs it.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    node: &'a Node,
    inherits: bool,
}

impl<'a> Entry<'a> {
    /// The mutex with these links. Its word is found from them. `inherits`: it has priority
    /// inheritance.
    #[inline]
    pub(super) fn new(_word: &AtomicU32, node: &'a Node, inherits: bool) -> Self {
        Self { node, inherits }
    }

    /// The link that points to it.
    #[inline]
    fn link(self) -> usize {
        // Take the address of the node, not of `next`: the link is also used to reach `prev`.
        let address = core::ptr::from_ref(self.node).expose_provenance() + offset_of!(Node, next);
        address | if self.inherits { INHERITS } else { 0 }
    }
}

/// `struct robust_list_head`, preceded by the back link that glibc keeps there.
#[repr(C)]
struct Head {
    prev: AtomicUsize,
    list: AtomicUsize,
    futex_offset: AtomicIsize,
    list_op_pending: AtomicUsize,
}

/// Offset of a mutex's word from its `next`, for the kernel.
const FUTEX_OFFSET: isize = -32;
/// Distance from a `next` back to its `prev`.
const PREV: usize = 8;
/// The part of a [`Head`] that the kernel knows.
const HEAD_LENGTH: usize = size_of::<Head>() - PREV;
/// The node that a link points to has priority inheritance.
const INHERITS: usize = 1;

const _: () = {
    assert!(offset_of!(Node, next) - offset_of!(Node, prev) == PREV);
    assert!(offset_of!(Head, list) - offset_of!(Head, prev) == PREV);
    assert!(HEAD_LENGTH == 24);
};

thread_local! {
    // No destructors, constant initialisers: usable at any point of a thread's life.
    /// The address by which links refer to the head, and the fork generation in which it was found.
    static KNOWN: Cell<(u32, usize)> = const { Cell::new((0, 0)) };
    /// Our own head, for a thread that has none.
    static OWN: Head = const {
        Head {
            prev: AtomicUsize::new(0),
            list: AtomicUsize::new(0),
            futex_offset: AtomicIsize::new(FUTEX_OFFSET),
            list_op_pending: AtomicUsize::new(0),
        }
    };
}

/// The calling thread's list.
#[derive(Clone, Copy)]
pub(super) struct List {
    /// The address of the head's `list`.
    head: usize,
    /// Valid in this thread only.
    not_send: PhantomData<*const ()>,
}

impl List {
    /// Finds the list. Makes a system call the first time in a thread and in a forked child.
    ///
    /// # Errors
    /// [`RobustError::Unsupported`].
    #[inline]
    pub(super) fn of_this_thread() -> Result<Self, RobustError> {
        let (known_in, head) = KNOWN.get();
        let generation = generation();
        let head = if known_in == generation {
            head
        } else {
            let head = find()?;
            KNOWN.set((generation, head));
            head
        };
        Ok(Self { head, not_send: PhantomData })
    }

    #[inline]
    fn head(&self) -> &Head {
        // SAFETY: `find` has checked the head and the link before it, or created them. They lie in
        // the thread's own storage, which exists as long as the thread does. This is the same
        // thread, since a `List` is not Send, and the same process, since `KNOWN` is checked
        // against the fork generation.
        unsafe { &*at::<Head>(self.head - PREV) }
    }

    /// Tells the kernel what is about to be locked or unlocked.
    #[inline]
    pub(super) fn begin(self, mutex: Entry<'_>) {
        self.head().list_op_pending.store(mutex.link(), Relaxed);
        compiler_fence(SeqCst);
    }

    /// The mutex has been locked or unlocked, or could not be locked.
    #[inline]
    pub(super) fn end(self) {
        compiler_fence(SeqCst);
        self.head().list_op_pending.store(0, Relaxed);
    }

    /// The word that [`begin`](Self::begin) sets and [`end`](Self::end) clears.
    #[inline]
    pub(super) fn pending(&self) -> &AtomicUsize {
        &self.head().list_op_pending
    }

    /// Inserts the mutex at the front of the list.
    ///
    /// # Safety
    /// It is in no list, and does not move until it is [`unlink`](Self::unlink)ed.
    #[inline]
    pub(super) unsafe fn link(self, mutex: Entry<'_>) {
        let list = &self.head().list;
        let first = list.load(Relaxed);
        let node = mutex.node;
        node.next.store(first, Relaxed);
        node.prev.store(self.head, Relaxed);
        // SAFETY: `first` points to the head, or to the node of a mutex that this thread holds,
        // ours or glibc's. Both have a back link, and a mutex does not move while it is held.
        unsafe { prev_of(first) }.store(mutex.link() & !INHERITS, Relaxed);
        step(Step::HalfLinked);
        compiler_fence(SeqCst);
        list.store(mutex.link(), Relaxed);
        compiler_fence(SeqCst);
    }

    /// Removes the mutex from the list.
    ///
    /// # Safety
    /// It is in the list.
    #[inline]
    pub(super) unsafe fn unlink(self, mutex: Entry<'_>) {
        let node = mutex.node;
        let (prev, next) = (node.prev.load(Relaxed), node.next.load(Relaxed));
        // SAFETY: the mutex is in the list, by this function's contract, so both links point to the
        // head or to nodes of mutexes that this thread holds. Those do not move while they are
        // held.
        let (behind, before) = unsafe { (prev_of(next), &*at::<AtomicUsize>(prev & !INHERITS)) };
        behind.store(prev, Relaxed);
        step(Step::HalfUnlinked);
        before.store(next, Relaxed);
        // The kernel reads this `next` as long as any link points here.
        compiler_fence(SeqCst);
        node.prev.store(0, Relaxed);
        node.next.store(0, Relaxed);
        compiler_fence(SeqCst);
    }
}

#[inline]
fn at<T>(address: usize) -> *const T {
    core::ptr::with_exposed_provenance(address)
}

/// The back link that belongs to the `next` that this link points to.
///
/// # Safety
/// The link points to a node or a head.
#[inline]
unsafe fn prev_of<'a>(link: usize) -> &'a AtomicUsize {
    // SAFETY: the link points to a node or a head, both of which have a `prev` before the `next` or
    // `list` that links point to. It exists by this function's contract, and all its fields are
    // atomic.
    unsafe { &*at::<AtomicUsize>((link & !INHERITS) - PREV) }
}

/// The calling thread's head, glibc's or ours.
#[cold]
fn find() -> Result<usize, RobustError> {
    let found = robust::list_head().map_err(|_| RobustError::Unsupported)?;
    if found == 0 {
        return register();
    }
    // SAFETY: the kernel returned the calling thread's head as the C library registered it: a head
    // that exists until the thread has ended. Only the parts that the kernel reads too are read
    // here.
    let (list, offset) = unsafe {
        ((*at::<AtomicUsize>(found)).load(Relaxed), (*at::<AtomicIsize>(found + 8)).load(Relaxed))
    };
    if offset != FUTEX_OFFSET {
        return Err(RobustError::Unsupported);
    }
    // An empty list points to its head both ways, if there is a back link.
    // SAFETY: with this offset the head is glibc's, which keeps its back link in the eight bytes
    // before it, or one of `OWN`. (For any other library, these are eight bytes before a head in
    // its thread structure.)
    let way_back = unsafe { prev_of(found) }.load(Relaxed);
    if list == found && way_back != found {
        return Err(RobustError::Unsupported);
    }
    Ok(found)
}

/// Registers our own head.
#[cold]
fn register() -> Result<usize, RobustError> {
    OWN.with(|own| {
        let head = core::ptr::from_ref(own).expose_provenance() + offset_of!(Head, list);
        own.prev.store(head, Relaxed);
        own.list.store(head, Relaxed);
        own.list_op_pending.store(0, Relaxed);
        // SAFETY: thread-local storage without a destructor exists until the kernel has ended the
        // thread. The head points to itself: an empty list, which the kernel can walk.
        unsafe { robust::set_list_head(head, HEAD_LENGTH) }
            .map_err(|_| RobustError::Unsupported)?;
        Ok(head)
    })
}
