//! Signal handlers that do not return: `pthread_exit`, `thrd_exit`, `longjmp` and its relatives,
//! called by a handler that has interrupted a call of ours (`call.rs`); and exceptions that it lets
//! out (`leave/exception.rs`).
//!
//! ```text
//!   C's caller ► run ► the work ► (signal frame) ► handler ► siglongjmp
//!                                                 1. notes how it wants to leave
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
//! On x86-64 only. On AArch64 these functions are the C library's.

mod exception;
mod frame;
mod way_back;

use crate::thread::current_call;
use core::ffi::{c_int, c_void};
pub(crate) use exception::boundary;
pub use way_back::JumpBuffer;
use way_back::{Departure, defer_end, defer_jump, never, noted, noted_buffer};

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

/// Leaves as noted, after the call that was to be left has ended.
pub(crate) fn depart() {
    // SAFETY: each forwards the contract of the handler's call. No frame of ours between here and
    // the C caller has anything to be dropped.
    unsafe {
        match noted() {
            Departure::Exit(value) => pthread_exit(value),
            Departure::ThreadExit(value) => thrd_exit(value),
            Departure::Jump(value) => siglongjmp(noted_buffer(), value),
            Departure::Exception(exception) => exception::raise(exception),
        }
    }
}

/// Ends the calling thread. Source: POSIX `pthread_exit`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_exit(value: *mut c_void) -> ! {
    if !current_call().is_null() {
        defer_end(Departure::Exit(value));
    }
    // SAFETY: forwards this function's own contract.
    unsafe { glibc::pthread_exit(value) };
    never()
}

/// Ends the calling thread. Source: C11 7.26.5.5.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn thrd_exit(value: c_int) -> ! {
    if !current_call().is_null() {
        defer_end(Departure::ThreadExit(value));
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
                defer_jump(to, value);
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
