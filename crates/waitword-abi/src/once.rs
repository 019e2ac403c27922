//! A once whose routine may be left in any way that C allows.
//!
//! If the routine throws, or its thread is cancelled or ends inside it, it counts as not called,
//! and one of the waiting threads calls its own. Two mechanisms detect this. The first one to run
//! ends the turn:
//!
//! * A destructor. Exceptions run it, and so does the forced unwinding of a thread that ends.
//! * A handler in the C library's list of cleanup handlers. Forced unwinding stops at a frame
//!   without unwind tables, which is common in C code. The C library then calls the handlers in its
//!   list and jumps over all remaining frames.

use core::cell::{Cell, UnsafeCell};
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use waitword::Once;
use waitword::abi_support::{OnceHooks as _, OnceRun};

/// Calls the routine if none has completed with this `once`, or waits for the thread that runs one.
/// Blocks.
///
/// If the routine has completed before, this is one load.
#[inline(always)]
pub fn execute(once: &Once, routine: impl FnOnce()) {
    if !once.state().done() {
        run_or_wait(once, routine);
    }
}

// Not inlined: the C library detects by the turn's address that this frame has been left.
#[cold]
#[inline(never)]
fn run_or_wait(once: &Once, routine: impl FnOnce()) {
    // Without a deadline this does not time out.
    if let Ok(Some(run)) = once.begin_executing(None) {
        let call = || {
            routine();
            true
        };
        take_turn(run, call, |run| drop(run));
    }
}

/// Calls `call`, which either calls the routine of a run that has begun, or returns `false` to
/// report that it did not. If `call` does not return, `give_up` drops the run.
#[inline(always)]
pub fn take_turn(run: OnceRun<'_>, call: impl FnOnce() -> bool, give_up: fn(OnceRun<'_>)) {
    let turn =
        Turn { run: Cell::new(Some(run)), give_up, link: UnsafeCell::new(MaybeUninit::uninit()) };
    // SAFETY: the turn lies in this frame and is not moved. It ends below, or in its destructor.
    unsafe { turn.list() };
    let is_done = call();
    // SAFETY: `list` was called above.
    unsafe { turn.finish(is_done) };
}

/// An entry of the C library's list of cleanup handlers: its `struct _pthread_cleanup_buffer`.
#[repr(C)]
struct Link {
    routine: Option<unsafe extern "C" fn(*mut c_void)>,
    argument: *mut c_void,
    cancel_type: c_int,
    previous: *mut Link,
}

unsafe extern "C" {
    /// Adds an entry at the front of the calling thread's list.
    fn _pthread_cleanup_push(
        link: *mut Link,
        routine: unsafe extern "C" fn(*mut c_void),
        argument: *mut c_void,
    );
    /// Removes it, and everything in front of it.
    fn _pthread_cleanup_pop(link: *mut Link, execute: c_int);
}

/// The call of a routine. It must not move once it is [listed](Self::list): the C library detects
/// by its address that its frame has been left.
struct Turn<'a> {
    /// `None` once it has ended.
    run: Cell<Option<OnceRun<'a>>>,
    give_up: fn(OnceRun<'_>),
    link: UnsafeCell<MaybeUninit<Link>>,
}

impl Turn<'_> {
    /// Registers the turn with the C library, which ends it if the thread ends.
    ///
    /// # Safety
    /// The turn lies in a frame of the calling thread's stack and is not moved. It is
    /// [finished](Self::finish) or dropped before that frame returns.
    unsafe fn list(&self) {
        unsafe extern "C" fn leave(turn: *mut c_void) {
            // SAFETY: this is the turn that was listed. The C library calls this on the same stack,
            // further down, before anything else can reuse the turn's memory.
            let turn = unsafe { &*turn.cast::<Turn<'_>>() };
            turn.give_up();
        }
        let turn = core::ptr::from_ref(self).cast_mut().cast();
        // SAFETY: the link has room for everything that is written there, and it is in the list no
        // longer than it lives: `finish` or the destructor removes it, or the C library does before
        // it calls `leave`.
        unsafe { _pthread_cleanup_push(self.link.get().cast(), leave, turn) };
    }

    /// # Safety
    /// The turn is listed.
    unsafe fn unlist(&self) {
        // SAFETY: an entry of the calling thread's list. The entries in front of it belong to
        // frames that are gone.
        unsafe { _pthread_cleanup_pop(self.link.get().cast(), 0) };
    }

    /// Called after the routine's call has returned.
    ///
    /// # Safety
    /// The turn is listed.
    unsafe fn finish(&self, is_done: bool) {
        // SAFETY: forwards this function's own contract.
        unsafe { self.unlist() };
        match self.run.take() {
            Some(run) if is_done => run.end(),
            run => drop(run),
        }
    }

    /// Called when the call has been left without a return.
    fn give_up(&self) {
        if let Some(run) = self.run.take() {
            (self.give_up)(run);
        }
    }
}

/// Runs if an exception leaves the routine, or if the thread ends and no handler was called before.
impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(run) = self.run.take() {
            // SAFETY: the turn was listed before the routine was called, and neither `finish` nor
            // `leave` has run.
            unsafe { self.unlist() };
            (self.give_up)(run);
        }
    }
}
