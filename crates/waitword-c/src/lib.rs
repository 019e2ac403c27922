//! The C ABI of waitword: thin wrappers. The futex calls wrap `waitword::raw`, which already takes
//! the arguments of futex(2) and futex2. The locks wrap the crate's raw locks, which report
//! everything that POSIX asks for.
//!
//! | file | what it wraps |
//! |------|---------------|
//! | `futex2.rs`, `classic.rs` | the futex calls |
//! | `settings.rs` | the waiter table's size, the spin budget, the version |
//! | `stats.rs` | counts of waits and wakes |
//! | `record.rs` | the recording of waits |
//! | `constants.rs`, `lock_flags.rs` | the constants for the preprocessor |
//! | `call.rs` | code shared by the lock functions |
//! | the others | one lock each |
//!
//! This crate adds what is specific to C: `-1` and `errno`, the C library's `struct timespec`, and
//! constants that a preprocessor can see. `include/waitword.h` is generated from this crate (see
//! `tests/header.rs`), so **every doc comment below is also the C programmer's manual**: it talks
//! about C, and contains no links.
//!
//! No panic crosses into C. None is expected, because the calls below reach no code that panics on
//! any input. If a defect caused one nevertheless, an `extern "C"` function does not unwind: the
//! process aborts with the message.

// This order determines the order of the header.
pub mod constants;

pub mod lock_flags;

pub mod futex2;

pub mod classic;

pub mod mutex;

pub mod cond;

pub mod robust;

pub mod rwlock;

pub mod rwlock_upgrade;

pub mod sem;

pub mod barrier;

pub mod latch;

pub mod event;

pub mod once;

pub mod settings;

pub mod stats;

pub mod record;

mod call;

use core::ffi::c_long;
use core::mem::{align_of, offset_of, size_of};
use libc::timespec;
use waitword_core::raw::{Errno, Timespec};

/// A result as C expects it: the count, or -1 with `errno` set. Leaves `errno` alone on success.
fn answer(result: Result<usize, Errno>) -> c_long {
    match result {
        Ok(count) => count as c_long,
        Err(error) => fail(error.raw_os_error()),
    }
}

/// Sets `errno` and returns the matching -1.
fn fail(error: i32) -> c_long {
    // SAFETY: the calling thread's own `errno`, which lives as long as the thread.
    unsafe { *libc::__errno_location() = error };
    -1
}

/// The C library's time as the raw futex interface reads it: the same bytes on every machine that
/// this compiles for.
fn time(timeout: *const timespec) -> *const Timespec {
    const {
        assert!(size_of::<timespec>() == size_of::<Timespec>());
        assert!(align_of::<timespec>() >= align_of::<Timespec>());
        assert!(offset_of!(timespec, tv_sec) == offset_of!(Timespec, tv_sec));
        assert!(offset_of!(timespec, tv_nsec) == offset_of!(Timespec, tv_nsec));
    }
    timeout.cast()
}
