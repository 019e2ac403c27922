//! A call of ours that does more than a step or two. It is never left from its middle.
//!
//! # Why
//!
//! A thread may leave the function that it is in at any instruction: it is cancelled and its
//! cancellation type is asynchronous, or a signal handler calls `pthread_exit` or `siglongjmp`.
//! POSIX leaves open what becomes of a lock that was being taken; the C library's are none the
//! worse for it, most often. Ours wait in queues whose nodes lie on their stacks, and hold locks of
//! buckets. So whatever touches those runs in a call, which first comes to its own end.
//!
//! ```text
//!   C's caller
//!     pthread_mutex_lock       a step or two: may be left anywhere
//!       run                    the thread's call = this one; at the end the outer one
//!         the work             a handler that wants to leave: `leave.rs`
//! ```
//!
//! A call is marked in its [`Thread`]. A handler's own calls stand in front of the one that it has
//! interrupted.
//!
//! * **Cancelled**: a call makes the cancellation type deferred. A request that comes in its middle
//!   ends its wait, and is acted on at its end, as any request is that an asynchronous thread
//!   finds.
//! * **Cancelled in a handler**, at a cancellation point of the C library's: a call disables
//!   cancellation, so the request is acted on behind its end.
//! * **A handler leaves**: `leave.rs` makes a note of it here, ends the wait and goes back to the
//!   call. Behind its end it is left.
//!
//! # The frames
//!
//! [`run`] and what calls it can be unwound from any instruction: `extern "C-unwind"`, with nothing
//! to be dropped. (A function with something to drop has a table of the calls in which it may be
//! unwound, and no instruction beside them.) What `run` calls does not unwind: an exception that a
//! handler lets out stops at `run` (`leave/exception.rs`).

use crate::cancel::{self, Thread};
use crate::leave;
use core::cell::Cell;
use core::ffi::c_int;
use core::ptr::null;
use core::sync::atomic::{Ordering, compiler_fence};
use waitword::Deadline;
use waitword::abi_support::{Interrupter, SetAside};

/// One call of one of our functions.
pub(crate) struct Call {
    /// The call that was interrupted by the signal handler which made this one.
    outer: *const Call,
    thread: *const Thread,
    by: *const Interrupter,
    /// The outer call's waits, which stand still meanwhile.
    aside: Cell<Option<SetAside>>,
    is_left: Cell<bool>,
    was_asynchronous: bool,
    was_allowed: bool,
    is_point: bool,
}

/// What a call is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It does not wait.
    Through,
    /// It may wait.
    Wait,
    /// It may wait, and is a cancellation point.
    Point,
}

/// What the work of a call came to.
#[derive(Clone, Copy)]
pub(crate) struct Ended {
    /// What C's caller is told.
    pub(crate) number: c_int,
    /// Whether the wait may have ended by a request, which is acted on first.
    pub(crate) asked: bool,
    /// Whether the work is done once more if there was none.
    pub(crate) again: bool,
}

impl Ended {
    /// With this answer.
    pub(crate) fn with(number: c_int) -> Self {
        Self {
            number,
            asked: false,
            again: false,
        }
    }

    /// Whether what the call is for was done.
    pub(crate) fn is_done(self) -> bool {
        self.number == 0 && !self.again
    }

    /// Another thread has asked this one to end, it seems.
    pub(crate) fn as_asked() -> Self {
        Self {
            number: 0,
            asked: true,
            again: true,
        }
    }
}

impl Call {
    #[inline(always)]
    fn thread(&self) -> &Thread {
        // SAFETY: it lies in the calling thread's storage, and a call is used by its own thread
        // alone.
        unsafe { &*self.thread }
    }

    /// What its waits are ended by.
    #[inline]
    pub(crate) fn interrupter(&self) -> &Interrupter {
        // SAFETY: it lies in the calling thread's storage, or in memory that is never freed; and a
        // call is used by its own thread alone.
        unsafe { &*self.by }
    }

    /// Whether it is to be left.
    #[inline]
    pub(crate) fn is_left(&self) -> bool {
        // A handler writes it between any two instructions.
        compiler_fence(Ordering::SeqCst);
        self.is_left.get()
    }

    /// Whether its thread is cancelled at any instruction, outside of calls.
    pub(crate) fn is_asynchronous(&self) -> bool {
        self.was_asynchronous
    }

    /// It is to be left, as one of its thread's signal handlers says.
    pub(crate) fn leave(&self) {
        self.is_left.set(true);
        self.interrupter().leave();
    }

    /// The deadline of a wait, brought forward when the call is to be left.
    #[inline]
    pub(crate) fn until(&self, deadline: Option<&Deadline>) -> Deadline {
        // SAFETY: the interrupter outlives the call, whose waits are this thread's.
        unsafe {
            self.interrupter()
                .bring_forward(deadline, self.was_asynchronous)
        }
    }

    /// What a wait [until](Self::until) such a deadline came to.
    pub(crate) fn ended(&self, number: c_int) -> Ended {
        let by_request = number == libc::ETIMEDOUT
            && self.was_asynchronous
            && !self.is_left()
            && self.interrupter().is_asked();
        match by_request {
            true => Ended::as_asked(),
            false => Ended::with(number),
        }
    }

    #[inline(always)]
    fn begin(&self) {
        self.thread().call.set(self);
        compiler_fence(Ordering::SeqCst);
    }

    #[inline(always)]
    fn end(&self) {
        compiler_fence(Ordering::SeqCst);
        self.thread().call.set(self.outer);
        compiler_fence(Ordering::SeqCst);
    }

    /// The thread acts on requests as it did before the call; on one that stands, at once, if its
    /// type is asynchronous. It may be unwound from here.
    #[inline(always)]
    fn put_off_no_longer(&self) {
        cancel::allow(self.was_allowed);
        cancel::defer_no_longer(self.was_asynchronous);
    }

    /// The call has ended: all is as it was before. From here the thread may be unwound.
    #[inline(always)]
    fn step_out(&self) {
        if let Some(aside) = self.aside.take() {
            self.interrupter().take_up(aside);
        }
        self.put_off_no_longer();
    }

    /// It is about to begin again.
    #[inline(always)]
    fn step_in(&self) {
        if self.was_allowed {
            cancel::forbid();
        }
        cancel::defer();
        self.set_aside();
    }

    #[inline(always)]
    fn set_aside(&self) {
        if !self.outer.is_null() {
            self.aside.set(Some(self.interrupter().set_aside()));
        }
    }

    /// Calls `function` as if C's caller did: the thread may leave it in any way. Not if the call is
    /// to be left. Whether `function` has returned.
    pub(crate) fn outside<F: Fn()>(&self, function: F) -> bool {
        // In a frame of its own, without anything to be dropped.
        #[inline(never)]
        #[allow(improper_ctypes_definitions, reason = "as `work_of`")]
        extern "C-unwind" fn call_outside<F: Fn()>(call: &Call, function: &F) -> bool {
            call.end();
            // To be left comes first: the thread's waits are ended by that until it has left.
            let goes_on = !call.is_left();
            if goes_on {
                call.step_out();
                function();
                call.step_in();
            }
            call.begin();
            goes_on
        }
        call_outside(self, &function)
    }

    /// Acts on a request that stands.
    #[inline]
    fn act(&self) {
        self.interrupter().clear();
        self.outside(|| {
            if self.is_point {
                cancel::test();
            }
        });
    }
}

/// The call that the calling thread, or the code that its signal handler has interrupted, is in the
/// middle of. Null: none.
#[inline]
pub(crate) fn current() -> *const Call {
    // SAFETY: the calling thread's.
    unsafe { &*Thread::this() }.call.get()
}

/// The thread has left all its calls by a way of its own.
pub(crate) fn forget_all() {
    // SAFETY: the calling thread's.
    unsafe { &*Thread::this() }.call.set(null());
}

/// Runs `work` as a call. If a handler leaves it, `undo` gives back what it took.
#[inline(always)]
pub(crate) fn run(work: impl Fn(&Call) -> Ended, undo: impl Fn(Ended)) -> c_int {
    run_as(Kind::Wait, work, undo)
}

/// The same, as a cancellation point.
#[inline(always)]
pub(crate) fn run_point(work: impl Fn(&Call) -> Ended, undo: impl Fn(Ended)) -> c_int {
    run_as(Kind::Point, work, undo)
}

/// Runs `work`, which takes nothing and does not wait, as a call.
#[inline(always)]
pub(crate) fn run_through(work: impl Fn() -> c_int) -> c_int {
    run_as(Kind::Through, |_| Ended::with(work()), |_| {})
}

#[inline(never)]
fn run_as<W: Fn(&Call) -> Ended, U: Fn(Ended)>(kind: Kind, work: W, undo: U) -> c_int {
    // SAFETY: the calling thread's, which is there as long as this frame.
    let thread = unsafe { &*Thread::this() };
    leave::boundary();
    let is_point = kind == Kind::Point;
    let by = match is_point {
        true => thread.interrupter(),
        false => thread.interrupter_if_any(),
    };
    // A request of before is one that was acted on. One that comes from here on is acted on at
    // once, or ends the wait.
    if is_point || cancel::may_be_asynchronous() {
        by.clear();
    }
    let was_asynchronous = cancel::defer();
    if is_point {
        cancel::test();
    }
    let call = Call {
        outer: thread.call.get(),
        thread,
        by,
        aside: Cell::new(None),
        is_left: Cell::new(false),
        was_asynchronous,
        // A call that does not wait is not worth the time while no thread was ever cancelled: the
        // first request would have to come in the middle of it.
        was_allowed: (kind != Kind::Through || cancel::was_ever_asked()) && cancel::forbid(),
        is_point,
    };
    call.set_aside();
    call.begin();
    let ended = loop {
        let ended = work_of(&work, &call);
        if !ended.asked || call.is_left() {
            break ended;
        }
        call.act();
        if !ended.again {
            break ended;
        }
    };
    call.end();
    if call.is_left() {
        leave_for(&call, ended, &undo);
    }
    call.step_out();
    ended.number
}

/// An unwinder that looks for who catches an exception goes by it, to the boundary.
#[inline(never)]
#[allow(
    improper_ctypes_definitions,
    reason = "it is called by Rust; the ABI says that an unwinder may go by it"
)]
extern "C-unwind" fn work_of<W: Fn(&Call) -> Ended>(work: &W, call: &Call) -> Ended {
    work(call)
}

/// Gives back what the call took, and leaves it.
#[cold]
#[inline(never)]
fn leave_for<U: Fn(Ended)>(call: &Call, ended: Ended, undo: &U) {
    call.begin();
    undo_of(undo, ended);
    call.end();
    call.interrupter().has_left();
    call.step_out();
    leave::go();
}

#[inline(never)]
#[allow(improper_ctypes_definitions, reason = "as `work_of`")]
extern "C-unwind" fn undo_of<U: Fn(Ended)>(undo: &U, ended: Ended) {
    undo(ended);
}
