//! A word that names the NUMA node on which its waiters are queued (futex2's `FUTEX2_NUMA`).

use super::FutexWord;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

/// A futex word followed by a node word of the same size.
///
/// The node word holds the number of a NUMA node, or -1 (all bits set), which the first operation
/// replaces by the node of the CPU it runs on. All operations on one word must find the same node
/// there; otherwise they do not find each other's waiters. A node that the machine does not have is
/// [`Error::NoSuchNode`].
///
/// The pair is aligned to its own size, as futex2 requires (Linux 6.16, `FUTEX2_NUMA`).
///
/// [`Error::NoSuchNode`]: crate::Error::NoSuchNode
#[derive(Debug, Default)]
#[repr(C)]
pub struct NumaWord<A: FutexWord> {
    _align: [A::PairAlign; 0],
    /// The futex word itself.
    pub value: A,
    /// The node, or -1 for the node that the first caller runs on.
    pub node: A,
}

/// `RawFutex` relies on this layout: a pointer to the pair is a pointer to the word, and the node
/// word follows directly.
macro_rules! is_word_and_node {
    ($($word:ty),*) => {$(
        const _: () = assert!(offset_of!(NumaWord<$word>, value) == 0);
        const _: () = assert!(offset_of!(NumaWord<$word>, node) == size_of::<$word>());
    )*};
}

is_word_and_node!(AtomicU8, AtomicU16, AtomicU32, AtomicU64);

impl<A: FutexWord> NumaWord<A> {
    /// Makes a pair of these two words.
    pub const fn new(value: A, node: A) -> Self {
        Self { _align: [], value, node }
    }
}
