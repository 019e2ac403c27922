//! fork on systems where the kernel cannot wipe our memory in the child by itself.
//!
//! Everywhere else (Linux 4.14 and later) `MADV_WIPEONFORK` does all of it: the child of any kind of fork
//! finds its buckets and parkers zeroed, which is their empty state, and nothing is to be done or to go
//! wrong. Where that is refused, and for the reserve table, which is not mapped memory, a handler of
//! `pthread_atfork` clears them; that reaches `fork`, not `_Fork` or a bare `clone`.

use super::Repository;
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, Ordering};

/// Whether the handler is registered.
static ARMED: AtomicBool = AtomicBool::new(false);

thread_local! {
    // No destructor and a constant start: plain thread-local storage.
    static REGISTERS: Cell<bool> = const { Cell::new(false) };
}

/// Has the buckets and parkers of this process cleared in every forked child, by the time that it returns: nobody may wait before.
/// So threads that come while another one registers the handler register it, too; clearing twice does no harm.
#[cold]
pub(crate) fn wipe_by_handler() {
    extern "C" fn child() {
        // SAFETY: this runs in the child of a fork, which has one thread, and that is in `fork`: it
        // does not wait and is in no bucket. (If a handler has forked that interrupted a section in
        // a bucket, the child does not go back into that section: the crate's page asks for this.)
        unsafe { super::repository().wipe() };
    }
    // The C library may allocate for its list of handlers, and an allocator that stands on this comes here again.
    if ARMED.load(Ordering::Relaxed) || REGISTERS.replace(true) {
        return;
    }
    // A failure (no memory for the handler) leaves children without a clean table; there is nobody
    // to tell, and the parent must go on.
    // SAFETY: `child` is a function without arguments or results, as the C library wants it, and is
    // there as long as its library, whose handlers the C library drops with it.
    unsafe { libc::pthread_atfork(None, None, Some(child)) };
    // Relaxed: the C library's lock orders its list of handlers.
    ARMED.store(true, Ordering::Relaxed);
    REGISTERS.set(false);
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
