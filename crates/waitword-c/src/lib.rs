//! The C ABI of waitword: thin wrappers. The futex calls stand on `waitword::door`, which speaks futex(2)'s and
//! futex2's own arguments already; the locks on the crate's raw locks, which say all that POSIX asks for.
//!
//! | file | what it wraps |
//! |------|---------------|
//! | `futex2.rs`, `classic.rs`, `settings.rs` | the futex calls; the table and the spin |
//! | `mutex.rs`, `cond.rs`, `rwlock.rs`, `sem.rs`, `barrier.rs`, `once.rs`, `event.rs`, `latch.rs`, `robust.rs` | a lock each |
//! | `constants.rs`, `lock_flags.rs` | what the preprocessor sees |
//! | `call.rs` | what the locks' functions share |
//!
//! What is added here is C: `-1` and `errno`, the C library's `struct timespec`, and constants that a
//! preprocessor can see. `include/waitword.h` is generated from this crate (see `tests/header.rs`), so
//! **every doc comment below is also the C programmer's manual**: it speaks of C, and links nowhere.
//!
//! No panic crosses into C. None is expected, since the calls below reach no code that panics on any
//! input; and if one came from a defect all the same, an `extern "C"` function does not unwind: the
//! process aborts with the message.

// In the order of the header, which follows this one.
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

mod call;

use core::ffi::c_long;
use core::mem::{align_of, offset_of, size_of};
use libc::timespec;
use waitword_core::door::{Errno, Timespec};

/// A result in C's way: the count, or -1 with `errno` set. `errno` is left alone on success.
fn answer(result: Result<usize, Errno>) -> c_long {
    match result {
        Ok(count) => count as c_long,
        Err(error) => fail(error.raw_os_error()),
    }
}

/// Sets `errno` and gives the -1 that goes with it.
fn fail(error: i32) -> c_long {
    // SAFETY: the calling thread's own `errno`, which lives as long as the thread.
    unsafe { *libc::__errno_location() = error };
    -1
}

/// The C library's time as the door reads it: the same bytes, on every machine this compiles for.
fn time(timeout: *const timespec) -> *const Timespec {
    const {
        assert!(size_of::<timespec>() == size_of::<Timespec>());
        assert!(align_of::<timespec>() >= align_of::<Timespec>());
        assert!(offset_of!(timespec, tv_sec) == offset_of!(Timespec, tv_sec));
        assert!(offset_of!(timespec, tv_nsec) == offset_of!(Timespec, tv_nsec));
    }
    timeout.cast()
}
