//! The handles that the operations are called on.

use super::scope::Scope;
use crate::error::Error;
use crate::private::{Key, Place, waiter_table};
use crate::sys;
use crate::word::{FutexWord, NumaWord, Word, WordPtr};
use core::marker::PhantomData;

/// A word to wait on, and whether its waiters are queued in this process or in the kernel. Free to
/// construct.
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

// SAFETY: a handle is a shared reference to an atomic or to a pair of atomics, and those are Sync
// (`FutexWord` requires it). Any thread may call every operation on it.
unsafe impl<A: FutexWord> Send for Futex<'_, A> {}
// SAFETY: all that can be done with a shared handle is to copy it, and any thread may use a copy,
// because a handle may be sent to any thread.
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

    /// A word of this process (Eric Dumazet's PRIVATE futexes, 2007). Its waiters are queued by
    /// address in a table in the process itself. All threads must use the same address for the
    /// word, which holds for all memory that the process has not mapped twice.
    pub const fn private(word: &'a A) -> Self {
        Self::new(word, Scope::Private, false)
    }

    /// A private word whose waiters are queued on the NUMA node that it names (see [`NumaWord`]).
    /// The node is part of the key that waiters are found by: a wake of the plain word does not
    /// find a waiter of the pair.
    pub const fn numa(pair: &'a NumaWord<A>) -> Self {
        // A pointer to the pair, not to `value` at its start: it must be valid for the node word
        // too.
        let address: *const NumaWord<A> = pair;
        Self::new(address.cast(), Scope::Private, true)
    }

    /// A word in memory that several processes map, each at any address. Its waiters are queued in
    /// the kernel, which supports 32-bit words only. What that means for each size:
    ///
    /// | size | wait, wake | mask | requeue, cmp_requeue | wake_op |
    /// |------|------------|------|----------------------|---------|
    /// | 32 bits | the kernel's own | 32 bits | the kernel's own, atomic | the kernel's own (1) |
    /// | 64 bits | `futex_waitv` (2) | ANY (3) | the kernel's own: low half (4) | in two steps |
    /// | 8, 16 bits | the kernel's own (5) | as wide as the word | a wake (6) | in two steps |
    ///
    /// 1. Atomic, if both constants fit into its 12 bits and no count is 0. Otherwise in two steps.
    /// 2. On both halves (Linux 5.16; before that [`Error::Unsupported`]). Wakes go to the low
    ///    half.
    /// 3. Waiting with another mask is [`Error::Unsupported`].
    /// 4. The low half of the expected value is compared atomically with the move, the high half
    ///    just before.
    /// 5. On the aligned 32 bits around the word. Masks keep neighbours apart.
    /// 6. The waiters to be moved are woken instead. The expected value is compared just before.
    ///
    /// "In two steps" means the change first, then the wakes. It is safe in the usual sense: the
    /// wakes find every thread that waited before the change. A thread that begins to wait in
    /// between may be woken too.
    ///
    /// A wait on an 8 or 16-bit word starts over if a neighbour in the same 32 bits changes just as
    /// the wait begins. Next to a neighbour that changes constantly, it may take long until the
    /// waiter is queued. Until then a wake does not count it and a signal does not end its wait. A
    /// change of its own word or its deadline does.
    ///
    /// The kernel leaves one gap: a waiter that was moved by a requeue and then wakes up for a
    /// reason other than a wake (a signal whose handler restarts the call) waits on its first word
    /// again, if that still holds the expected value. So if you rely on the second word alone after
    /// a shared requeue, you must have changed the first.
    ///
    /// Use a word at one size only. In particular, a 32-bit futex that overlaps an 8 or 16-bit one
    /// finds the other's waiters.
    ///
    /// Untrusted processes may write to the memory: they can make a waiter wait or wake up, and
    /// nothing else.
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
    /// The key under which the private word's waiters are queued.
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
            // SAFETY: there is a node word; the rest is this function's own contract.
            unsafe { self.node_place()? }
        } else {
            Place::Anywhere
        };
        Ok(Key { address: self.word.address.addr(), place })
    }

    /// Reads the node word. If it holds -1, replaces that by the current node, as FUTEX2_NUMA does.
    ///
    /// # Safety
    /// There is a node word; and as [`key`](Self::key).
    #[cold]
    unsafe fn node_place(self) -> Result<Place, Error> {
        let size = self.word.size;
        let node_word =
            WordPtr { address: self.word.address.wrapping_byte_add(size.bytes()), size };
        // SAFETY: the node word is mapped, aligned, and accessed by atomic operations only, by this
        // function's contract.
        let mut node = unsafe { node_word.load() };
        if node == size.all_bits() {
            let here = u64::from(sys::numa::current_node()) & size.all_bits();
            // SAFETY: as for the load. The node word holds -1, or held it just now, so it is
            // writable, by the same contract. If several threads get here, the first one decides.
            node = unsafe { node_word.replace(node, here) };
        }
        let number = u32::try_from(node).map_err(|_| Error::NoSuchNode)?;
        // A node may exist without table memory on it: because the table may not use it, or because
        // its number is too high.
        if waiter_table().has_node(number) || sys::numa::exists(number) {
            Ok(Place::OnNode(number))
        } else {
            Err(Error::NoSuchNode)
        }
    }
}
