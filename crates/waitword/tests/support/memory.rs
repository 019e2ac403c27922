//! Memory for words: mapped, and seen by other processes where a test says so.

use rustix::fd::OwnedFd;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use std::ptr::{NonNull, null_mut};

/// A mapping, zeroed at first.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: plain memory; what is done with it is the matter of those who ask for addresses.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Memory that forked children share.
    pub(crate) fn anonymous(length: usize) -> Self {
        let flags = MapFlags::SHARED;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, wherever there is room.
        let start = unsafe { mmap_anonymous(null_mut(), length, access, flags) };
        Self::new(start, length)
    }

    /// The whole of a file that other processes map too, at addresses of their own.
    pub(crate) fn of_file(file: &OwnedFd, length: usize) -> Self {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, wherever there is room.
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

    /// What lies `offset` bytes in.
    ///
    /// # Safety
    /// Zeros are a `T`, which is made of atomics only and lies there at one type.
    pub(crate) unsafe fn get<T: Sync>(&self, offset: usize) -> &T {
        let address = self.at::<T>(offset);
        assert!(address.is_aligned());
        // SAFETY: mapped as long as `self`, aligned, and by the caller's promise a `T`.
        unsafe { &*address }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: nobody has borrowed from it.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// A file in memory.
pub(crate) fn memory_file(length: usize) -> OwnedFd {
    let file = memfd_create("waitword-test", MemfdFlags::CLOEXEC).expect("memfd_create");
    ftruncate(&file, length as u64).expect("ftruncate");
    file
}
