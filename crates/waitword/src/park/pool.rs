//! The pool of parkers: groups of 32 in chunks of mapped memory, each chunk twice the size of the
//! last.
//!
//! A thread takes a parker for the length of one wait and keeps only its number, as a hint for the
//! next. So a thread leaves nothing behind when it ends, and the pool grows with the number of
//! threads that wait *at the same time*, not with the number that ever waited. To take one is a
//! compare-and-swap on a line that this thread used last. Only without a usable hint does a thread
//! search, and only if the search finds all of them in use does the pool grow.

use super::spin::History;
use super::{Parker, Place};
use crate::atomic::{
    AtomicPtr, AtomicU32, AtomicUsize, Ordering, array, const_fn, smaller_in_models,
};
#[cfg(not(loom))]
use crate::debugger::{Field, fields};
use crate::sys::mem;
use core::num::NonZeroU32;
use core::ptr;

/// Parkers that sleep on one kernel word, each with a bit of its own.
pub(crate) const GROUP: usize = smaller_in_models(32, 4);
/// Chunk n holds 2^n groups: room for 2^24 groups, far beyond the kernel's limit of 2^22 threads.
const CHUNKS: usize = smaller_in_models(24, 2);

/// See the parent module.
#[repr(C)]
pub(crate) struct Group {
    /// Counts the wake calls made for this group; the word that its parkers sleep on.
    pub(super) calls: AtomicU32,
    slots: [Slot; GROUP],
}

#[cfg(not(loom))]
impl Group {
    /// For debuggers.
    pub(crate) const FIELDS: [Field; 3] = fields!("group": Self { calls, slots });
}

impl Group {
    /// The bits of all parkers of a group.
    pub(super) const ALL: NonZeroU32 =
        NonZeroU32::new(u32::MAX >> (32 - GROUP)).expect("a group has members");

    /// Of free parkers: zeros.
    fn new() -> Self {
        let slot = |_| Slot {
            in_use: AtomicU32::new(FREE),
            alone: AtomicU32::new(0),
            spins: History::new(),
            thread: AtomicUsize::new(0),
        };
        Self { calls: AtomicU32::new(0), slots: core::array::from_fn(slot) }
    }
}

/// One place to sleep in, on a cache line of its own.
#[repr(align(64))]
pub(crate) struct Slot {
    in_use: AtomicU32,
    /// Counts the wake calls made for this parker alone; the word it sleeps on in `futex_waitv`.
    pub(super) alone: AtomicU32,
    pub(super) spins: History,
    /// `pthread_self()` of its user, if the user's node has no room for it.
    pub(super) thread: AtomicUsize,
}

const FREE: u32 = 0;
const IN_USE: u32 = 1;

#[cfg(not(loom))]
impl Slot {
    /// For debuggers.
    pub(crate) const FIELDS: [Field; 3] = fields!("slot": Self { in_use, thread });
}

impl Slot {
    #[inline]
    fn try_take(&self) -> bool {
        // The plain load keeps a search from stealing the lines of parkers in use. Acquire: what
        // the previous user left in the slot is ours now.
        self.is_free()
            && self
                .in_use
                .compare_exchange(FREE, IN_USE, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }

    #[inline]
    pub(super) fn release(&self) {
        // Release: the next user sees the slot as we leave it.
        self.in_use.store(FREE, Ordering::Release);
    }

    #[inline]
    pub(super) fn is_free(&self) -> bool {
        self.in_use.load(Ordering::Relaxed) == FREE
    }
}

/// The number of a parker in its pool, counted from 1, so that an `Option` of it is no larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ParkerId(NonZeroU32);

impl ParkerId {
    #[inline]
    fn from_index(index: usize) -> Self {
        Self(NonZeroU32::MIN.saturating_add(index as u32))
    }

    #[inline]
    fn index(self) -> usize {
        self.0.get() as usize - 1
    }

    /// The parker with this number; `None` for 0, which is not a parker's number.
    #[inline]
    pub(super) fn from_number(number: u32) -> Option<Self> {
        NonZeroU32::new(number).map(Self)
    }

    #[inline]
    pub(super) fn number(self) -> u32 {
        self.0.get()
    }

    /// The number of its group.
    #[inline]
    pub(super) fn group(self) -> usize {
        self.index() / GROUP
    }

    /// Its bit in the kernel's bitset.
    #[inline]
    pub(super) fn bit(self) -> NonZeroU32 {
        NonZeroU32::new(1 << (self.index() % GROUP)).unwrap_or(NonZeroU32::MIN)
    }
}

/// All parkers of a process.
pub(crate) struct Pool {
    chunks: [AtomicPtr<Group>; CHUNKS],
    /// The number of chunks.
    len: AtomicU32,
    /// Where the next search begins: after the place that the last search took. Threads that begin
    /// to wait together thus become neighbours in a group, and one call can wake them together.
    cursor: AtomicU32,
    /// Called if the kernel will not wipe a chunk in forked children: has every child clear it.
    if_unwiped: fn(),
}

#[cfg(not(loom))]
impl Pool {
    /// For debuggers.
    pub(crate) const FIELDS: [Field; 3] = fields!("pool": Self { chunks, len });
}

/// How many parkers there are in the first `chunks` chunks.
fn capacity(chunks: u32) -> usize {
    ((1 << chunks) - 1) * GROUP
}

impl Pool {
    const_fn! {
        pub(crate) const fn new(if_unwiped: fn()) -> Self {
            Self {
                chunks: array![AtomicPtr::new(ptr::null_mut()); CHUNKS],
                len: AtomicU32::new(0),
                cursor: AtomicU32::new(0),
                if_unwiped,
            }
        }
    }

    /// How many parkers there are.
    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        capacity(self.len.load(Ordering::Acquire))
    }

    /// Bytes mapped for parkers.
    pub(crate) fn mapped_bytes(&self) -> usize {
        (0..self.len.load(Ordering::Acquire)).map(chunk_bytes).sum()
    }

    /// How many parkers are in use.
    pub(crate) fn in_use(&self) -> usize {
        let is_in_use = |&index: &usize| !self.place(ParkerId::from_index(index)).slot.is_free();
        (0..self.capacity()).filter(is_in_use).count()
    }

    /// A group by its number.
    #[inline]
    pub(super) fn group(&self, number: usize) -> &Group {
        let chunk = (number + 1).ilog2();
        let groups = self.chunks[chunk as usize].load(Ordering::Acquire);
        debug_assert!(!groups.is_null());
        // SAFETY: the index is in bounds: chunk n holds the 2^n groups from number 2^n - 1 on. The
        // pointer is not null: a number comes from an id, and an id is handed out only once its
        // chunk is published. A chunk is never unmapped, and everything in it is atomic.
        unsafe { &*groups.add(number + 1 - (1 << chunk)) }
    }

    /// The group and slot of a parker.
    #[inline]
    pub(super) fn place(&self, id: ParkerId) -> Place<'_> {
        let group = self.group(id.group());
        Place { id, group, slot: &group.slots[id.index() % GROUP], bit: id.bit() }
    }

    /// The thread that the parker's user has [noted](super::Parker::note_thread).
    pub(crate) fn noted_thread(&self, id: ParkerId) -> usize {
        // Relaxed: read under the lock of the bucket in which the parker's user queued after noting
        // it.
        self.place(id).slot.thread.load(Ordering::Relaxed)
    }

    #[inline]
    fn try_take(&self, index: usize) -> Option<Place<'_>> {
        let place = self.place(ParkerId::from_index(index));
        place.slot.try_take().then_some(place)
    }

    /// A parker for the calling thread. `grown` is called with the new capacity if the pool had to
    /// grow.
    #[inline]
    pub(crate) fn take(&self, grown: impl Fn(usize)) -> Parker<'_> {
        let hint = hint::get();
        let place = if hint < self.capacity() { self.try_take(hint) } else { None };
        let place = place.or_else(|| self.search(grown));
        if let Some(place) = place {
            hint::set(place.id.index());
        }
        Parker { place }
    }

    /// The parker that another thread has taken and forgotten. For models in which threads must
    /// know each other's parkers before they start.
    #[cfg(loom)]
    pub(crate) fn adopt(&self, id: ParkerId) -> Parker<'_> {
        Parker { place: Some(self.place(id)) }
    }

    #[cold]
    fn search(&self, grown: impl Fn(usize)) -> Option<Place<'_>> {
        loop {
            let chunks = self.len.load(Ordering::Acquire);
            let capacity = capacity(chunks);
            let start = self.cursor.load(Ordering::Relaxed) as usize;
            for step in 0..capacity {
                let index = (start + step) % capacity;
                if let Some(place) = self.try_take(index) {
                    self.cursor.store(index as u32 + 1, Ordering::Relaxed);
                    return Some(place);
                }
            }
            self.grow(chunks)?;
            grown(self.capacity());
        }
    }

    /// Adds chunk number `chunk`, or finds that another thread has done so; `None` if memory is
    /// short.
    fn grow(&self, chunk: u32) -> Option<()> {
        if chunk as usize == CHUNKS {
            return None;
        }
        let groups = map_chunk(chunk, self.if_unwiped)?;
        // Release: a thread that finds the pointer finds the zeroed memory behind it.
        let published = self.chunks[chunk as usize].compare_exchange(
            ptr::null_mut(),
            groups,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        if published.is_err() {
            // SAFETY: `groups` was mapped just above for this chunk, and the exchange that would
            // have published it has failed: no other thread has the address.
            unsafe { unmap_chunk(chunk, groups) };
        } else {
            self.cursor.store(((1 << chunk) - 1) * GROUP as u32, Ordering::Relaxed);
        }
        self.len.fetch_max(chunk + 1, Ordering::AcqRel);
        Some(())
    }

    /// Makes every parker free again, in a forked child on a kernel that did not wipe them.
    ///
    /// # Safety
    /// The process has one thread, and it holds no parker.
    pub(crate) unsafe fn wipe(&self) {
        for index in 0..self.capacity() {
            let place = self.place(ParkerId::from_index(index));
            place.slot.in_use.store(FREE, Ordering::Relaxed);
            place.slot.alone.store(0, Ordering::Relaxed);
            place.group.calls.store(0, Ordering::Relaxed);
        }
    }
}

fn chunk_bytes(chunk: u32) -> usize {
    (size_of::<Group>() << chunk).next_multiple_of(mem::PAGE)
}

fn map_chunk(chunk: u32, if_unwiped: fn()) -> Option<*mut Group> {
    let memory = mem::map(chunk_bytes(chunk))?;
    // SAFETY: whole pages of the mapping made just above. All zeros is a chunk of free parkers
    // (invariant 3), so what a child finds is a valid state.
    let wiped = unsafe { mem::wipe_on_fork(memory, chunk_bytes(chunk)) };
    if wiped.is_err() {
        if_unwiped();
    }
    let groups = memory.cast();
    // SAFETY: the mapping has room for 2^chunk groups, and `Group::new` makes one of zeros.
    unsafe { mem::construct(groups, 1 << chunk, Group::new) };
    Some(groups.as_ptr())
}

/// # Safety
/// [`map_chunk`] has mapped `groups` for this chunk, and no other thread has the address.
unsafe fn unmap_chunk(chunk: u32, groups: *mut Group) {
    if let Some(groups) = ptr::NonNull::new(groups) {
        // SAFETY: one whole mapping of this length with that many groups, by this function's
        // contract, and no reference into it, since no other thread has it.
        unsafe {
            mem::destruct(groups, 1 << chunk);
            mem::unmap(groups.cast(), chunk_bytes(chunk));
        }
    }
}

#[cfg(loom)]
impl Drop for Pool {
    fn drop(&mut self) {
        for (number, chunk) in self.chunks.iter_mut().enumerate() {
            let groups = crate::checker::last_value(chunk);
            if !groups.is_null() {
                // SAFETY: `map_chunk` made it for this chunk. The pool is borrowed exclusively, so
                // no thread is left that could have found it.
                unsafe { unmap_chunk(number as u32, groups) };
            }
        }
    }
}

/// The number of the parker that this thread used last.
mod hint {
    use crate::atomic::thread_static;
    use core::cell::Cell;

    thread_static! {
        // No destructor and a constant initial value: plain thread-local storage, usable at any
        // moment of a thread's life and in signal handlers.
        static HINT: Cell<usize> = const { Cell::new(usize::MAX) };
    }

    pub(super) fn get() -> usize {
        HINT.with(Cell::get)
    }

    pub(super) fn set(index: usize) {
        HINT.with(|hint| hint.set(index));
    }
}
