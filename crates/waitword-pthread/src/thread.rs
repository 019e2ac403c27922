//! What this library knows about the calling thread: the [call](OpenCall) that it is in the middle
//! of, and the interrupter that ends its waits.
//!
//! An interrupter lies in the thread's record, where `pthread_cancel` finds it
//! (`interrupters.rs`). A thread that was never at a cancellation point of ours has no record, only
//! an interrupter of its own. Its record is released by a key's destructor.

use crate::interrupters::{self, Record};
use core::cell::Cell;
use core::ffi::c_void;
use core::ptr::null;
use core::sync::atomic::{AtomicU32, Ordering, compiler_fence};
use libc::pthread_key_t;
use waitword::abi_support::Interrupter;

/// A call that its thread is in the middle of (`call.rs`), as the thread's signal handlers see it.
pub(crate) struct OpenCall {
    /// The call that was interrupted by the signal handler that made this one.
    pub(crate) outer: *const OpenCall,
    by: *const Interrupter,
    is_left: Cell<bool>,
}

impl OpenCall {
    /// A call whose waits are ended by `by`. The interrupter outlives it.
    #[inline(always)]
    pub(crate) fn new(outer: *const OpenCall, by: &Interrupter) -> Self {
        Self { outer, by, is_left: Cell::new(false) }
    }

    /// The interrupter that ends its waits.
    #[inline]
    pub(crate) fn interrupter(&self) -> &Interrupter {
        // SAFETY: it lies in the calling thread's storage, or in memory that is never freed; and a
        // call is used only by its own thread.
        unsafe { &*self.by }
    }

    /// Whether the call is to be left.
    #[inline]
    pub(crate) fn is_left(&self) -> bool {
        // A handler may write it between any two instructions.
        compiler_fence(Ordering::SeqCst);
        self.is_left.get()
    }

    /// Marks the call to be left, on behalf of one of its thread's signal handlers.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn leave(&self) {
        self.is_left.set(true);
        self.interrupter().leave();
    }
}

/// All that is known about the calling thread, in one place: finding it costs a call.
pub(crate) struct Thread {
    record: Cell<Option<&'static Record>>,
    /// The interrupter of a thread that has no record: only its own signal handlers find it.
    unlisted: Interrupter,
    /// The call that the thread is in the middle of.
    pub(crate) call: Cell<*const OpenCall>,
}

thread_local! {
    // No destructor and a constant initialiser: usable at any point of a thread's life.
    static THREAD: Thread = const {
        Thread {
            record: Cell::new(None),
            unlisted: Interrupter::signalled(),
            call: Cell::new(null()),
        }
    };
}

impl Thread {
    /// The calling thread. Must not be passed to another.
    #[inline]
    pub(crate) fn this() -> *const Self {
        THREAD.with(core::ptr::from_ref)
    }

    /// The interrupter by which other threads can interrupt this one (unless there is no memory for
    /// a record).
    #[inline]
    pub(crate) fn interrupter(&self) -> &Interrupter {
        match self.record.get() {
            Some(record) => &record.interrupter,
            None => self.first(),
        }
    }

    /// The same for a function that may run under an allocator: creates no record.
    #[inline]
    pub(crate) fn interrupter_if_any(&self) -> &Interrupter {
        match self.record.get() {
            Some(record) => &record.interrupter,
            None => &self.unlisted,
        }
    }

    #[cold]
    fn first(&self) -> &Interrupter {
        // SAFETY: `pthread_self` has no preconditions.
        let Some((index, record)) = interrupters::take(unsafe { libc::pthread_self() }) else {
            return &self.unlisted;
        };
        self.record.set(Some(record));
        give_back_at_exit(index);
        &record.interrupter
    }
}

/// The call in whose middle the calling thread is, or the code that its signal handler has
/// interrupted. Null: none.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn current_call() -> *const OpenCall {
    // SAFETY: it is the calling thread's.
    unsafe { &*Thread::this() }.call.get()
}

/// The thread has left all its calls in a way of its own.
#[cfg(target_arch = "x86_64")]
pub(crate) fn forget_calls() {
    // SAFETY: it is the calling thread's.
    unsafe { &*Thread::this() }.call.set(null());
}

/// Ensures that other threads can interrupt the calling thread.
pub(crate) fn make_interruptible() {
    THREAD.with(|thread| {
        thread.interrupter();
    });
}

/// Ensures that the record of this number is released when the thread ends.
fn give_back_at_exit(index: usize) {
    const NO_KEY: u32 = 0;
    /// The key's number plus one.
    static KEY: AtomicU32 = AtomicU32::new(NO_KEY);
    let mut key = KEY.load(Ordering::Relaxed);
    if key == NO_KEY {
        let mut made: pthread_key_t = 0;
        // SAFETY: `made` is a place for a key. The destructor follows no pointer, and always
        // exists: the library is linked with `nodelete`.
        if unsafe { libc::pthread_key_create(&mut made, Some(give_back)) } != 0 {
            // There are too many keys. The record is not used again.
            return;
        }
        key = match KEY.compare_exchange(NO_KEY, made + 1, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => made + 1,
            Err(theirs) => {
                // SAFETY: `made` was created above, and is known to no other thread: the exchange
                // that would have published it has failed.
                unsafe { libc::pthread_key_delete(made) };
                theirs
            }
        };
    }
    let value = core::ptr::without_provenance::<c_void>(index + 1);
    // SAFETY: the key was created by this function, in this thread or another, and is not deleted.
    // The value is a number for `give_back`, which no code follows as a pointer.
    unsafe { libc::pthread_setspecific(key - 1, value) };
}

unsafe extern "C" fn give_back(value: *mut c_void) {
    let index = value.addr() - 1;
    // Other destructors may still wait: they take a new record.
    THREAD.with(|thread| thread.record.set(None));
    interrupters::give_back(index);
}
