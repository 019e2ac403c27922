//! The table of waiters: which table is current, where a key's waiters are, and the first table.
//!
//! A waker that finds no waiters is done here, without a lock. `section.rs` has what is done under
//! the lock of a bucket, and `grow.rs` replaces a table by a larger one.

use super::key::Key;
use super::table::{Found, Table, reserve};
use crate::atomic::{
    AtomicPtr, AtomicUsize, Ordering, const_fn, fence, full_fence, smaller_in_models,
};
#[cfg(not(loom))]
use crate::debugger::{Field, fields};
use crate::park::Pool;
use crate::sys;
use crate::sys::numa::Nodes;
use core::ptr::{self, NonNull};

/// See the module documentation.
pub(crate) struct WaiterTable {
    pub(super) current: AtomicPtr<Table>,
    pub(crate) parkers: Pool,
    /// The minimum number of buckets of the next table.
    pub(super) least_buckets: AtomicUsize,
    /// The machine's nodes as described by the caller; `None`: ask the kernel at first use.
    nodes: Option<Nodes>,
    /// Called if the kernel will not wipe memory in forked children: has every child clear it.
    pub(super) if_unwiped: fn(),
}

/// Buckets of the first table, over all nodes, unless more are requested: 16 KiB.
const FIRST_BUCKETS: usize = smaller_in_models(256, 4);

#[cfg(not(loom))]
impl WaiterTable {
    /// For debuggers.
    pub(super) const FIELDS: [Field; 3] = fields!("waiter_table": Self { current, parkers });
}

impl WaiterTable {
    const_fn! {
        /// An empty one. `if_unwiped`: see the field.
        pub(super) const fn on(nodes: Option<Nodes>, if_unwiped: fn()) -> Self {
            Self {
                current: AtomicPtr::new(ptr::null_mut()),
                parkers: Pool::new(if_unwiped),
                least_buckets: AtomicUsize::new(0),
                nodes,
                if_unwiped,
            }
        }
    }

    /// The table in use, if there has been a wait yet.
    #[inline]
    pub(super) fn existing_table(&self) -> Option<&Table> {
        // SAFETY: null, or a table whose header was written before it was published (Acquire: and
        // is seen as written) and no longer changes. A published table is not freed while the
        // waiter table exists.
        unsafe { self.current.load(Ordering::Acquire).as_ref() }
    }

    pub(super) fn table(&self) -> &Table {
        self.existing_table().unwrap_or_else(|| self.make_first_table())
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

    pub(super) fn described_nodes(&self) -> Nodes {
        self.nodes.unwrap_or_else(sys::numa::nodes)
    }

    #[cold]
    fn make_first_table(&self) -> &Table {
        super::inside::decide_on_extensions();
        let wanted = sys::env::number(c"WAITWORD_BUCKETS").map_or(0, |wanted| wanted as usize);
        let buckets = self.least_buckets.load(Ordering::Relaxed).max(wanted).max(FIRST_BUCKETS);
        let nodes = self.described_nodes();
        let allocate =
            |buckets| Table::allocate(Table::bits_for(buckets, nodes), nodes, self.if_unwiped);
        let table = allocate(buckets).or_else(|| allocate(FIRST_BUCKETS));
        match table {
            // SAFETY: `allocate` has just made it.
            Some(table) => unsafe { self.publish_first(table) },
            None => {
                (self.if_unwiped)();
                // SAFETY: a static, which `free` leaves alone.
                unsafe { self.publish_first(NonNull::from(reserve())) }
            }
        }
    }

    /// Makes `table` the current table, or frees it if there already is one.
    ///
    /// # Safety
    /// The table comes from [`Table::allocate`], and no other thread has it; or it is the reserve.
    unsafe fn publish_first(&self, table: NonNull<Table>) -> &Table {
        // Release: the header is written before the pointer can be found.
        let published = self.current.compare_exchange(
            core::ptr::null_mut(),
            table.as_ptr(),
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        match published {
            // SAFETY: published just now: from then on it is not freed while the waiter table
            // exists.
            Ok(_) => unsafe { table.as_ref() },
            Err(theirs) => {
                // SAFETY: ours was not published, so no other thread has it. `theirs` was: it is
                // not null, and not freed while the waiter table exists.
                unsafe {
                    Table::free(table);
                    &*theirs
                }
            }
        }
    }

    /// Whether `table` is still the current one. If one of its buckets is locked, a true answer
    /// stays true until the unlock.
    pub(super) fn is_current(&self, table: &Table) -> bool {
        // Relaxed: growth publishes a new table while it holds this bucket's lock, which we now
        // hold.
        ptr::eq(self.current.load(Ordering::Relaxed), table)
    }
}

#[cfg(loom)]
impl Drop for WaiterTable {
    fn drop(&mut self) {
        let mut table = NonNull::new(crate::checker::last_value(&mut self.current));
        // Every model ends with no waiter queued and none counted.
        if let Some(current) = table.filter(|_| !std::thread::panicking()) {
            // SAFETY: the model is over, and its tables are freed only below.
            let buckets = unsafe { current.as_ref() }.all();
            assert!(buckets.iter().all(|bucket| bucket.is_empty()), "left behind");
        }
        while let Some(this) = table {
            // SAFETY: the model is over: no thread has any table, and each is freed once, after its
            // link to the previous one was read.
            unsafe {
                table = NonNull::new(this.as_ref().previous.cast_mut());
                Table::free(this);
            }
        }
    }
}
