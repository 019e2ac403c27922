//! The handler of `pthread_atfork`, for memory that the kernel does not wipe in a forked child
//! (`MADV_WIPEONFORK`; refused before Linux 4.14, and where memory is short).
//!
//! The C library runs it in the child of `fork`, but not of `_Fork` or of a bare `clone`. A child
//! runs its handlers in the order of their registration. A handler of the program that was
//! registered before ours finds our memory as it was in the parent: with buckets that threads of the
//! parent have locked. So the drop-in registers ours as the process starts.
//!
//! There is one handler for all of it. The C library holds a lock while it registers a handler, and
//! may allocate. An allocator that waits with this crate then comes here again, and must not
//! register another one.

use super::generation;
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// A function of type `fn()`, or null. See [`clear_in_child`].
static CLEAR: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());
static IS_REGISTERED: AtomicBool = AtomicBool::new(false);

thread_local! {
    // No destructor and a constant start: plain thread-local storage.
    static REGISTERS: Cell<bool> = const { Cell::new(false) };
}

/// Has every forked child call `clear` from now on. Every call passes the same function.
#[cold]
pub(crate) fn clear_in_child(clear: fn()) {
    // Release, like the publication of the memory that is to be cleared: a thread that forks and has
    // found that memory has found this, too.
    CLEAR.store(clear as *mut (), Ordering::Release);
    register();
}

/// Registers the handler: every child that is forked after the return of this runs it. If threads
/// register it at the same moment, each of them does, and a child runs it more than once.
///
/// If the C library has no memory for it, children go without; there is nobody to tell.
#[cold]
pub(crate) fn register() {
    if IS_REGISTERED.load(Ordering::Relaxed) || REGISTERS.replace(true) {
        return;
    }
    // SAFETY: `in_child` is a function without arguments or results, as the C library wants it. It
    // stays as long as its library, whose handlers the C library drops with it. It touches nothing
    // but atomics, and what `clear_in_child` was given for the child of a process with threads.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    // Relaxed: the C library's lock orders its list of handlers.
    IS_REGISTERED.store(true, Ordering::Relaxed);
    REGISTERS.set(false);
}

extern "C" fn in_child() {
    generation::begin_if_unwiped();
    let clear = CLEAR.load(Ordering::Acquire);
    if !clear.is_null() {
        // SAFETY: not null, so it was stored by `clear_in_child`, which had it as a `fn()`.
        let clear = unsafe { core::mem::transmute::<*mut (), fn()>(clear) };
        clear();
    }
}
