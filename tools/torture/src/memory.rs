//! Memory that processes share.

use std::os::fd::{BorrowedFd, IntoRawFd as _};
use waitword_testkit::{Mapping, memory_file};

/// A file in memory with this many zeros, which goes away with the last process that has it open.
pub(crate) fn file_in_memory(bytes: usize) -> i32 {
    memory_file(bytes).into_raw_fd()
}

/// Maps such a file at a new address. It is never unmapped.
pub(crate) fn map_file(file: i32, bytes: usize) -> *mut u8 {
    // SAFETY: the file stays open meanwhile.
    Mapping::of_file(unsafe { BorrowedFd::borrow_raw(file) }, bytes).leak()
}

/// The same file under another descriptor, which stays open in a program that this process
/// executes.
pub(crate) fn keep_open(file: i32) -> i32 {
    // SAFETY: passes only a number.
    let kept = unsafe { libc::dup(file) };
    assert!(kept >= 0, "cannot duplicate a descriptor");
    kept
}

/// Zeroed memory that forked processes share with this one; never unmapped.
pub(crate) fn shared_memory(bytes: usize) -> *mut u8 {
    Mapping::anonymous(bytes).leak()
}
