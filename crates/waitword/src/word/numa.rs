//! A word that names the NUMA node on which its waiters are to stand (futex2's `FUTEX2_NUMA`).

use super::FutexWord;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

/// A futex word followed by a node word of the same size.
///
/// The node word holds the number of a NUMA node, or -1 (all bits set): then the first operation writes
/// the node of the CPU it runs on. All operations on one word must find the same node there, or they do
/// not find each other's waiters. A node that the machine does not have is [`Error::NoSuchNode`].
///
/// Aligned as the pair, which is what futex2 demands (Linux 6.16, `FUTEX2_NUMA`).
///
/// [`Error::NoSuchNode`]: crate::Error::NoSuchNode
#[derive(Debug, Default)]
#[repr(C)]
pub struct NumaWord<A: FutexWord> {
    _align: [A::PairAlign; 0],
    /// The futex word itself.
    pub value: A,
    /// The node, or -1 for "wherever the first caller runs".
    pub node: A,
}

/// A pointer to the pair is one to the word, and the node word lies right behind that (`RawFutex`).
macro_rules! is_word_and_node {
    ($($word:ty),*) => {$(
        const _: () = assert!(offset_of!(NumaWord<$word>, value) == 0);
        const _: () = assert!(offset_of!(NumaWord<$word>, node) == size_of::<$word>());
    )*};
}

is_word_and_node!(AtomicU8, AtomicU16, AtomicU32, AtomicU64);

impl<A: FutexWord> NumaWord<A> {
    /// A pair of these two words.
    pub const fn new(value: A, node: A) -> Self {
        Self {
            _align: [],
            value,
            node,
        }
    }
}
