//! fork on systems where the kernel cannot wipe our memory in the child by itself.
//!
//! Everywhere else (Linux 4.14 and later) `MADV_WIPEONFORK` does all of it: the child of any kind of fork
//! finds its buckets and parkers zeroed, which is their empty state, and nothing is to be done or to go
//! wrong. Where that is refused, and for the reserve table, which is not mapped memory, a handler of
//! `pthread_atfork` clears them (`sys/fork.rs`).

use super::Repository;
use crate::sys::fork::ChildHandler;
use core::sync::atomic::{AtomicBool, Ordering};

static HANDLER: ChildHandler = ChildHandler::new(wipe_in_child);
/// Whether there is memory that the kernel does not wipe.
static HAS_UNWIPED: AtomicBool = AtomicBool::new(false);

extern "C" fn wipe_in_child() {
    // Relaxed: fork is a barrier. A child of a process that has such memory, and has used it, finds this set.
    if HAS_UNWIPED.load(Ordering::Relaxed) {
        // SAFETY: this runs in the child of a fork, which has one thread, and that is in `fork`: it
        // does not wait and is in no bucket. (If a handler has forked that interrupted a section in
        // a bucket, the child does not go back into that section: the crate's page asks for this.)
        unsafe { super::repository().wipe() };
    }
}

/// Registers the handler, which does nothing as long as the kernel wipes all that there is.
pub(crate) fn register_handler() {
    HANDLER.register();
}

/// Has the buckets and parkers of this process cleared in every forked child, by the time that it returns: nobody may wait before.
#[cold]
pub(crate) fn wipe_by_handler() {
    HAS_UNWIPED.store(true, Ordering::Relaxed);
    register_handler();
}

impl Repository {
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
            // SAFETY: null, or a table that was published: those are never freed.
            table = unsafe { this.previous.as_ref() };
        }
        // SAFETY: there is one thread, and it does not wait, by this function's contract; so it
        // holds no parker.
        unsafe { self.parkers.wipe() };
    }
}
