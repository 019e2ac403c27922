//! Memory for words: mapped, and visible to other processes where a test needs that.

use rustix::fd::OwnedFd;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use std::ptr::{NonNull, null_mut};

/// A mapping, zeroed at first.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: plain memory; users of its addresses are responsible for their accesses.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Memory that forked children share.
    pub(crate) fn anonymous(length: usize) -> Self {
        let flags = MapFlags::SHARED;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let start = unsafe { mmap_anonymous(null_mut(), length, access, flags) };
        Self::new(start, length)
    }

    /// The whole of a file that other processes map too, at other addresses.
    pub(crate) fn of_file(file: &OwnedFd, length: usize) -> Self {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let start = unsafe { mmap(null_mut(), length, access, MapFlags::SHARED, file, 0) };
        Self::new(start, length)
    }

    fn new(start: rustix::io::Result<*mut std::ffi::c_void>, length: usize) -> Self {
        let start = NonNull::new(start.expect("no memory for a mapping").cast());
        Self {
            start: start.expect("a mapping at null"),
            length,
        }
    }

    /// The address `offset` bytes in.
    pub(crate) fn at<T>(&self, offset: usize) -> *mut T {
        assert!(offset + size_of::<T>() <= self.length);
        // SAFETY: inside the mapping.
        unsafe { self.start.as_ptr().add(offset).cast() }
    }

    /// The value `offset` bytes in.
    ///
    /// # Safety
    /// Zeros are a valid `T`, which consists of atomics only, and the place is used only with this
    /// type.
    pub(crate) unsafe fn get<T: Sync>(&self, offset: usize) -> &T {
        let address = self.at::<T>(offset);
        assert!(address.is_aligned());
        // SAFETY: mapped as long as `self`, aligned, and a valid `T` by the caller's promise.
        unsafe { &*address }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: no borrow of it is left.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// A file in memory.
pub(crate) fn memory_file(length: usize) -> OwnedFd {
    let file = memfd_create("waitword-test", MemfdFlags::CLOEXEC).expect("memfd_create");
    ftruncate(&file, length as u64).expect("ftruncate");
    file
}
