//! The handler of `pthread_atfork`, for memory that the kernel does not wipe in a forked child
//! (`MADV_WIPEONFORK`; refused before Linux 4.14, and if memory is short).
//!
//! The C library runs it in the child of `fork`, but not of `_Fork` or of a bare `clone`. A child
//! runs its handlers in the order of their registration. A handler of the program that was
//! registered before ours finds our memory as it was in the parent: with buckets that threads of
//! the parent have locked. So the drop-in registers ours as the process starts.
//!
//! There is one handler for all memory. The C library holds a lock while it registers a handler,
//! and may allocate. If the allocator then waits with this crate, it comes here again, and must not
//! register another handler.

use super::generation;
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// A function of type `fn()`, or null. See [`clear_in_child`].
static CLEAR: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());
static IS_REGISTERED: AtomicBool = AtomicBool::new(false);

thread_local! {
    // No destructor and a constant initial value: plain thread-local storage.
    static REGISTERS: Cell<bool> = const { Cell::new(false) };
}

/// From now on every forked child calls `clear`. Every call passes the same function.
#[cold]
pub(crate) fn clear_in_child(clear: fn()) {
    // Release, like the publication of the memory that is to be cleared: a thread that has found
    // that memory and then forks has found this, too.
    CLEAR.store(clear as *mut (), Ordering::Release);
    register();
}

/// Registers the handler: every child that is forked after this returns runs it. If threads
/// register it at the same moment, each of them does, and a child runs it more than once.
///
/// If the C library has no memory for it, children go without; there is no caller to report it to.
#[cold]
pub(crate) fn register() {
    if IS_REGISTERED.load(Ordering::Relaxed) || REGISTERS.replace(true) {
        return;
    }
    // SAFETY: `in_child` is a function without arguments or result, as the C library requires. It
    // stays as long as its library; when that is unloaded, the C library drops its handlers. It
    // touches only atomics, and calls the function given to `clear_in_child`, which is meant for
    // the child of a process with threads.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    // Relaxed: the C library's lock orders its list of handlers.
    IS_REGISTERED.store(true, Ordering::Relaxed);
    REGISTERS.set(false);
}

extern "C" fn in_child() {
    generation::begin_if_unwiped();
    let clear = CLEAR.load(Ordering::Acquire);
    if !clear.is_null() {
        // SAFETY: not null, so `clear_in_child` stored it, from a `fn()`.
        let clear = unsafe { core::mem::transmute::<*mut (), fn()>(clear) };
        clear();
    }
}
