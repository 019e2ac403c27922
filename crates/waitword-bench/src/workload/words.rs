//! Words straight from the kernel: at a known spacing, and in shared memory where the work is on shared
//! words, so that the kernel finds them by their page and not by their address.

use crate::ops::BenchWord;
use core::marker::PhantomData;
use core::ops::Index;
use core::ptr::NonNull;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// How far apart words are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// One after the other.
    Packed,
    /// 128 bytes: each on a cache line of its own, and the next line too, which CPUs fetch together.
    Apart,
}

/// Some words, all zero at first.
#[derive(Debug)]
pub struct Words<W> {
    base: NonNull<u8>,
    count: usize,
    stride: usize,
    bytes: usize,
    of: PhantomData<W>,
}

// SAFETY: owns its mapping, and gives out shared references to atomics only.
unsafe impl<W: BenchWord> Send for Words<W> {}
// SAFETY: as above.
unsafe impl<W: BenchWord> Sync for Words<W> {}

impl<W: BenchWord> Words<W> {
    /// `count` words; `private` to this process's memory, or in memory that could be shared with others.
    ///
    /// # Panics
    /// If memory is short.
    pub fn new(count: usize, spacing: Spacing, private: bool) -> Self {
        let stride = match spacing {
            Spacing::Packed => size_of::<W>(),
            Spacing::Apart => 128,
        };
        let bytes = (count * stride).max(1);
        let flags = if private {
            MapFlags::PRIVATE
        } else {
            MapFlags::SHARED
        };
        // SAFETY: a new anonymous mapping, at an address of the kernel's choice.
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
        // SAFETY: inside the mapping, aligned (a page, and a multiple of the word's size), zeroed or
        // written as a `W` since; the reference does not outlive the mapping.
        unsafe { self.base.add(index * self.stride).cast::<W>().as_ref() }
    }
}

impl<W> Drop for Words<W> {
    fn drop(&mut self) {
        // SAFETY: this mapping, of which no reference is left.
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
