//! Work in the child of `fork`, for memory that the kernel did not wipe there (`MADV_WIPEONFORK`).
//!
//! A [`ChildHandler`] reaches `fork`, not `_Fork` or a bare `clone`. The C library runs the handlers of a child in the order in
//! which they were registered, so a handler of the program that was registered first finds our memory as it was in the parent. The
//! drop-in registers ours as the process starts, before there are threads or handlers of the program's.

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, Ordering};

/// A function for `pthread_atfork`, and whether the C library has it.
pub(crate) struct ChildHandler {
    run: extern "C" fn(),
    is_registered: AtomicBool,
}

thread_local! {
    // No destructor and a constant start: plain thread-local storage.
    static REGISTERS: Cell<bool> = const { Cell::new(false) };
}

impl ChildHandler {
    /// `run` may be called more than once in a child.
    pub(crate) const fn new(run: extern "C" fn()) -> Self {
        Self {
            run,
            is_registered: AtomicBool::new(false),
        }
    }

    /// Registers it. Every child that is forked after this has returned runs it. Threads that come while another one
    /// registers it register it, too.
    ///
    /// Not async-signal-safe where the C library's `pthread_atfork` is not; called once in the life of a process.
    #[cold]
    pub(crate) fn register(&self) {
        // The C library may allocate for its list of handlers, and an allocator that stands on this crate comes here again.
        if self.is_registered.load(Ordering::Relaxed) || REGISTERS.replace(true) {
            return;
        }
        // A failure (no memory for the handler) leaves children as they are; there is nobody to tell, and the parent must
        // go on.
        // SAFETY: `run` is a function without arguments or results, as the C library wants it, and is there as long as its
        // library, whose handlers the C library drops with it.
        unsafe { libc::pthread_atfork(None, None, Some(self.run)) };
        // Relaxed: the C library's lock orders its list of handlers.
        self.is_registered.store(true, Ordering::Relaxed);
        REGISTERS.set(false);
    }
}
