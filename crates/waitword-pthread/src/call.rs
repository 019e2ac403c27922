//! A call of ours that does more than a step or two. It is never left in the middle.
//!
//! # Why
//!
//! A thread may leave the function that it is in at any instruction: it is cancelled and its
//! cancellation type is asynchronous, or a signal handler calls `pthread_exit` or `siglongjmp`.
//! POSIX leaves undefined what becomes of a lock that was being taken; the C library's locks
//! usually survive it. Ours wait in queues whose nodes lie on their stacks, and hold bucket locks.
//! So all code that touches those runs in a call, which first runs to its own end.
//!
//! ```text
//!   C's caller
//!     pthread_mutex_lock       a step or two: may be left anywhere
//!       run                    the thread's call = this one; at the end the outer one
//!         the work             a handler that wants to leave: `leave.rs`
//! ```
//!
//! A call is registered in its [`Thread`]. A call made by a handler is registered in front of the
//! one that the handler interrupted.
//!
//! * **Cancelled**: a call makes the cancellation type deferred. A request that arrives in the
//!   middle ends its wait, and is acted on at its end, like any request that an asynchronous thread
//!   finds.
//! * **Cancelled in a handler**, at a cancellation point of the C library's: a call disables
//!   cancellation, so the request is acted on after its end.
//! * **A handler leaves**: `leave.rs` makes a note of it here, ends the wait and returns to the
//!   call. After the call's end the thread leaves.
//!
//! # The frames
//!
//! [`run`] and its callers can be unwound from any instruction: `extern "C-unwind"`, with nothing
//! to be dropped. (A function with something to drop has a table of the calls in which it may be
//! unwound, and no other instructions.) The functions that `run` calls do not unwind: an exception
//! that a handler lets out stops at `run` (`leave/exception.rs`).

use crate::thread::{OpenCall, Thread};
use crate::{cancel, leave};
use core::cell::Cell;
use core::ffi::c_int;
use core::sync::atomic::{Ordering, compiler_fence};
use waitword::Deadline;
use waitword::abi_support::{Interrupter, SetAside};

/// One call of one of our functions.
pub(crate) struct Call {
    open: OpenCall,
    thread: *const Thread,
    /// The outer call's waits, which are suspended meanwhile.
    aside: Cell<Option<SetAside>>,
    was_asynchronous: bool,
    was_enabled: bool,
    is_point: bool,
}

/// The kinds of calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It does not wait.
    Through,
    /// It may wait.
    Wait,
    /// It may wait, and is a cancellation point.
    Point,
}

/// The result of a call's work.
#[derive(Clone, Copy)]
pub(crate) struct Ended {
    /// The number to return to the C caller.
    pub(crate) number: c_int,
    /// Whether the wait may have ended because of a request, which is acted on first.
    pub(crate) requested: bool,
    /// Whether the work is repeated if there was no request.
    pub(crate) retry: bool,
}

impl Ended {
    /// Ended with this result.
    pub(crate) fn with(number: c_int) -> Self {
        Self { number, requested: false, retry: false }
    }

    /// Whether the call achieved its purpose.
    pub(crate) fn is_done(self) -> bool {
        self.number == 0 && !self.retry
    }

    /// Ended because another thread seems to have requested cancellation.
    pub(crate) fn by_request() -> Self {
        Self { number: 0, requested: true, retry: true }
    }
}

impl Call {
    #[inline(always)]
    fn thread(&self) -> &Thread {
        // SAFETY: it lies in the calling thread's storage, and a call is used only by its own
        // thread.
        unsafe { &*self.thread }
    }

    /// The interrupter that ends its waits.
    #[inline]
    pub(crate) fn interrupter(&self) -> &Interrupter {
        self.open.interrupter()
    }

    /// Whether the call is to be left.
    #[inline]
    fn is_left(&self) -> bool {
        self.open.is_left()
    }

    /// Whether its thread can be cancelled at any instruction, outside of calls.
    pub(crate) fn is_asynchronous(&self) -> bool {
        self.was_asynchronous
    }

    /// The deadline of a wait, brought forward when the call is to be left.
    #[inline]
    pub(crate) fn until(&self, deadline: Option<&Deadline>) -> Deadline {
        // SAFETY: the interrupter outlives the call, whose waits are this thread's.
        unsafe { self.interrupter().bring_forward(deadline, self.was_asynchronous) }
    }

    /// The result of a wait [until](Self::until) such a deadline.
    pub(crate) fn ended(&self, number: c_int) -> Ended {
        let is_requested = number == libc::ETIMEDOUT
            && self.was_asynchronous
            && !self.is_left()
            && self.interrupter().is_asked();
        match is_requested {
            true => Ended::by_request(),
            false => Ended::with(number),
        }
    }

    #[inline(always)]
    fn begin(&self) {
        self.thread().call.set(&self.open);
        compiler_fence(Ordering::SeqCst);
    }

    #[inline(always)]
    fn end(&self) {
        compiler_fence(Ordering::SeqCst);
        self.thread().call.set(self.open.outer);
        compiler_fence(Ordering::SeqCst);
    }

    /// Restores how the thread acts on requests. It acts on a pending one at once if its type is
    /// asynchronous. It may be unwound from here.
    #[inline(always)]
    fn restore_cancellation(&self) {
        cancel::restore_state(self.was_enabled);
        cancel::restore_type(self.was_asynchronous);
    }

    /// The call has ended: restores the state from before. From here the thread may be unwound.
    #[inline(always)]
    fn step_out(&self) {
        if let Some(aside) = self.aside.take() {
            self.interrupter().take_up(aside);
        }
        self.restore_cancellation();
    }

    /// Undoes [`step_out`](Self::step_out): the call continues.
    #[inline(always)]
    fn step_in(&self) {
        if self.was_enabled {
            cancel::disable();
        }
        cancel::defer();
        self.set_aside();
    }

    #[inline(always)]
    fn set_aside(&self) {
        if !self.open.outer.is_null() {
            self.aside.set(Some(self.interrupter().set_aside()));
        }
    }

    /// Calls `function` as if the C caller did: the thread may leave it in any way. Does nothing if
    /// the call is to be left. Returns whether `function` has returned.
    pub(crate) fn outside<F: Fn()>(&self, function: F) -> bool {
        // In a frame of its own, without anything to be dropped.
        #[inline(never)]
        #[allow(improper_ctypes_definitions, reason = "as `work_of`")]
        extern "C-unwind" fn call_outside<F: Fn()>(call: &Call, function: &F) -> bool {
            call.end();
            // Leaving has priority: until the thread has left, its waits end at once.
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

    /// Acts on a pending request.
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

/// Runs `work` as a call. If a handler leaves it, `undo` releases what it took.
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
    // SAFETY: it is the calling thread's, which exists as long as this frame.
    let thread = unsafe { &*Thread::this() };
    leave::boundary();
    let is_point = kind == Kind::Point;
    let by = match is_point {
        true => thread.interrupter(),
        false => thread.interrupter_if_any(),
    };
    // An earlier request has been acted on. One that comes from here on is acted on at once, or
    // ends the wait.
    if is_point || cancel::may_be_asynchronous() {
        by.clear();
    }
    let was_asynchronous = cancel::defer();
    if is_point {
        cancel::test();
    }
    let call = Call {
        open: OpenCall::new(thread.call.get(), by),
        thread,
        aside: Cell::new(None),
        was_asynchronous,
        // For a call that does not wait this is not worth the time as long as no thread was ever
        // cancelled: the first request would have to arrive in the middle of the call.
        was_enabled: (kind != Kind::Through || cancel::was_ever_requested()) && cancel::disable(),
        is_point,
    };
    call.set_aside();
    call.begin();
    let ended = loop {
        let ended = work_of(&work, &call);
        if !ended.requested || call.is_left() {
            break ended;
        }
        call.act();
        if !ended.retry {
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

/// An unwinder that searches for a handler of an exception passes this frame, up to the boundary.
#[inline(never)]
#[allow(
    improper_ctypes_definitions,
    reason = "it is called by Rust; the ABI says that an unwinder may go by it"
)]
extern "C-unwind" fn work_of<W: Fn(&Call) -> Ended>(work: &W, call: &Call) -> Ended {
    work(call)
}

/// Releases what the call took, and leaves it.
#[cold]
#[inline(never)]
fn leave_for<U: Fn(Ended)>(call: &Call, ended: Ended, undo: &U) {
    call.begin();
    undo_of(undo, ended);
    call.end();
    call.interrupter().has_left();
    call.step_out();
    leave::depart();
}

#[inline(never)]
#[allow(improper_ctypes_definitions, reason = "as `work_of`")]
extern "C-unwind" fn undo_of<U: Fn(Ended)>(undo: &U, ended: Ended) {
    undo(ended);
}
