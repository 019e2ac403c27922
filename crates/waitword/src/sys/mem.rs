//! Memory for the table and the parkers: directly from mmap, zeroed, never freed once published.

use crate::sys::Errno;
use core::ptr::NonNull;
use rustix::mm::{Advice, MapFlags, ProtFlags};

pub(crate) const PAGE: usize = 4096;

/// `length` zeroed bytes, page-aligned; `None` if memory is short.
pub(crate) fn map(length: usize) -> Option<NonNull<u8>> {
    // SAFETY: a new private anonymous mapping at an address of the kernel's choice: it changes no
    // memory in use.
    let address = unsafe {
        rustix::mm::mmap_anonymous(
            core::ptr::null_mut(),
            length,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE,
        )
    };
    NonNull::new(address.ok()?.cast())
}

/// Unmaps a mapping that no other thread has seen.
///
/// # Safety
/// `address` and `length` are those of one [`map`], and no reference into it is left.
pub(crate) unsafe fn unmap(address: NonNull<u8>, length: usize) {
    // SAFETY: forwards this function's own contract: the range is one whole mapping of ours, and no
    // reference into it is left that could be used after.
    let result = unsafe { rustix::mm::munmap(address.as_ptr().cast(), length) };
    debug_assert!(result.is_ok());
}

/// Makes the kernel zero this memory in every forked child (Linux 4.14, `MADV_WIPEONFORK`).
///
/// # Errors
/// `EINVAL` on a kernel (or emulator) that does not support it.
///
/// # Safety
/// The range consists of whole pages of one [`map`], and all zeros is a valid state of its
/// contents.
pub(crate) unsafe fn wipe_on_fork(address: NonNull<u8>, length: usize) -> Result<(), Errno> {
    // SAFETY: forwards this function's own contract. The advice changes nothing in this process:
    // only a forked child finds the range zeroed, which is a valid state.
    unsafe { rustix::mm::madvise(address.as_ptr().cast(), length, Advice::LinuxWipeOnFork) }
        .map_err(Errno::of)
}

/// Makes `count` values in mapped memory. There is nothing to do, since the memory is zeroed and so
/// are they. (In a model they are more than their zeros, see `mem_model.rs`.)
///
/// # Safety
/// `first` leads to room for `count` values in one [`map`] that no other thread has seen, and `new`
/// makes the value that consists of zeros.
#[inline(always)]
pub(crate) unsafe fn construct<T>(_first: NonNull<T>, _count: usize, _new: impl Fn() -> T) {}

/// The end of values that [`construct`] has made.
///
/// # Safety
/// `construct` has made `count` values there, and they are not used after.
#[inline(always)]
pub(crate) unsafe fn destruct<T>(_first: NonNull<T>, _count: usize) {}
