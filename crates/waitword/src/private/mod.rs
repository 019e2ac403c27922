//! The process's table of waiters on private words: table, buckets, waiters' nodes, growth, fork.
//!
//! The table knows addresses and the waiters on them, never the memory at an address. Whether a
//! word still holds the value that a waiter expects is a check that the operation above makes while
//! it holds the bucket. So one table works with every word size, and with every lock's own change
//! of state.
//!
//! # A wait and a wake
//!
//! ```text
//!   futex::wait                                 futex::wake
//!     parkers.take()                              find_waiters(key): none? no lock, no call
//!     register(key): count, fence, lock           claim(key, n, mask): lock, unlink, unlock
//!     word as expected? push(node), unlock        notify(): give notice, one call a group
//!     parker.park()
//!       (timeout, signal: withdraw(node))
//! ```
//!
//! # Invariants
//!
//! 1. Check and enqueue are one step under the bucket lock.
//! 2. Two buckets are locked in the order of their addresses, once if they are the same; all
//!    buckets (growth) in the same order.
//! 3. Under a bucket lock: no system call, no allocation, no user code. (The caller's word is
//!    loaded there once. It has been loaded just before without the lock, so that its page is
//!    mapped in.)
//! 4. A thread that has locked a bucket checks again that the bucket's table is the current one.
//!    Growth takes every bucket, so from then on the table stays current until the unlock.
//! 5. A bucket's count of waiters is never below the number of nodes in it (`bucket.rs`).

mod bucket;
mod node;
mod section;
mod table;

#[cfg(not(loom))]
pub(crate) mod fork;
mod grow;
#[cfg(all(test, not(loom)))]
mod placement;
#[cfg(not(loom))]
mod snapshot;

pub(crate) use grow::OutOfMemory;
pub(crate) use node::{Choice, Claimed, Node};
pub(crate) use section::{is_inside, leave_note};
#[cfg(not(loom))]
pub use snapshot::{Snapshot, Waiter};
pub(crate) use table::{Found, Key, Place};

use crate::atomic::{AtomicPtr, AtomicUsize, Ordering, fence, full_fence};
use crate::park::{Parker, Pool};
use crate::stats::{self, Event};
use crate::sys::numa::Nodes;
use bucket::Bucket;
use core::ptr;
use section::Section;
use table::Table;

/// See the module documentation.
pub(crate) struct WaiterTable {
    current: AtomicPtr<Table>,
    pub(crate) parkers: Pool,
    /// The minimum number of buckets of the next table.
    least_buckets: AtomicUsize,
    /// The machine's nodes as described by the caller; `None`: ask the kernel at first use.
    nodes: Option<Nodes>,
}

/// Buckets of the first table, over all nodes, unless more are requested: 16 KiB.
const FIRST_BUCKETS: usize = if cfg!(loom) { 4 } else { 256 };

#[cfg(not(loom))]
static WAITER_TABLE: WaiterTable = WaiterTable::new(None);

#[cfg(loom)]
crate::checker::lazy_static! {
    // A new one in each execution of a model.
    static ref WAITER_TABLE: WaiterTable = WaiterTable::new(None);
}

/// The waiter table of this process.
#[inline(always)]
pub(crate) fn waiter_table() -> &'static WaiterTable {
    &WAITER_TABLE
}

impl WaiterTable {
    #[cfg(not(loom))]
    pub(crate) const fn new(nodes: Option<Nodes>) -> Self {
        Self {
            current: AtomicPtr::new(ptr::null_mut()),
            parkers: Pool::new(fork::wipe_by_handler),
            least_buckets: AtomicUsize::new(0),
            nodes,
        }
    }

    #[cfg(loom)]
    pub(crate) fn new(nodes: Option<Nodes>) -> Self {
        Self {
            current: AtomicPtr::new(ptr::null_mut()),
            parkers: Pool::new(|| ()),
            least_buckets: AtomicUsize::new(0),
            nodes,
        }
    }

    /// The table in use, if there has been a wait yet.
    #[inline]
    fn existing_table(&self) -> Option<&Table> {
        // SAFETY: null, or a table whose header was written before it was published (Acquire: and
        // is seen as written) and no longer changes. A published table is not freed while the
        // waiter table exists.
        unsafe { self.current.load(Ordering::Acquire).as_ref() }
    }

    fn table(&self) -> &Table {
        self.existing_table()
            .unwrap_or_else(|| self.make_first_table())
    }

    /// Whether the table has memory on NUMA node `number`.
    pub(crate) fn has_node(&self, number: u32) -> bool {
        self.table().nodes().position(number).is_some()
    }

    /// The bucket of the waiters of `key`, if there may be any. Includes the fence that a waker
    /// needs after its change of the word. `None` means that there is no waiter to wake
    /// (`bucket.rs`).
    ///
    /// The table is looked up *after* the fence. A waiter whose check did not see our change
    /// registered in a table that it found before its own fence, so we find that table or a later
    /// one. A table that growth has replaced keeps its counts: if we found it just before that,
    /// they still show the waiters that were moved from it.
    #[inline]
    pub(crate) fn find_waiters(&self, key: Key) -> Option<Found<'_>> {
        full_fence();
        let found = self.existing_table()?.find(key);
        found.bucket.may_have_waiters(found.lane).then_some(found)
    }

    /// Whether any thread may wait on one of two words, for a waker of both. A waiter that is moved
    /// from one word to the other meanwhile is not missed (`bucket.rs`). Includes the fence, as
    /// [`find_waiters`](Self::find_waiters) does.
    #[inline]
    pub(crate) fn may_have_waiters(&self, first: Key, second: Key) -> bool {
        full_fence();
        let Some(table) = self.existing_table() else {
            return false;
        };
        let both = [table.find(first), table.find(second)];
        let moves = || both.map(|found| found.bucket.moves());
        let before = moves();
        let counted = |found: &Found<'_>| found.bucket.may_have_waiters(found.lane);
        if both.iter().any(counted) {
            return true;
        }
        // A waiter that was counted off because it was moved had its move noted before.
        fence(Ordering::Acquire);
        moves() != before
    }

    /// A parker for the calling thread, which is about to wait. The table grows with the number of
    /// parkers, as far as memory allows.
    pub(crate) fn take_parker(&self) -> Parker<'_> {
        self.parkers.take(|capacity| {
            // If memory is short, the present table stays in use, with longer queues.
            let _ = self.grow(capacity);
            #[cfg(not(loom))]
            crate::sys::sched::grow_kernel_hash(capacity / crate::park::GROUP);
        })
    }

    /// Counts a waiter in and locks its bucket. The check of the word comes next.
    #[inline]
    pub(crate) fn register(&self, key: Key) -> Registration<'_> {
        let section = Section::enter(self);
        loop {
            let found = self.table().find(key);
            found.bucket.announce(found.lane);
            found.bucket.lock();
            if self.is_current(found.table) {
                return Registration {
                    held: Held { found, section },
                };
            }
            found.bucket.count(found.lane, -1);
            // SAFETY: locked by the call above, and not unlocked since.
            unsafe { found.bucket.unlock() };
        }
    }

    /// Unlinks up to `count` waiters of `key` with a bit of `mask`; the caller notifies them.
    /// `found` is their place now or a moment ago.
    #[inline]
    pub(crate) fn claim(&self, key: Key, found: Found<'_>, count: usize, mask: u64) -> Claimed {
        let held = self.lock(key, found);
        let mut claimed = Claimed::new();
        // SAFETY: `held` has the bucket locked until this returns.
        unsafe { claim_from(held.found, key, count, mask, &mut claimed) };
        claimed
    }

    /// Takes a node out of the queue it is in by now. False if a waker has claimed it: then its
    /// notice is on the way, and the waiter must wait for it.
    pub(crate) fn withdraw(&self, node: &Node) -> bool {
        loop {
            let key = node.key();
            let queue = self.lock_queue(key);
            // A requeue may have moved it while we waited for the lock.
            if node.key() == key {
                // SAFETY: compared just now, under the lock of `queue`.
                return unsafe { queue.remove(node) };
            }
        }
    }

    /// The same, but only out of the queue of `key`: false also if a requeue has moved the node
    /// elsewhere. If the node was there, `left` runs under the bucket's lock, with the queue that
    /// the node has left.
    pub(crate) fn withdraw_from(
        &self,
        key: Key,
        node: &Node,
        left: impl FnOnce(&Queue<'_>),
    ) -> bool {
        let queue = self.lock_queue(key);
        // SAFETY: this is reached only if the keys are the same, compared under the lock of
        // `queue`.
        let withdrawn = node.key() == key && unsafe { queue.remove(node) };
        if withdrawn {
            left(&queue);
        }
        withdrawn
    }

    /// Locks the bucket of `key`, even if no thread has ever waited on anything: the first waiter
    /// may be about to come. A change made under this lock comes either before that waiter
    /// announces itself or after.
    #[inline]
    pub(crate) fn lock_queue(&self, key: Key) -> Queue<'_> {
        Queue {
            key,
            held: self.lock(key, self.table().find(key)),
        }
    }

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
                return Pair {
                    from: (from, from_found),
                    to: (to, to_found),
                    _section: section,
                };
            }
            to_found.bucket.count(to_found.lane, -1);
            // SAFETY: `first` was locked above and not unlocked since. The second was not locked:
            // the table is not current.
            unsafe { first.unlock() };
        }
    }

    /// Wakes every waiter of the process, whatever it waits for.
    #[cold]
    fn wake_everybody(&self) {
        loop {
            let Some(table) = self.existing_table() else {
                return;
            };
            for bucket in table.all() {
                let claimed = self.claim_all_of(table, bucket);
                claimed.notify(&self.parkers);
            }
            if self.is_current(table) {
                return;
            }
        }
    }

    fn claim_all_of(&self, table: &Table, bucket: &Bucket) -> Claimed {
        let _section = Section::enter(self);
        let mut claimed = Claimed::new();
        bucket.lock();
        // SAFETY: the bucket was locked just above: `chain`, `take_all` and `push` require that,
        // and so does `unlock`, which is the only one. The closures touch no chain: counts are
        // atomics beside it, `find` computes, and `push` links nodes that `take_all` has unlinked.
        unsafe {
            bucket.chain(|chain| {
                chain.take_all(|node| {
                    bucket.count(table.find(node.key()).lane, -1);
                    claimed.push(node);
                });
            });
            bucket.unlock();
        }
        claimed
    }

    /// Locks the bucket of `key`, which is the one in `found` unless the table has grown meanwhile.
    #[inline]
    fn lock<'a>(&'a self, key: Key, found: Found<'a>) -> Held<'a> {
        let section = Section::enter(self);
        let mut found = found;
        loop {
            found.bucket.lock();
            if self.is_current(found.table) {
                return Held { found, section };
            }
            // SAFETY: locked by the call above, and not unlocked since.
            unsafe { found.bucket.unlock() };
            found = self.table().find(key);
        }
    }

    /// Whether `table` is still the current one. If one of its buckets is locked, a true answer
    /// stays true until the unlock.
    fn is_current(&self, table: &Table) -> bool {
        // Relaxed: growth publishes a new table while it holds this bucket's lock, which we now
        // hold.
        ptr::eq(self.current.load(Ordering::Relaxed), table)
    }
}

/// Unlinks waiters from a bucket.
///
/// # Safety
/// The calling thread has locked the bucket.
#[inline]
unsafe fn claim_from(
    Found { bucket, lane, .. }: Found<'_>,
    key: Key,
    count: usize,
    mask: u64,
    claimed: &mut Claimed,
) -> usize {
    // SAFETY: the bucket is locked, by this function's contract: `chain`, `take` and `push` require
    // that. `push` touches no chain: it links nodes that `take` has unlinked.
    let taken =
        unsafe { bucket.chain(|chain| chain.take(key, count, mask, |node| claimed.push(node))) };
    bucket.count(lane, -(taken as isize));
    taken
}

/// One locked bucket.
struct Held<'a> {
    found: Found<'a>,
    // Left after the unlock: fields are dropped after `drop` has run.
    #[expect(dead_code, reason = "held for its end")]
    section: Section<'a>,
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `found` is the bucket that was locked when this was made, and nothing else
        // unlocks it.
        unsafe { self.found.bucket.unlock() };
    }
}

/// A locked bucket in which a waiter is counted but not yet queued.
#[must_use]
pub(crate) struct Registration<'a> {
    held: Held<'a>,
}

impl Registration<'_> {
    /// Puts the waiter into the queue.
    ///
    /// # Safety
    /// The node has the registered key, is in no queue, and stays in place until it is notified or
    /// withdrawn.
    #[inline]
    pub(crate) unsafe fn push(self, node: &Node) {
        // SAFETY: the bucket is locked until `self` is dropped, and `push` does not come back to
        // it. This function's contract on the node is that of `push`.
        unsafe { self.held.found.bucket.chain(|chain| chain.push(node)) };
    }

    /// The same, in front of all waiters on its key that have no higher priority.
    ///
    /// # Safety
    /// As for [`push`](Self::push).
    #[inline]
    pub(crate) unsafe fn push_in_front(self, node: &Node) {
        // SAFETY: the bucket is locked until `self` is dropped, and `push_in_front` does not come
        // back to it. This function's contract on the node is that of `push_in_front`.
        unsafe {
            self.held
                .found
                .bucket
                .chain(|chain| chain.push_in_front(node))
        };
    }

    /// Unlinks the waiters on this key that `choose` takes; the caller notifies them after the
    /// unlock.
    #[inline]
    pub(crate) fn claim_chosen(
        &self,
        key: Key,
        choose: impl FnMut(u64) -> Choice,
        claimed: &mut Claimed,
    ) -> Unparked {
        // SAFETY: `self` has the bucket locked.
        unsafe { claim_chosen_from(key, self.held.found, choose, claimed) }
    }

    /// Counts the waiter off again: the check failed, and it will not be queued.
    pub(crate) fn cancel(self) {
        let Found { bucket, lane, .. } = self.held.found;
        bucket.count(lane, -1);
    }
}

/// A locked bucket, seen as the queue of one key in it.
pub(crate) struct Queue<'a> {
    key: Key,
    held: Held<'a>,
}

impl Queue<'_> {
    /// Unlinks the waiters that `choose` takes, given each one's mask; the caller notifies them
    /// after the unlock.
    #[inline]
    pub(crate) fn claim_chosen(
        &self,
        choose: impl FnMut(u64) -> Choice,
        claimed: &mut Claimed,
    ) -> Unparked {
        // SAFETY: `self` has the bucket locked.
        unsafe { claim_chosen_from(self.key, self.held.found, choose, claimed) }
    }

    /// Whether any waiter is queued here.
    #[inline]
    pub(crate) fn has_waiters(&self) -> bool {
        // SAFETY: `self` has the bucket locked.
        unsafe { has_waiters(self.key, self.held.found) }
    }

    /// The masks of all waiters in this queue, or-ed. Walks the whole queue.
    pub(crate) fn kinds(&self) -> u64 {
        let mut kinds = 0;
        let see = |kind| {
            kinds |= kind;
            Choice::Pass
        };
        // SAFETY: the bucket is locked as long as `self` exists. `see` touches no chain, and takes
        // no node.
        let taken = unsafe {
            let chain = |chain: &node::Chain| chain.take_chosen(self.key, see, |_| {});
            self.held.found.bucket.chain(chain)
        };
        debug_assert_eq!(taken.0, 0);
        kinds
    }

    /// Takes a node out; false if it is no longer queued.
    ///
    /// # Safety
    /// The node has this queue's key, as seen while the queue is locked.
    unsafe fn remove(&self, node: &Node) -> bool {
        let Found { bucket, lane, .. } = self.held.found;
        if !node.is_queued() {
            return false;
        }
        // SAFETY: the bucket is locked as long as `self` exists. The node has its key, by this
        // function's contract, and is queued: so it is in one of this bucket's queues.
        unsafe { bucket.chain(|chain| chain.remove(node)) };
        bucket.count(lane, -1);
        true
    }
}

/// Unlinks the waiters of `key` that `choose` takes.
///
/// # Safety
/// The calling thread has locked the bucket.
#[inline]
unsafe fn claim_chosen_from(
    key: Key,
    Found { bucket, lane, .. }: Found<'_>,
    choose: impl FnMut(u64) -> Choice,
    claimed: &mut Claimed,
) -> Unparked {
    // SAFETY: the bucket is locked, by this function's contract: `chain`, `take_chosen` and `push`
    // require that. `choose` belongs to a lock and touches no chain (`futex/parking.rs`), and
    // `push` links nodes that `take_chosen` has unlinked.
    let (woken, more) =
        unsafe { bucket.chain(|chain| chain.take_chosen(key, choose, |node| claimed.push(node))) };
    bucket.count(lane, -(woken as isize));
    Unparked { woken, more }
}

/// Whether any thread waits on `key`.
///
/// # Safety
/// The calling thread has locked the bucket.
#[inline]
unsafe fn has_waiters(key: Key, found: Found<'_>) -> bool {
    // SAFETY: the bucket is locked, by this function's contract.
    unsafe { found.bucket.chain(|chain| chain.count(key, 1)) != 0 }
}

/// The result of a wake by choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unparked {
    /// The number of waiters that are about to be woken.
    pub(crate) woken: usize,
    /// Whether other threads still wait on the key.
    pub(crate) more: bool,
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
        unsafe {
            found
                .bucket
                .chain(|chain| chain.first(key, |node| node.is_bound_to(mutex)))
        }
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
        // SAFETY: the first word's bucket is locked as long as `self` exists: `chain`, `take_those`
        // and `push` require that. `chosen` only reads nodes, and `push` links nodes that
        // `take_those` has unlinked.
        let taken = unsafe {
            bucket.chain(|chain| chain.take_those(key, count, chosen, |node| claimed.push(node)))
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
    pub(crate) fn move_over(&self, count: usize) -> usize {
        self.move_those(count, |_| true)
    }

    /// [`move_over`](Self::move_over) for the waiters that are bound to this mutex, the second
    /// word.
    pub(crate) fn move_bound_to(&self, mutex: usize, count: usize) -> usize {
        self.move_those(count, |node| node.is_bound_to(mutex))
    }

    fn move_those(&self, count: usize, chosen: impl Fn(&Node) -> bool) -> usize {
        let (from, from_found) = self.from;
        let (to, to_found) = self.to;
        let (from_bucket, to_bucket) = (from_found.bucket, to_found.bucket);
        // SAFETY: both buckets are locked as long as `self` exists, so a node's key may change
        // (`node.rs`, invariant 2). A moved node has just been unlinked, and it stays in place, as
        // the thread that first pushed it has promised. It is put into the other bucket's chain, or
        // behind the nodes of another key in the same one, which `take_those` allows. Neither
        // bucket's `chain` is called again inside its own.
        let moved = unsafe {
            if from == to {
                from_bucket.chain(|chain| chain.count(from, count))
            } else if ptr::eq(from_bucket, to_bucket) {
                from_bucket.chain(|chain| {
                    chain.take_those(from, count, &chosen, |node| {
                        node.set_key(to);
                        chain.push(node);
                    })
                })
            } else {
                from_bucket.chain(|from_chain| {
                    to_bucket.chain(|to_chain| {
                        from_chain.take_those(from, count, &chosen, |node| {
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
