//! Memory for words: mapped, and visible to other processes where a test needs that.
//!
//! Mapped by the C library's mmap: torture's `memory` fault makes calls fail that come from this
//! program's own code (`tools/torture/src/fault/memory.rs`).

use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::ptr::{NonNull, null_mut};

/// A mapping, zeroed at first.
pub struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: plain memory; users of its addresses are responsible for their accesses.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Memory that forked children share.
    pub fn anonymous(length: usize) -> Self {
        Self::map(length, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1)
    }

    /// Memory that forked children copy.
    pub fn private(length: usize) -> Self {
        Self::map(length, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)
    }

    /// The whole of a file that other processes map too, at other addresses.
    pub fn of_file(file: impl AsFd, length: usize) -> Self {
        Self::map(length, libc::MAP_SHARED, file.as_fd().as_raw_fd())
    }

    fn map(length: usize, flags: i32, file: i32) -> Self {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let start = unsafe { libc::mmap(null_mut(), length, access, flags, file, 0) };
        assert_ne!(start, libc::MAP_FAILED, "no memory for a mapping");
        let start = NonNull::new(start.cast()).expect("a mapping at null");
        Self { start, length }
    }

    /// Its address. It is never unmapped.
    pub fn leak(self) -> *mut u8 {
        std::mem::ManuallyDrop::new(self).start.as_ptr()
    }

    /// The address `offset` bytes in.
    pub fn at<T>(&self, offset: usize) -> *mut T {
        assert!(offset + size_of::<T>() <= self.length);
        // SAFETY: inside the mapping.
        unsafe { self.start.as_ptr().add(offset).cast() }
    }

    /// The value `offset` bytes in.
    ///
    /// # Safety
    /// Zeros are a valid `T`, which consists of atomics only, and the place is used only with this
    /// type.
    pub unsafe fn get<T: Sync>(&self, offset: usize) -> &T {
        let address = self.at::<T>(offset);
        assert!(address.is_aligned());
        // SAFETY: mapped as long as `self`, aligned, and a valid `T` by the caller's promise.
        unsafe { &*address }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: no borrow of it is left.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// A file in memory.
pub fn memory_file(length: usize) -> OwnedFd {
    let file = memfd_create("waitword-test", MemfdFlags::CLOEXEC).expect("memfd_create");
    ftruncate(&file, length as u64).expect("ftruncate");
    file
}
