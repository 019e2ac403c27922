//! Larger tables as more threads wait.
//!
//! Growth locks every bucket of the old table in order, moves the rings over, publishes the new
//! table and unlocks. A thread that was waiting for a bucket's lock then checks the current table
//! again and goes there. The old table stays mapped for threads that still have its address, and
//! keeps its counts: a waker that reads a nonzero count there goes on to the lock, and from there
//! to the new table (`WaiterTable::find_waiters`).
//!
//! There is at least one bucket for each parker that was ever in use at once, so a bucket holds at
//! most one waiting word on average. Memory: a bucket has 64 bytes, sizes double, and old tables
//! stay, so at most 256 bytes a waiter.

use super::section::Section;
use super::table::Table;
use super::waiter_table::WaiterTable;
use crate::atomic::Ordering;
use crate::park::{GROUP, Parker};
use crate::sys::sched;
use core::ptr::NonNull;

/// There is no memory for a larger table. The present one stays in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfMemory;

impl WaiterTable {
    /// A parker for the calling thread, which is about to wait. The table grows with the number of
    /// parkers, as far as memory allows.
    pub(crate) fn take_parker(&self) -> Parker<'_> {
        self.parkers.take(|capacity| {
            // If memory is short, the present table stays in use, with longer queues.
            let _ = self.grow(capacity);
            sched::grow_kernel_hash(capacity / GROUP);
        })
    }

    /// Ensures that there are at least `buckets`; returns how many there are then.
    ///
    /// # Errors
    /// Memory is short. Everything continues to work, with longer queues.
    pub(crate) fn grow(&self, buckets: usize) -> Result<usize, OutOfMemory> {
        self.least_buckets.fetch_max(buckets, Ordering::Relaxed);
        loop {
            let old = self.table();
            let bits = Table::bits_for(buckets, old.nodes());
            let nodes = self.described_nodes();
            if old.len() >= (nodes.count() as usize) << bits {
                return Ok(old.len());
            }
            let new = Table::allocate(bits, nodes, self.if_unwiped).ok_or(OutOfMemory)?;
            // SAFETY: `allocate` has just made it.
            if unsafe { self.replace(old, new) } {
                return Ok((nodes.count() as usize) << bits);
            }
            // SAFETY: `replace` has not published it, so no other thread has it.
            unsafe { Table::free(new) };
        }
    }

    /// Moves all waiters from `old` into `new` and makes that the current table. False if `old` was
    /// no longer the current one.
    ///
    /// # Safety
    /// `new` comes from [`Table::allocate`], and no other thread has it.
    pub(super) unsafe fn replace(&self, old: &Table, mut new: NonNull<Table>) -> bool {
        let _section = Section::enter(self);
        for bucket in old.all() {
            bucket.lock();
        }
        let is_current = self.is_current(old);
        if is_current {
            // SAFETY: it is complete, and no other thread has it, by this function's contract; it
            // is published below, and not changed after.
            let table = unsafe { new.as_mut() };
            table.previous = old;
            for bucket in old.all() {
                // SAFETY: all buckets of the old table are locked, and no other thread has the new
                // one, which needs no locks. A key has one ring, so its ring in the new table is
                // the only one of that key. The inner `chain` is of another bucket than the outer.
                unsafe {
                    bucket.chain(|chain| {
                        chain.take_rings(|first, length| {
                            let new = table.find(first.key());
                            new.bucket.count(new.lane, length);
                            new.bucket.chain(|chain| chain.add_ring(first));
                        });
                    });
                }
            }
            // Release: a thread that finds the new table finds every waiter in it.
            self.current.store(new.as_ptr(), Ordering::Release);
        }
        for bucket in old.all() {
            // SAFETY: locked above, each once, by this thread.
            unsafe { bucket.unlock() };
        }
        is_current
    }

    /// How many buckets there are; 0 before the first wait.
    pub(crate) fn buckets(&self) -> usize {
        self.existing_table().map_or(0, Table::len)
    }

    /// Bytes mapped for tables, old ones included, and for parkers.
    pub(crate) fn mapped_bytes(&self) -> usize {
        let mut bytes = self.parkers.mapped_bytes();
        let mut table = self.existing_table();
        while let Some(this) = table {
            bytes += this.mapped_bytes();
            // SAFETY: null, or a table that was published: published tables are never freed.
            table = unsafe { this.previous.as_ref() };
        }
        bytes
    }
}
