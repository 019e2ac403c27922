//! `wait_any`: sleeps until one of many words is woken.
//!
//! Source: `futex_waitv` of futex2 (Linux 5.16), here for words of all sizes, with private and
//! shared words mixed.
//!
//! Each private word gets a node in the table, all with the thread's one parker. Shared words go to
//! the kernel's `futex_waitv`. If there are private words too, the parker's own word is passed
//! along.

mod kernel_words;

use super::handle::{Futex, RawFutex};
use super::scope::Scope;
use crate::error::Error;
use crate::park::{Notices, Parker, Sleeps};
use crate::private::{Node, is_inside, waiter_table};
use crate::record;
use crate::sys;
use crate::sys::clock::Deadline;
use crate::sys::futex_raw::{Waitv, waitv};
use crate::word::{FutexWord, Word};
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use kernel_words::{KernelWords, PARKER};

/// The maximum number of words to wait for at once.
pub const WAIT_ANY_MAX: usize = 128;

/// A word and its expected value, for [`wait_any`].
#[derive(Clone, Copy, Debug)]
pub struct Expecting<'a> {
    pub(crate) futex: RawFutex,
    pub(crate) value: u64,
    word: PhantomData<&'a ()>,
}

// SAFETY: it holds a copy of a `Futex`, which may be sent, and a number.
unsafe impl Send for Expecting<'_> {}
// SAFETY: it holds a copy of a `Futex`, which may be shared, and a number.
unsafe impl Sync for Expecting<'_> {}

impl<'a> Expecting<'a> {
    pub(crate) fn raw(futex: RawFutex, value: u64) -> Self {
        Self { futex, value, word: PhantomData }
    }
}

impl<'a, A: FutexWord> Futex<'a, A> {
    /// This word, to wait for while it holds `value`.
    pub fn expecting(self, value: A::Value) -> Expecting<'a> {
        Expecting::raw(self.raw, value.to_u64())
    }
}

/// If each of `words` holds its expected value, sleeps until one of them is woken. Returns the
/// index of a word that was woken; others may have been woken too.
///
/// At most [`WAIT_ANY_MAX`] words. The kernel's own limit of 128 applies to the shared words. Of
/// these, a 64-bit word counts twice; all private words together, if there are any, count once.
///
/// The wait on a shared 8 or 16-bit word has no mask here: its waiter may receive a wake-up meant
/// for a neighbouring word in the same 32 bits. So that no wake-up is lost, it then wakes all
/// waiters on these 32 bits. Their waits may end for no reason, and the waker may have counted this
/// waiter instead of its own. If nothing shows that the wake-up was the waiter's own (the 32 bits
/// have not changed), and such wake-ups come in quick succession, the wait may continue for some
/// milliseconds, at most 100, before the waiter forwards the wake-up. If its process is killed
/// meanwhile, the neighbour's wake-up is lost. Several threads that wait like this in loops for
/// words in the same 32 bits may be woken some thousand times a second once one of them was, even
/// if nothing happens.
///
/// Blocks. Not for signal handlers.
///
/// ```
/// use std::sync::atomic::{AtomicU8, AtomicU64};
/// use std::time::Duration;
/// use waitword::{Deadline, Error, Futex, wait_any};
///
/// let (door, bell) = (AtomicU8::new(0), AtomicU64::new(0));
/// let words = [Futex::private(&door).expecting(0), Futex::private(&bell).expecting(0)];
/// let soon = Deadline::after(Duration::from_millis(1));
/// assert_eq!(wait_any(&words, Some(soon)), Err(Error::TimedOut));
/// ```
///
/// # Errors
/// [`Error::Mismatch`] if any word differs; [`Error::TimedOut`]; [`Error::Interrupted`];
/// [`Error::NoWords`], [`Error::TooManyWords`]; [`Error::NoSuchNode`]; with shared words
/// [`Error::Unsupported`] before Linux 5.16; with both kinds [`Error::OutOfMemory`] if there is no
/// memory for a parker.
pub fn wait_any(words: &[Expecting<'_>], deadline: Option<Deadline>) -> Result<usize, Error> {
    // SAFETY: each entry borrows its word, and the node word if it has one, for longer than this
    // call: they are mapped, aligned, writable atomics.
    unsafe { wait_any_raw(words, deadline.as_ref()) }
}

/// # Safety
/// Until this returns, the words are mapped, aligned, and accessed by atomic operations only; and
/// as [`RawFutex::key`] for each.
pub(crate) unsafe fn wait_any_raw(
    words: &[Expecting<'_>],
    deadline: Option<&Deadline>,
) -> Result<usize, Error> {
    let Some(first) = words.first() else {
        return Err(Error::NoWords);
    };
    if words.len() > WAIT_ANY_MAX {
        return Err(Error::TooManyWords);
    }
    let address = first.futex.word.address.addr();
    // SAFETY: this function's own contract.
    let wait = || unsafe { wait_any_unrecorded(words, deadline) };
    record::waiting_on_futex(address, deadline.is_some(), wait, Error::is_timeout)
}

/// Of 1 to [`WAIT_ANY_MAX`] words.
///
/// # Safety
/// As [`wait_any_raw`].
#[inline(always)]
unsafe fn wait_any_unrecorded(
    words: &[Expecting<'_>],
    deadline: Option<&Deadline>,
) -> Result<usize, Error> {
    let is_shared = |word: &Expecting<'_>| word.futex.scope == Scope::Shared;
    // SAFETY: what these calls require of the words and node words is this function's contract for
    // `words`. The entries passed to `waitv` are made from the same words.
    unsafe {
        if words.iter().all(is_shared) {
            let mut entries = KernelWords::new(0);
            entries.collect(words)?;
            let sleep =
                |entries: &mut [Waitv], deadline: Option<&Deadline>| waitv(entries, deadline);
            return loop {
                if let Some(ended) = entries.sleep(words, deadline, sleep) {
                    break ended;
                }
            };
        }
        if is_inside() {
            return Err(Error::Interrupted);
        }
        let parker = waiter_table().take_parker();
        let nodes = [const { UnsafeCell::new(MaybeUninit::uninit()) }; WAIT_ANY_MAX];
        let mut queued = Queued { parker: &parker, words, nodes: &nodes, joined: 0 };
        if let Some(ended) = queued.join()? {
            return Ok(ended);
        }
        if words.iter().any(is_shared) {
            queued.sleep_with_kernel_words(deadline)
        } else {
            match parker.park(&queued, deadline) {
                Ok(()) => Ok(queued.leave().unwrap_or(0)),
                Err(ended) => queued.leave().ok_or_else(|| ended.into()),
            }
        }
    }
}

/// The queued nodes of the private words. They leave their queues before this is dropped.
struct Queued<'a, 'w> {
    parker: &'a Parker<'static>,
    words: &'a [Expecting<'w>],
    /// One node for each word before `joined`, unused for shared words. The nodes are in cells and
    /// outside this struct, because wakers write to queued nodes even while an exclusive reference
    /// to the struct exists.
    nodes: &'a [UnsafeCell<MaybeUninit<Node>>; WAIT_ANY_MAX],
    joined: usize,
}

impl Queued<'_, '_> {
    fn nodes(&self) -> impl Iterator<Item = (usize, &Node)> {
        let joined = self.words[..self.joined].iter().zip(self.nodes).enumerate();
        joined
            .filter(|(_, (word, _))| word.futex.scope == Scope::Private)
            // SAFETY: `join` writes the node of each private word before it counts it as joined,
            // and the node stays initialized. No exclusive reference to it remains.
            .map(|(index, (_, node))| (index, unsafe { (*node.get()).assume_init_ref() }))
    }

    /// Queues on every private word, each checked under its bucket lock. If one differs, leaves all
    /// queues again and returns the error, or the index of a word that was woken in the meantime.
    ///
    /// # Safety
    /// As [`wait_any_raw`]. Not called before.
    unsafe fn join(&mut self) -> Result<Option<usize>, Error> {
        let priority = sys::sched::priority();
        for (index, word) in self.words.iter().enumerate() {
            if word.futex.scope == Scope::Private {
                // SAFETY: what `key` requires of the node word, if there is one, is part of this
                // function's contract.
                let key = match unsafe { word.futex.key() } {
                    Ok(key) => key,
                    Err(error) => return self.leave().map(Some).ok_or(error),
                };
                let size = word.futex.word.size;
                let mask = size.all_bits();
                let node = Node::new(key, size.into(), mask, self.parker.id(), priority);
                // SAFETY: this node is not counted as joined, so it is in no queue and nothing else
                // refers to it.
                let node = unsafe { &*(*self.nodes[index].get()).write(node) };
                // Faults the word's page in before the bucket is locked.
                // SAFETY: the word is mapped, aligned, and accessed by atomic operations only, by
                // this function's contract.
                let as_expected = || unsafe { word.futex.word.load() } == word.value;
                let registration = as_expected().then(|| waiter_table().register(key));
                match registration {
                    // SAFETY: the node is new and has the registered key. It does not move and is
                    // not reused while `self.nodes` is borrowed. `leave` has it withdrawn or
                    // notified before `self` is dropped.
                    Some(registration) if as_expected() => unsafe { registration.push(node) },
                    registration => {
                        if let Some(registration) = registration {
                            registration.cancel();
                        }
                        return self.leave().map(Some).ok_or(Error::Mismatch);
                    }
                }
            }
            self.joined = index + 1;
        }
        Ok(None)
    }

    /// Leaves every queue. Returns the index of a word whose waiter was woken: the last one, as in
    /// the kernel.
    fn leave(&mut self) -> Option<usize> {
        let mut woken = None;
        for (index, node) in self.nodes() {
            let given = node.notice.any_given();
            if self.parker.is_wiped() || !given && waiter_table().withdraw(node) {
                continue;
            }
            self.parker.park_uninterrupted(&node.notice);
            woken = Some(index);
        }
        self.joined = 0;
        woken
    }

    /// # Safety
    /// As [`wait_any_raw`].
    unsafe fn sleep_with_kernel_words(
        &mut self,
        deadline: Option<&Deadline>,
    ) -> Result<usize, Error> {
        let mut entries = KernelWords::new(1);
        if let Err(error) = entries.collect(self.words) {
            return self.leave().ok_or(error);
        }
        loop {
            // SAFETY: what both require of `self.words`, from which the entries were made, is this
            // function's contract. `park_with_words` uses entry 0 for itself; `new` has left it
            // free.
            let ended = unsafe {
                entries.sleep(self.words, deadline, |entries, deadline| {
                    self.parker.park_with_words(self, entries, deadline)
                })
            };
            match ended {
                // The parker's own entry: our notice, or a late call meant for an earlier user.
                Some(Ok(PARKER)) if !self.any_given() => {}
                Some(Ok(PARKER)) => return Ok(self.leave().unwrap_or(0)),
                Some(Ok(index)) => {
                    self.leave();
                    return Ok(index);
                }
                Some(Err(error)) => return self.leave().ok_or(error),
                None => {}
            }
        }
    }
}

impl Notices for Queued<'_, '_> {
    fn any_given(&self) -> bool {
        self.nodes().any(|(_, node)| node.notice.any_given())
    }

    fn announce(&self, sleeps: Sleeps) -> bool {
        self.nodes().all(|(_, node)| node.notice.announce(sleeps))
    }
}

impl Drop for Queued<'_, '_> {
    fn drop(&mut self) {
        // A no-op on normal paths; a panic in between must not leave nodes behind.
        self.leave();
    }
}
