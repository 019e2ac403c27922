//! Signal handlers that do not return: `pthread_exit`, `thrd_exit`, `longjmp` and its relatives,
//! called by a handler that has interrupted a call of ours (`call.rs`); and exceptions that it lets
//! out (`leave/exception.rs`).
//!
//! ```text
//!   C's caller ► run ► the work ► (signal frame) ► handler ► siglongjmp
//!                                                 1. notes what it wants
//!                                                 2. marks the call to be left: its wait ends
//!                                                 3. returns to the call, by the signal frame
//!              ◄──── the work gives up, and releases what it got
//!         the note: siglongjmp
//! ```
//!
//! The handler's frames are lost on the way, as they are when it leaves at once. The signal mask
//! remains the handler's: a jump that does not restore one keeps it, and no other handler of those
//! signals runs in between.
//!
//! | function | leaves the call |
//! |----------|-----------------|
//! | `pthread_exit`, `thrd_exit` | yes: the handler runs in the middle of it |
//! | a jump | if its target lies beyond the call; not if it is within the handler |
//!
//! If one handler has interrupted another handler's call, that call is left first. At its end the
//! noted action is repeated, and leaves the outer call.
//!
//! On x86-64 only. On other machines these functions are the C library's.

mod exception;
mod frame;

use crate::call::{self, Call};
use core::cell::{Cell, UnsafeCell};
use core::ffi::{c_int, c_void};
pub(crate) use exception::boundary;
use frame::SignalFrame;

mod glibc {
    use super::{JumpBuffer, c_int, c_void};

    crate::real::real! {
        fn pthread_exit(value: *mut c_void) -> c_int;
        fn thrd_exit(value: c_int) -> c_int;
        fn longjmp(to: *const JumpBuffer, value: c_int) -> c_int;
        fn _longjmp(to: *const JumpBuffer, value: c_int) -> c_int;
        fn siglongjmp(to: *const JumpBuffer, value: c_int) -> c_int;
        fn __longjmp_chk(to: *const JumpBuffer, value: c_int) -> c_int;
    }
}

/// What `sigsetjmp` fills in: glibc's `sigjmp_buf`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct JumpBuffer {
    registers: [usize; 8],
    has_mask: c_int,
    mask: [u64; 16],
}

const _: () = assert!(size_of::<JumpBuffer>() == 200);

/// The action that a handler wants.
#[derive(Clone, Copy)]
enum Wish {
    Exit(*mut c_void),
    ThreadExit(c_int),
    /// To the buffer in the note.
    Jump(c_int),
    Exception(*mut c_void),
}

/// The last wish of a thread's handlers. A later one replaces an earlier one: its handler ran while
/// the call was on its way out.
struct Note {
    wish: Cell<Wish>,
    buffer: UnsafeCell<JumpBuffer>,
}

thread_local! {
    // No destructor and a constant initialiser: usable at any point of a thread's life.
    static NOTE: Note = const {
        Note {
            wish: Cell::new(Wish::ThreadExit(0)),
            buffer: UnsafeCell::new(JumpBuffer {
                registers: [0; 8],
                has_mask: 0,
                mask: [0; 16],
            }),
        }
    };
}

/// The call that the handler has interrupted, and the way back to it.
struct Way<'a> {
    call: &'a Call,
    frame: SignalFrame,
}

/// The way back to the call that the caller, a handler, must leave first. `None`: there is none.
fn way_back(is_beyond: impl FnOnce(*const Call) -> bool) -> Option<Way<'static>> {
    let call = call::current();
    if call.is_null() || !is_beyond(call) {
        return None;
    }
    let Some(frame) = SignalFrame::above(call.addr()) else {
        // The thread left its calls earlier, in a way that is not known here.
        call::forget_all();
        return None;
    };
    // SAFETY: the signal frame was found below the call: the call is in the middle of its work,
    // which continues in this very thread, and only once this function's caller is gone.
    let call = unsafe { &*call };
    Some(Way { call, frame })
}

impl Way<'_> {
    /// Takes the way back. The wish must have been noted.
    fn go(self) -> ! {
        self.call.leave();
        // SAFETY: the frame was found. All frames of ours between here and there have nothing to be
        // dropped, and the handler's frames are abandoned just as by a thread that ends or jumps.
        unsafe { self.frame.go_back() }
    }
}

/// Performs the noted wish, after the call that was to be left has ended.
pub(crate) fn go() {
    NOTE.with(|note| {
        let wish = note.wish.get();
        // SAFETY: each forwards the contract of the handler's call. No frame of ours between here
        // and the C caller has anything to be dropped.
        unsafe {
            match wish {
                Wish::Exit(value) => pthread_exit(value),
                Wish::ThreadExit(value) => thrd_exit(value),
                Wish::Jump(value) => siglongjmp(note.buffer.get(), value),
                Wish::Exception(exception) => exception::raise(exception),
            }
        }
    })
}

/// Notes the wish.
fn note(wish: Wish) {
    NOTE.with(|note| note.wish.set(wish));
}

/// The calling thread is about to end; does not return if that is deferred.
#[inline(never)]
fn put_off_end(wish: Wish) {
    if let Some(way) = way_back(|_| true) {
        note(wish);
        frame::forget_cleanups_below(&way.frame);
        way.go();
    }
}

/// The calling thread is about to jump; does not return if that is deferred.
///
/// # Safety
/// The buffer was filled by `setjmp`, in a frame that still exists.
#[inline]
unsafe fn put_off_jump(to: *const JumpBuffer, value: c_int) {
    if !call::current().is_null() {
        // SAFETY: forwards this function's own contract.
        unsafe { put_off_jump_from_handler(to, value) }
    }
}

/// # Safety
/// As [`put_off_jump`].
#[cold]
#[inline(never)]
unsafe fn put_off_jump_from_handler(to: *const JumpBuffer, value: c_int) {
    // SAFETY: a buffer, by this function's contract. (If it was filled without a mask, the rest is
    // garbage, but it exists, since the type is the same.)
    let buffer = unsafe { to.read() };
    let target = frame::stack_pointer_of(&buffer.registers);
    if let Some(way) = way_back(|call| frame::is_beyond(target, call.addr())) {
        NOTE.with(|note| {
            // SAFETY: the note is this thread's, and no other code has borrowed it.
            unsafe { note.buffer.get().write(buffer) }
        });
        note(Wish::Jump(value));
        way.go();
    }
}

/// A function that does not return in the C library has returned.
fn never() -> ! {
    // SAFETY: `abort` has no preconditions, and does not return.
    unsafe { libc::abort() }
}

/// Ends the calling thread. Source: POSIX `pthread_exit`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_exit(value: *mut c_void) -> ! {
    if !call::current().is_null() {
        put_off_end(Wish::Exit(value));
    }
    // SAFETY: forwards this function's own contract.
    unsafe { glibc::pthread_exit(value) };
    never()
}

/// Ends the calling thread. Source: C11 7.26.5.5.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn thrd_exit(value: c_int) -> ! {
    if !call::current().is_null() {
        put_off_end(Wish::ThreadExit(value));
    }
    // SAFETY: forwards this function's own contract.
    unsafe { glibc::thrd_exit(value) };
    never()
}

/// `jump! { longjmp }`: defines the function of this name.
macro_rules! jump {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(to: *const JumpBuffer, value: c_int) -> ! {
            // SAFETY: forwards this function's own contract.
            unsafe {
                put_off_jump(to, value);
                glibc::$name(to, value);
            }
            never()
        }
    )*};
}

jump! {
    /// Jumps. Source: C11 7.13.2.1.
    longjmp
    /// Jumps, and does not restore the signal mask. Source: POSIX `_longjmp`.
    _longjmp
    /// Jumps, and restores the signal mask if it was saved. Source: POSIX `siglongjmp`.
    siglongjmp
    /// Any of these, in programs compiled with `_FORTIFY_SOURCE`.
    __longjmp_chk
}
