//! What the operations are called on.

use super::{Error, Scope};
use crate::private::{Key, Place, waiter_table};
use crate::sys;
use crate::word::{FutexWord, NumaWord, Word, WordPtr};
use core::marker::PhantomData;

/// A word to wait on: which one, and in which world its waiters stand. Costs nothing to make.
///
/// ```
/// use std::sync::atomic::AtomicU64;
/// use waitword::{Error, Futex};
///
/// let word = AtomicU64::new(7);
/// let futex = Futex::private(&word);
/// assert_eq!(futex.wait(6), Err(Error::Mismatch));
/// assert_eq!(futex.wake(1), Ok(0));
/// ```
pub struct Futex<'a, A: FutexWord> {
    pub(crate) raw: RawFutex,
    word: PhantomData<&'a A>,
}

impl<A: FutexWord> Clone for Futex<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: FutexWord> Copy for Futex<'_, A> {}

impl<A: FutexWord> core::fmt::Debug for Futex<'_, A> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.raw.fmt(f)
    }
}

// SAFETY: a handle is a shared reference to an atomic, or to a pair of them, and those are Sync
// (`FutexWord` asks for it). Every operation on it may be called by any thread.
unsafe impl<A: FutexWord> Send for Futex<'_, A> {}
// SAFETY: a shared handle can only be copied, and a copy may be used by any thread, as it may be
// sent to any.
unsafe impl<A: FutexWord> Sync for Futex<'_, A> {}

impl<'a, A: FutexWord> Futex<'a, A> {
    const fn new(address: *const A, scope: Scope, numa: bool) -> Self {
        Self {
            raw: RawFutex {
                word: WordPtr {
                    address: address.cast_mut().cast(),
                    size: <A::Value as Word>::SIZE,
                },
                scope,
                numa,
            },
            word: PhantomData,
        }
    }

    /// A word of this process (Eric Dumazet's PRIVATE futexes, 2007). Its waiters stand in a table in the
    /// process itself, by address; two threads must see the word at the same address, which is so for all
    /// memory of a process that is not mapped twice.
    pub const fn private(word: &'a A) -> Self {
        Self::new(word, Scope::Private, false)
    }

    /// A private word whose waiters stand on the NUMA node that it names (see [`NumaWord`]). The node is part
    /// of what a waiter is found by: a wake of the plain word does not find a waiter of the pair.
    pub const fn numa(pair: &'a NumaWord<A>) -> Self {
        // Not that of `value`, with which it begins: the pointer leads to the node word too.
        let address: *const NumaWord<A> = pair;
        Self::new(address.cast(), Scope::Private, true)
    }

    /// A word in memory that several processes map, at whatever address each does. Its waiters stand in
    /// the kernel, which knows 32-bit words only; what that means for each size:
    ///
    /// | size | wait, wake | mask | requeue, cmp_requeue | wake_op |
    /// |------|------------|------|----------------------|---------|
    /// | 32 bits | the kernel's own | 32 bits | the kernel's own, atomic | the kernel's own, atomic, if both constants fit into its 12 bits and no count is 0; otherwise the change first, then the wakes |
    /// | 64 bits | `futex_waitv` on both halves (Linux 5.16; before that [`Error::Unsupported`]); wakes reach the low half | waiting with a mask other than ANY is [`Error::Unsupported`] | the kernel's own on the low half; of the expected value the low half is compared atomically with the move, the high half just before | the change first, then the wakes |
    /// | 8, 16 bits | the kernel's own on the aligned 32 bits around the word; masks keep neighbours apart | as wide as the word | those who should be moved are woken; the expected value is compared just before | the change first, then the wakes |
    ///
    /// "The change first, then the wakes" is safe in the usual sense: whoever waited before the change is
    /// found by the wakes. A thread that begins to wait in between may be woken too.
    ///
    /// An 8 or 16-bit wait begins anew when a neighbour in the same 32 bits changes just as it begins. Beside a
    /// neighbour that is changed without pause it may take long to be queued; until then a wake does not count it,
    /// and a signal does not end it. A change of its own word, or its deadline, does.
    ///
    /// One thing the kernel does not promise: a waiter that was moved by a requeue and then wakes up for another
    /// reason than a wake (a signal whose handler restarts the call) goes back to wait on its first
    /// word, if that still holds the expected value. So after a shared requeue, whoever relies on the second
    /// word alone must have changed the first.
    ///
    /// A word is to be used at one size only. In particular, a 32-bit futex that overlaps an 8 or 16-bit
    /// one finds the other's waiters.
    ///
    /// The memory may be written by processes that we do not trust: they can make a waiter wait or wake, and
    /// no more.
    pub const fn shared(word: &'a A) -> Self {
        Self::new(word, Scope::Shared, false)
    }
}

/// A [`Futex`] without its type and lifetime.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawFutex {
    pub(crate) word: WordPtr,
    pub(crate) scope: Scope,
    /// A node word of the same size follows the word.
    pub(crate) numa: bool,
}

impl RawFutex {
    /// Where the private word's waiters stand.
    ///
    /// # Errors
    /// [`Error::NoSuchNode`].
    ///
    /// # Safety
    /// The node word, if there is one, is mapped, aligned, accessed by atomic operations only, and
    /// writable if it holds -1. (The word itself is not touched.)
    #[inline]
    pub(crate) unsafe fn key(self) -> Result<Key, Error> {
        let place = if self.numa {
            // SAFETY: there is a node word: forwards this function's own contract.
            unsafe { self.node_place()? }
        } else {
            Place::Anywhere
        };
        Ok(Key {
            address: self.word.address.addr(),
            place,
        })
    }

    /// Reads the node word; -1 is replaced by the node that we run on, as FUTEX2_NUMA has it.
    ///
    /// # Safety
    /// There is a node word; and as [`key`](Self::key).
    #[cold]
    unsafe fn node_place(self) -> Result<Place, Error> {
        let size = self.word.size;
        let node_word = WordPtr {
            address: self.word.address.wrapping_byte_add(size.bytes()),
            size,
        };
        // SAFETY: the node word is mapped, aligned, and accessed by atomic operations only, by this
        // function's contract.
        let mut node = unsafe { node_word.load() };
        if node == size.all_bits() {
            let here = u64::from(sys::numa::current_node()) & size.all_bits();
            // SAFETY: as for the load; and it holds -1, or did just now, so it is writable, by the
            // same contract. Of several threads the first decides.
            node = unsafe { node_word.replace(node, here) };
        }
        let number = u32::try_from(node).map_err(|_| Error::NoSuchNode)?;
        // A node may exist that the table has no memory on: because it must not, or for its high number.
        if waiter_table().has_node(number) || sys::numa::exists(number) {
            Ok(Place::OnNode(number))
        } else {
            Err(Error::NoSuchNode)
        }
    }
}
