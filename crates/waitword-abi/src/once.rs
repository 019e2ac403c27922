//! A once whose routine may be left in any way that C knows.
//!
//! If the routine throws, or its thread is cancelled in it or ends, it counts as not called, and
//! one of those who wait calls its own. Two things end the turn then, and the first to come ends
//! it:
//!
//! * A destructor. Exceptions run it, and so does the forced unwinding of a thread that ends.
//! * A handler in the C library's list of cleanup handlers. Forced unwinding stops at a frame
//!   without unwind tables, as code in C often has them. The C library then calls the handlers in
//!   its list and jumps over all frames that are left.

use core::cell::{Cell, UnsafeCell};
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use waitword::Once;
use waitword::abi_support::{OnceRun, begin_executing};

/// Calls the routine if no thread has called one with this `once`, or waits for the thread that
/// runs it. Blocks.
///
/// If it is done already this is one load.
#[inline(always)]
pub fn execute(once: &Once, routine: impl FnOnce()) {
    if !once.state().done() {
        run_or_wait(once, routine);
    }
}

// Not inlined: the C library tells by the turn's address that this frame is left.
#[cold]
#[inline(never)]
fn run_or_wait(once: &Once, routine: impl FnOnce()) {
    // Without a deadline it does not give up.
    if let Ok(Some(run)) = begin_executing(once, None) {
        let call = || {
            routine();
            true
        };
        take_turn(run, call, |run| drop(run));
    }
}

/// Calls `call`, which calls the routine of a run that has begun, or says that it did not. If it does
/// not return, `give_up` drops the run.
#[inline(always)]
pub fn take_turn(run: OnceRun<'_>, call: impl FnOnce() -> bool, give_up: fn(OnceRun<'_>)) {
    let turn = Turn {
        run: Cell::new(Some(run)),
        give_up,
        link: UnsafeCell::new(MaybeUninit::uninit()),
    };
    // SAFETY: the turn is this frame's and is not moved. It ends below, or in its destructor.
    unsafe { turn.list() };
    let is_done = call();
    // SAFETY: it was listed above.
    unsafe { turn.finish(is_done) };
}

/// A link of the C library's list of cleanup handlers: its `struct _pthread_cleanup_buffer`.
#[repr(C)]
struct Link {
    routine: Option<unsafe extern "C" fn(*mut c_void)>,
    argument: *mut c_void,
    cancel_type: c_int,
    previous: *mut Link,
}

unsafe extern "C" {
    /// Puts a link in front of the calling thread's list.
    fn _pthread_cleanup_push(
        link: *mut Link,
        routine: unsafe extern "C" fn(*mut c_void),
        argument: *mut c_void,
    );
    /// Takes it, and what stands in front of it, out.
    fn _pthread_cleanup_pop(link: *mut Link, execute: c_int);
}

/// The call of a routine. It stays where it is once it is [listed](Self::list): the C library knows
/// by its address when its frame is left.
struct Turn<'a> {
    /// `None` once it has ended.
    run: Cell<Option<OnceRun<'a>>>,
    give_up: fn(OnceRun<'_>),
    link: UnsafeCell<MaybeUninit<Link>>,
}

impl Turn<'_> {
    /// Has the C library end it if the thread ends.
    ///
    /// # Safety
    /// It lies in a frame of the calling thread's stack and is not moved. Before that frame returns
    /// it is [finished](Self::finish) or dropped.
    unsafe fn list(&self) {
        unsafe extern "C" fn leave(turn: *mut c_void) {
            // SAFETY: the turn that was listed. The C library calls this on the same stack, further
            // down, before anything else can use the turn's place.
            let turn = unsafe { &*turn.cast::<Turn<'_>>() };
            turn.give_up();
        }
        let turn = core::ptr::from_ref(self).cast_mut().cast();
        // SAFETY: the link has room for all that is written there, and is in the list no longer
        // than it lives: `finish` or the destructor takes it out, or the C library does before it
        // calls `leave`.
        unsafe { _pthread_cleanup_push(self.link.get().cast(), leave, turn) };
    }

    /// # Safety
    /// It is listed.
    unsafe fn unlist(&self) {
        // SAFETY: a link of the calling thread's list. What stands in front of it belongs to frames
        // that are gone.
        unsafe { _pthread_cleanup_pop(self.link.get().cast(), 0) };
    }

    /// The call has returned.
    ///
    /// # Safety
    /// It is listed.
    unsafe fn finish(&self, is_done: bool) {
        // SAFETY: forwards this function's own contract.
        unsafe { self.unlist() };
        match self.run.take() {
            Some(run) if is_done => run.end(),
            run => drop(run),
        }
    }

    /// The call has been left.
    fn give_up(&self) {
        if let Some(run) = self.run.take() {
            (self.give_up)(run);
        }
    }
}

/// An exception has left the routine, or the thread ends and no handler was called before.
impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(run) = self.run.take() {
            // SAFETY: it was listed before the routine was called, and neither `finish` nor `leave`
            // has run.
            unsafe { self.unlist() };
            (self.give_up)(run);
        }
    }
}
