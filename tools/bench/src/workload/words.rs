//! Words mapped directly from the kernel: at a known spacing, and in shared memory for workloads on
//! shared words, so that the kernel identifies them by page and not by address.

use crate::ops::BenchWord;
use core::marker::PhantomData;
use core::ops::Index;
use core::ptr::NonNull;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// The distance between words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Adjacent.
    Packed,
    /// 128 bytes: each on its own cache line, including the next line, which CPUs fetch along with
    /// it.
    Apart,
}

/// An array of words, initially zero.
#[derive(Debug)]
pub struct Words<W> {
    base: NonNull<u8>,
    count: usize,
    stride: usize,
    bytes: usize,
    of: PhantomData<W>,
}

// SAFETY: it owns its mapping, and hands out only shared references to atomics.
unsafe impl<W: BenchWord> Send for Words<W> {}
// SAFETY: as above.
unsafe impl<W: BenchWord> Sync for Words<W> {}

impl<W: BenchWord> Words<W> {
    /// Maps `count` words, in this process's private memory or in memory that could be shared with
    /// other processes.
    ///
    /// # Panics
    /// If memory is short.
    pub fn new(count: usize, spacing: Spacing, private: bool) -> Self {
        let stride = match spacing {
            Spacing::Packed => size_of::<W>(),
            Spacing::Apart => 128,
        };
        let bytes = (count * stride).max(1);
        let flags = if private { MapFlags::PRIVATE } else { MapFlags::SHARED };
        // SAFETY: a new anonymous mapping, at an address that the kernel chooses.
        let base = unsafe {
            mmap_anonymous(
                core::ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                flags | MapFlags::POPULATE,
            )
        };
        let base = base.expect("memory for the words").cast();
        Self {
            base: NonNull::new(base).expect("a mapping is never at zero"),
            count,
            stride,
            bytes,
            of: PhantomData,
        }
    }
}

impl<W: BenchWord> Index<usize> for Words<W> {
    type Output = W;

    #[inline(always)]
    fn index(&self, index: usize) -> &W {
        assert!(index < self.count);
        // SAFETY: inside the mapping, aligned (a page, and a multiple of the word's size), and
        // zeroed or written as a `W` since; the reference does not outlive the mapping.
        unsafe { self.base.add(index * self.stride).cast::<W>().as_ref() }
    }
}

impl<W> Drop for Words<W> {
    fn drop(&mut self) {
        // SAFETY: it unmaps this object's own mapping, to which no reference is left.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU8, AtomicU64};

    #[test]
    fn words_lie_as_far_apart_as_asked() {
        let address = |word: *const u8| word.addr();
        let packed = Words::<AtomicU8>::new(5000, Spacing::Packed, true);
        let (first, last) = (&raw const packed[0], &raw const packed[4999]);
        assert_eq!(address(last.cast()) - address(first.cast()), 4999);
        let apart = Words::<AtomicU64>::new(3, Spacing::Apart, false);
        let (first, last) = (&raw const apart[0], &raw const apart[2]);
        assert_eq!(address(last.cast()) - address(first.cast()), 256);
        apart[2].store(7, std::sync::atomic::Ordering::SeqCst);
        assert_eq!(BenchWord::load(&apart[2]), 7);
    }
}
