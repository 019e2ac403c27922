//! The waiter table of this process, and of its forked children.
//!
//! On Linux 4.14 and later, `MADV_WIPEONFORK` does all that a fork requires. The child of any kind
//! of fork finds its buckets and parkers zeroed, which is their empty state; there is nothing to
//! do, and nothing can go wrong. Where the kernel refuses it, and for the reserve table, which is
//! not mapped memory, a handler of `pthread_atfork` clears them (`sys/fork.rs`).

#[cfg(not(loom))]
use super::description::{FIELDS, Fields};
use super::waiter_table::WaiterTable;
use crate::atomic::{const_fn, process_static};
#[cfg(not(loom))]
use crate::debugger::Description;
use crate::sys;
use crate::sys::numa::Nodes;

process_static! {
    static WAITER_TABLE: WaiterTable = WaiterTable::new(None);
}

#[cfg(not(loom))]
#[used]
#[unsafe(link_section = ".waitword_debug")]
static DESCRIPTION: Description<WaiterTable, Fields> =
    Description::new("waiter table", &WAITER_TABLE, FIELDS);

/// The waiter table of this process.
#[inline(always)]
pub(crate) fn waiter_table() -> &'static WaiterTable {
    &WAITER_TABLE
}

/// From its return on, every forked child clears its copy of the buckets and parkers of this
/// process. No thread may wait before that.
#[cold]
fn wipe_by_handler() {
    // The table has this function's address, so both are in every program that has the table.
    #[cfg(not(loom))]
    DESCRIPTION.keep();
    sys::fork::clear_in_child(|| {
        // SAFETY: this runs in the child of a fork, which has one thread, and that is in `fork`: it
        // does not wait and is in no bucket. (If the fork was made by a handler that interrupted a
        // section in a bucket, the child does not return to that section: the crate's documentation
        // requires this.)
        unsafe { waiter_table().wipe() };
    });
}

impl WaiterTable {
    const_fn! {
        /// An empty one, on the nodes as described by the caller; `None`: ask the kernel at first
        /// use.
        pub(crate) const fn new(nodes: Option<Nodes>) -> Self {
            Self::on(nodes, wipe_by_handler)
        }
    }

    /// Empties every table and frees every parker.
    ///
    /// # Safety
    /// The process has one thread, and it neither waits nor is in a bucket.
    unsafe fn wipe(&self) {
        let mut table = self.existing_table();
        while let Some(this) = table {
            for bucket in this.all() {
                // SAFETY: there is one thread, and it is in no bucket, by this function's contract.
                unsafe { bucket.wipe() };
            }
            // SAFETY: null, or a table that was published: published tables are never freed.
            table = unsafe { this.previous.as_ref() };
        }
        // SAFETY: there is one thread, and it does not wait, by this function's contract; so it
        // holds no parker.
        unsafe { self.parkers.wipe() };
    }
}
