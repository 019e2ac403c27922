//! Sections: what a thread does with the lock of a bucket. `pair.rs` has the sections with two
//! buckets, `grow.rs` the one with all.
//!
//! A section begins before the lock is taken and ends after the unlock, so that a signal handler
//! never waits for its own thread (`inside.rs`). It delivers the wakes that handlers have left
//! meanwhile, and for that it needs the wakes below.

use super::bucket::Bucket;
use super::chain::{Chain, Choice};
use super::claimed::Claimed;
use super::inside::{self, Note};
use super::key::Key;
use super::node::Node;
use super::table::{Found, Table};
use super::waiter_table::WaiterTable;

/// A thread inside a bucket, or two, or all of them; never nested.
pub(super) struct Section<'a> {
    waiter_table: &'a WaiterTable,
}

impl<'a> Section<'a> {
    #[inline]
    pub(super) fn enter(waiter_table: &'a WaiterTable) -> Self {
        inside::enter();
        Self { waiter_table }
    }
}

impl Drop for Section<'_> {
    #[inline]
    fn drop(&mut self) {
        inside::leave();
        if inside::has_left_something() {
            self.finish();
        }
    }
}

impl Section<'_> {
    #[cold]
    fn finish(&self) {
        inside::end_extension();
        let waiter_table = self.waiter_table;
        while let Some(note) = inside::next_note() {
            match note {
                Note::Wake { key, count, mask } => {
                    if let Some(found) = waiter_table.find_waiters(key) {
                        let claimed = waiter_table.claim(key, found, count, mask);
                        claimed.notify(&waiter_table.parkers);
                    }
                }
                Note::WakeAll => waiter_table.wake_all(),
            }
        }
    }
}

impl WaiterTable {
    /// Counts a waiter in and locks its bucket. The check of the word comes next.
    #[inline]
    pub(crate) fn register(&self, key: Key) -> Registration<'_> {
        let section = Section::enter(self);
        loop {
            let found = self.table().find(key);
            found.bucket.announce(found.lane);
            found.bucket.lock();
            if self.is_current(found.table) {
                return Registration { held: Held { found, section } };
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
        Queue { key, held: self.lock(key, self.table().find(key)) }
    }

    /// Wakes every waiter of the process, whatever it waits for.
    #[cold]
    fn wake_all(&self) {
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
}

/// Unlinks waiters from a bucket.
///
/// # Safety
/// The calling thread has locked the bucket.
#[inline]
pub(super) unsafe fn claim_from(
    Found { bucket, lane, .. }: Found<'_>,
    key: Key,
    count: usize,
    mask: u64,
    claimed: &mut Claimed,
) -> usize {
    let chosen = |node: &Node| node.mask & mask != 0;
    // SAFETY: the bucket is locked, by this function's contract: `chain`, `take` and `push` require
    // that. `push` touches no chain: it links nodes that `take` has unlinked.
    let taken =
        unsafe { bucket.chain(|chain| chain.take(key, count, chosen, |node| claimed.push(node))) };
    bucket.count(lane, -(taken as isize));
    taken
}

/// One locked bucket.
pub(super) struct Held<'a> {
    pub(super) found: Found<'a>,
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
        unsafe { self.held.found.bucket.chain(|chain| chain.push_in_front(node)) };
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
    pub(super) held: Held<'a>,
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
            let chain = |chain: &Chain| chain.take_chosen(self.key, see, |_| {});
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
pub(super) unsafe fn has_waiters(key: Key, found: Found<'_>) -> bool {
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
