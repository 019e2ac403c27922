//! Memory for the table and the parkers, from the allocator: a model maps none of its own.

use crate::sys::Errno;
use core::ptr::NonNull;
use std::alloc::{Layout, alloc_zeroed, dealloc};

pub(crate) const PAGE: usize = 4096;

fn layout(length: usize) -> Layout {
    Layout::from_size_align(length, PAGE).expect("a table fits into memory")
}

pub(crate) fn map(length: usize) -> Option<NonNull<u8>> {
    // SAFETY: no caller asks for a length of 0.
    NonNull::new(unsafe { alloc_zeroed(layout(length)) })
}

/// # Safety
/// As for the real one.
pub(crate) unsafe fn unmap(address: NonNull<u8>, length: usize) {
    // SAFETY: `map` has allocated it with this layout, by this function's contract.
    unsafe { dealloc(address.as_ptr(), layout(length)) };
}

/// # Safety
/// As for the real one.
pub(crate) unsafe fn wipe_on_fork(_: NonNull<u8>, _: usize) -> Result<(), Errno> {
    Ok(())
}

/// Makes `count` values there: an atomic of the checker is more than zeros.
///
/// # Safety
/// As for the real one.
pub(crate) unsafe fn construct<T>(first: NonNull<T>, count: usize, new: impl Fn() -> T) {
    for index in 0..count {
        // SAFETY: there is memory for `count` values, by this function's contract.
        unsafe { first.add(index).write(new()) };
    }
}

/// # Safety
/// As for the real one.
pub(crate) unsafe fn destruct<T>(first: NonNull<T>, count: usize) {
    for index in 0..count {
        // SAFETY: `construct` has made `count` values there, and nothing uses them, by this
        // function's contract.
        unsafe { first.add(index).drop_in_place() };
    }
}
