//! The way back from a signal handler that wants to leave a call: it notes how it wants to leave,
//! marks the call to be left, and returns to it (`frame.rs`). Once the call has ended, the thread
//! leaves as noted (`leave.rs`).

use super::frame::{self, SignalFrame};
use crate::thread::{OpenCall, current_call, forget_calls};
use core::cell::{Cell, UnsafeCell};
use core::ffi::{c_int, c_void};

/// What `sigsetjmp` fills in: glibc's `sigjmp_buf`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct JumpBuffer {
    registers: [usize; 8],
    has_mask: c_int,
    mask: [u64; 16],
}

const _: () = assert!(size_of::<JumpBuffer>() == 200);

/// The way in which a handler wants to leave.
#[derive(Clone, Copy)]
pub(super) enum Departure {
    Exit(*mut c_void),
    ThreadExit(c_int),
    /// To the buffer in the note.
    Jump(c_int),
    Exception(*mut c_void),
}

/// The last departure that a thread's handlers wanted. A later one replaces an earlier one: its
/// handler ran while the call was on its way out.
struct Note {
    departure: Cell<Departure>,
    buffer: UnsafeCell<JumpBuffer>,
}

thread_local! {
    // No destructor and a constant initialiser: usable at any point of a thread's life.
    static NOTE: Note = const {
        Note {
            departure: Cell::new(Departure::ThreadExit(0)),
            buffer: UnsafeCell::new(JumpBuffer {
                registers: [0; 8],
                has_mask: 0,
                mask: [0; 16],
            }),
        }
    };
}

/// Notes the departure.
fn note(departure: Departure) {
    NOTE.with(|note| note.departure.set(departure));
}

/// The noted departure.
pub(super) fn noted() -> Departure {
    NOTE.with(|note| note.departure.get())
}

/// The buffer of a noted jump.
pub(super) fn noted_buffer() -> *const JumpBuffer {
    NOTE.with(|note| note.buffer.get())
}

/// The call that the handler has interrupted, and the way back to it. (`'static`: the call outlives
/// the handler's frames, which are all that uses this.)
pub(super) struct WayBack {
    call: &'static OpenCall,
    pub(super) frame: SignalFrame,
}

/// The way back to the call that the caller, a handler, must leave first. `None`: there is none.
pub(super) fn way_back(is_beyond: impl FnOnce(*const OpenCall) -> bool) -> Option<WayBack> {
    let call = current_call();
    if call.is_null() || !is_beyond(call) {
        return None;
    }
    let Some(frame) = SignalFrame::above(call.addr()) else {
        // The thread left its calls earlier, in a way that is not known here.
        forget_calls();
        return None;
    };
    // SAFETY: the signal frame was found below the call: the call is in the middle of its work,
    // which continues in this very thread, and only once this function's caller is gone.
    let call = unsafe { &*call };
    Some(WayBack { call, frame })
}

impl WayBack {
    /// Takes the way back. The departure must have been noted.
    fn go(self) -> ! {
        self.call.leave();
        // SAFETY: the frame was found. All frames of ours between here and there have nothing to be
        // dropped, and the handler's frames are abandoned just as by a thread that ends or jumps.
        unsafe { self.frame.go_back() }
    }
}

/// The calling thread is about to end; does not return if that is deferred.
#[inline(never)]
pub(super) fn defer_end(departure: Departure) {
    if let Some(way) = way_back(|_| true) {
        note(departure);
        frame::forget_cleanups_below(&way.frame);
        way.go();
    }
}

/// The calling thread is about to jump; does not return if that is deferred.
///
/// # Safety
/// The buffer was filled by `setjmp`, in a frame that still exists.
#[inline]
pub(super) unsafe fn defer_jump(to: *const JumpBuffer, value: c_int) {
    if !current_call().is_null() {
        // SAFETY: forwards this function's own contract.
        unsafe { defer_jump_from_handler(to, value) }
    }
}

/// # Safety
/// As [`defer_jump`].
#[cold]
#[inline(never)]
unsafe fn defer_jump_from_handler(to: *const JumpBuffer, value: c_int) {
    // SAFETY: a buffer, by this function's contract. (If it was filled without a mask, the rest is
    // garbage, but it exists, since the type is the same.)
    let buffer = unsafe { to.read() };
    let target = frame::stack_pointer_of(&buffer.registers);
    if let Some(way) = way_back(|call| frame::is_beyond(target, call.addr())) {
        NOTE.with(|note| {
            // SAFETY: the note is this thread's, and no other code has borrowed it.
            unsafe { note.buffer.get().write(buffer) }
        });
        note(Departure::Jump(value));
        way.go();
    }
}

/// A function that does not return in the C library has returned.
pub(super) fn never() -> ! {
    // SAFETY: `abort` has no preconditions, and does not return.
    unsafe { libc::abort() }
}
