//! The robust mutex without its data: kinds, depth, death and recovery. The counterpart of a C
//! library's robust `pthread_mutex_t`.
//!
//! A holder may die: its process is killed, or its thread ends without unlocking. The kernel, which
//! knows what each thread holds (`list.rs`), then frees the mutex and records the death in its
//! word. The next thread to lock the mutex gets [`RobustLocked::OwnerDied`] (`EOWNERDEAD`), once
//! for each death. It repairs the protected data and calls [`RawRobustMutex::mark_consistent`]. If
//! it unlocks without doing so, no thread can ever lock the mutex again.
//!
//! ```text
//!                    dies holding it: OWNER_DIED in the word
//!   CONSISTENT <-------------------------------------------------.
//!       |                                                        | mark_consistent
//!       '---- next lock: OwnerDied ----> INCONSISTENT -----------'
//!                                          |      ^
//!                                          |      '--- dies holding it; next lock: OwnerDied
//!                                          '--- unlock ---> NOT_RECOVERABLE (permanent)
//! ```
//!
//! # A lock and an unlock, step by step
//!
//! | lock | unlock | the kernel, if we die after this step |
//! |------|--------|----------------------------------------|
//! | `list_op_pending` = this | `list_op_pending` = this | lock: see (1); unlock: as held |
//! | take the word | | finds the mutex in `list_op_pending`, and our TID in the word: frees it |
//! | insert it into the list | remove it from the list | the same |
//! | | free the word | free, in `list_op_pending`: wakes one waiter |
//! | | wake one waiter | wakes one more, needlessly |
//! | `list_op_pending` = null | `list_op_pending` = null | lock: finds it in the list, frees it |
//!
//! 1. It wakes one waiter if the word is free, and does nothing else.
//!
//! # Invariants
//!
//! 1. `depth`, `state` and `takes` belong to the holder: Relaxed, ordered by the word.
//! 2. A death at any step of lock or unlock either leaves the mutex free, or is reported to exactly
//!    one later holder that lives to see it.
//! 3. `NOT_RECOVERABLE` is permanent, whatever deaths follow. A thread that takes the word in this
//!    state frees it again, so each waiter in turn gets the error.
//! 4. Without priority inheritance, we neither read nor write any part of the mutex once the word
//!    is free. The kernel may: see below.
//!
//! # What is not guaranteed
//!
//! * **Memory reused under a dying unlock.** Between the freeing of the word and `list_op_pending`
//!   = null, which is two instructions or a wake, another thread may take the mutex, destroy it,
//!   and use or map the memory for something else. If the unlocker is killed just then, the kernel
//!   treats that memory as a word: it may wake a thread needlessly, and if the 32 bits happen to
//!   equal the dead thread's TID, it sets `OWNER_DIED` in them. glibc has the same problem (its bug
//!   14485); only a kernel that frees the word and clears `list_op_pending` itself can fix it.
//!   Linux 7.3 does: with it there is no such moment if no thread waits, and none at all with
//!   inheritance. (Its call for a word with waiters frees it with 0, so that the usual protocol
//!   works. Ours must keep `WAITERS` in the word: see `word.rs`.) If you destroy robust mutexes
//!   while threads may be killed in them, leave the memory alone until those threads have ended.
//! * **2048 mutexes**: of the mutexes that a thread holds, the kernel handles the 2048 locked last.
//! * **Trust.** A process that can write the memory can put any value into the mutex, and lead a
//!   holder's list astray. Share it only with processes that are allowed to crash you.
//! * **PID namespaces.** Holders are identified by TID: all threads that share a mutex must live in
//!   one PID namespace.
//! * **Kernels.** Linux 6.2, or a long-term kernel of 2023 or later (commit 90d758896787). Older
//!   kernels woke a sleeper for a thread that died while unlocking or just after it was woken only
//!   if the whole word was 0, and before 5.5 never. There, a kill at that moment can leave waiters
//!   asleep until another thread locks the mutex again.

use super::error::{RobustError, RobustLocked};
use super::list::{Entry, List, Node};
use super::step::{Step, step};
use super::word::{self, Taken};
use crate::atomic::{AtomicU32, Ordering::Relaxed};
use crate::futex::Scope;
use crate::lock::const_fn::const_fn;
use crate::lock::pi::{self, Acquired, OWNER_DIED, TID_MASK};
use crate::sys::clock::Deadline;
use crate::sys::robust;
use crate::sys::tid::tid;

/// What a robust mutex does when its holder locks it again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RobustKind {
    /// Waits for itself, forever or until the deadline (`PTHREAD_MUTEX_NORMAL`). With priority
    /// inheritance the kernel detects it: [`RobustError::Deadlock`].
    #[default]
    Normal,
    /// Counts the locks (`PTHREAD_MUTEX_RECURSIVE`).
    Recursive,
    /// Returns [`RobustError::Deadlock`] (`PTHREAD_MUTEX_ERRORCHECK`).
    ErrorChecking,
}

/// Whether the holder of a robust mutex runs at the priority of its waiters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RobustProtocol {
    /// It does not (`PTHREAD_PRIO_NONE`). Another thread may barge in and take the mutex while the
    /// woken thread is on its way.
    #[default]
    None,
    /// It does (`PTHREAD_PRIO_INHERIT`), and unlock hands the mutex to the waiter of highest
    /// priority. With waiters, each lock and unlock is a system call and a context switch.
    Inherit,
}

/// Value of `state`: no holder has died, or the data has been repaired.
const CONSISTENT: u32 = 0;
/// The holder knows of a death, and has not yet reported a repair.
const INCONSISTENT: u32 = 1;
/// The holder unlocked without reporting a repair.
const NOT_RECOVERABLE: u32 = 2;

/// Bits of `kind`.
const RECURSIVE: u32 = 1;
const ERROR_CHECKING: u32 = 2;
const KIND: u32 = 3;
const INHERITS: u32 = 0x20;

/// A thread that took a word with `WAITERS` set looks for sleepers once in this many times.
const TIDY_EVERY: u32 = 4;

/// How long a lock may wait.
#[derive(Clone, Copy)]
enum Patience<'a> {
    None,
    Until(&'a Deadline),
    Endless,
}

/// A robust mutex without data of its own: 40 bytes, laid out so that glibc's list of robust
/// mutexes, which the kernel walks when a thread ends, can hold it (the word first, the two links
/// last, as in `pthread_mutex_t`).
///
/// It works between the threads of one process and between processes that map the memory, at
/// whatever addresses; there is no difference. Zeroed memory is an unlocked mutex of kind
/// [`Normal`](RobustKind::Normal) without inheritance. For one that owns its data and needs no
/// `unsafe`, see [`RobustMutex`](crate::RobustMutex).
///
/// Do not call any operation from a signal handler. A forked child holds none of its parent's
/// robust mutexes.
#[repr(C)]
#[derive(Debug)]
pub struct RawRobustMutex {
    word: AtomicU32,
    /// How many times the holder has locked a recursive mutex.
    depth: AtomicU32,
    state: AtomicU32,
    /// How many times a thread took the word with `WAITERS` set without having slept.
    takes: AtomicU32,
    kind: u32,
    reserved: u32,
    node: Node,
}

#[cfg(all(not(loom), target_pointer_width = "64"))]
const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<RawRobustMutex>() == 40);
    assert!(align_of::<RawRobustMutex>() == 8);
    assert!(offset_of!(RawRobustMutex, word) == 0);
    // `prev` and `next`.
    assert!(offset_of!(RawRobustMutex, node) == 24);
};

impl RawRobustMutex {
    const_fn! {
        /// An unlocked mutex.
        pub const fn new(kind: RobustKind, protocol: RobustProtocol) -> Self {
            Self {
                word: AtomicU32::new(word::FREE),
                depth: AtomicU32::new(0),
                state: AtomicU32::new(CONSISTENT),
                takes: AtomicU32::new(0),
                kind: kind_bits(kind, protocol),
                reserved: 0,
                node: Node::new(),
            }
        }
    }

    /// Locks the mutex, waiting as long as necessary. `pthread_mutex_lock` of a robust mutex.
    ///
    /// Blocks; signals do not end the wait.
    ///
    /// # Errors
    /// [`RobustError::NotRecoverable`]; [`Deadlock`](RobustError::Deadlock) and
    /// [`TooDeep`](RobustError::TooDeep) depending on the kind;
    /// [`Unsupported`](RobustError::Unsupported); with inheritance
    /// [`OutOfMemory`](RobustError::OutOfMemory) and [`Kernel`](RobustError::Kernel).
    ///
    /// # Safety
    /// If the call locks the mutex, the mutex must not move or be unmapped until it is unlocked or
    /// this thread has ended: the thread's list points to it.
    #[inline]
    pub unsafe fn lock(&self) -> Result<RobustLocked, RobustError> {
        // SAFETY: forwards this function's own contract.
        unsafe { self.lock_with(Patience::Endless) }
    }

    /// Locks the mutex if it is free, or if it is recursive and held by the caller. Does not block.
    /// `pthread_mutex_trylock`.
    ///
    /// # Errors
    /// [`RobustError::Busy`], also if the caller holds the mutex and it is not recursive; those of
    /// [`lock`](Self::lock) except `Deadlock`.
    ///
    /// # Safety
    /// As [`lock`](Self::lock).
    #[inline]
    pub unsafe fn try_lock(&self) -> Result<RobustLocked, RobustError> {
        // SAFETY: forwards this function's own contract.
        unsafe { self.lock_with(Patience::None) }
    }

    /// Locks the mutex, waiting no longer than until the deadline, on either clock.
    /// `pthread_mutex_timedlock`, `pthread_mutex_clocklock`. A mutex that can be locked without
    /// waiting is locked even if the deadline has passed.
    ///
    /// # Errors
    /// [`RobustError::TimedOut`], and those of [`lock`](Self::lock).
    ///
    /// # Safety
    /// As [`lock`](Self::lock).
    #[inline]
    pub unsafe fn lock_until(&self, deadline: Deadline) -> Result<RobustLocked, RobustError> {
        // SAFETY: forwards this function's own contract.
        unsafe { self.lock_with(Patience::Until(&deadline)) }
    }

    /// Unlocks the mutex and wakes one waiter. `pthread_mutex_unlock`. Does not block.
    ///
    /// If the lock call reported a holder's death and the caller has not
    /// [marked](Self::mark_consistent) the mutex since, the mutex can never be locked again.
    ///
    /// # Errors
    /// [`RobustError::NotOwner`]; nothing has changed then.
    ///
    /// # Safety
    /// If the mutex [is the caller's](Self::is_mine), the calling thread has locked it. This holds,
    /// or the call fails, unless the word contains the TID of a thread that has ended, which the
    /// kernel may have given to the caller. Such a TID remains if that thread held more than 2048
    /// mutexes, or if it held this mutex in another process, of which this memory is a copy.
    #[inline]
    pub unsafe fn unlock(&self) -> Result<(), RobustError> {
        let me = tid();
        if self.holder() != me {
            return Err(RobustError::NotOwner);
        }
        let depth = self.depth.load(Relaxed);
        if depth > 1 {
            self.depth.store(depth - 1, Relaxed);
            return Ok(());
        }
        let list = List::of_this_thread()?;
        if self.state.load(Relaxed) == INCONSISTENT {
            self.state.store(NOT_RECOVERABLE, Relaxed);
        }
        list.begin(self.entry());
        step(Step::UnlockBegun);
        // SAFETY: the word contains this thread's TID. So this thread has locked the mutex, by this
        // function's contract, and inserted it into its list.
        unsafe { list.unlink(self.entry()) };
        step(Step::Unlinked);
        self.release(me, list);
        list.end();
        step(Step::Unlocked);
        Ok(())
    }

    /// Declares that the protected data has been repaired after a holder's death.
    /// `pthread_mutex_consistent`. The caller still holds the mutex.
    ///
    /// # Errors
    /// [`RobustError::NotInconsistent`] if the caller does not hold it, or there was no death.
    pub fn mark_consistent(&self) -> Result<(), RobustError> {
        if self.holder() != tid() || self.state.load(Relaxed) != INCONSISTENT {
            return Err(RobustError::NotInconsistent);
        }
        self.state.store(CONSISTENT, Relaxed);
        Ok(())
    }

    /// Whether the calling thread holds it.
    #[inline]
    pub fn is_mine(&self) -> bool {
        self.holder() == tid()
    }

    /// Whether the calling thread holds the mutex, and another lock by it would return
    /// [`RobustError::Deadlock`].
    pub fn would_deadlock(&self) -> bool {
        let is_detected = match self.kind & KIND {
            RECURSIVE => false,
            ERROR_CHECKING => true,
            _ => self.inherits(),
        };
        is_detected && self.is_mine()
    }

    /// Whether the mutex is held now, so that `pthread_mutex_destroy` returns `EBUSY`. A holder
    /// whose death the kernel has handled no longer holds it.
    pub fn is_locked(&self) -> bool {
        self.holder() != 0
    }

    /// The TID of the holder, 0 if there is none.
    #[inline]
    pub(super) fn holder(&self) -> u32 {
        // Relaxed: only this thread changes whether the word contains its own TID.
        self.word.load(Relaxed) & TID_MASK
    }

    /// The mutex as its holder's list needs it.
    #[inline]
    fn entry(&self) -> Entry<'_> {
        Entry::new(&self.word, &self.node, self.inherits())
    }

    #[cfg(test)]
    pub(crate) fn word(&self) -> &AtomicU32 {
        &self.word
    }

    /// Makes the take that is this many takes ahead look for sleepers.
    #[cfg(loom)]
    pub(crate) fn tidy_after(&self, takes: u32) {
        self.takes.store(TIDY_EVERY - takes, Relaxed);
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn set_depth(&self, depth: u32) {
        self.depth.store(depth, Relaxed);
    }

    /// Whether its holder inherits priority.
    #[inline]
    pub(super) fn inherits(&self) -> bool {
        self.kind & INHERITS != 0
    }

    /// # Safety
    /// As [`lock`](Self::lock).
    #[inline]
    unsafe fn lock_with(&self, patience: Patience<'_>) -> Result<RobustLocked, RobustError> {
        let me = tid();
        if self.holder() == me {
            if let Some(answer) = self.lock_again(patience) {
                return answer;
            }
        }
        let list = List::of_this_thread()?;
        list.begin(self.entry());
        step(Step::LockBegun);
        match self.take(me, patience) {
            // SAFETY: forwards this function's own contract.
            Ok(taken) => unsafe { self.enter(me, list, taken) },
            Err(error) => {
                list.end();
                Err(error)
            }
        }
    }

    /// A lock by the holder. `None`: proceed as any other thread.
    #[cold]
    fn lock_again(&self, patience: Patience<'_>) -> Option<Result<RobustLocked, RobustError>> {
        match (self.kind & KIND, patience) {
            (RECURSIVE, _) => {
                let depth = self.depth.load(Relaxed).checked_add(1);
                Some(depth.ok_or(RobustError::TooDeep).map(|depth| {
                    self.depth.store(depth, Relaxed);
                    RobustLocked::Clean
                }))
            }
            (_, Patience::None) => Some(Err(RobustError::Busy)),
            (ERROR_CHECKING, _) => Some(Err(RobustError::Deadlock)),
            _ => None,
        }
    }

    #[inline]
    fn take(&self, me: u32, patience: Patience<'_>) -> Result<Taken, RobustError> {
        if self.inherits() {
            return self.take_inheriting(patience);
        }
        match (word::try_take(&self.word, me), patience) {
            (Err(_), Patience::Until(deadline)) => word::take(&self.word, me, Some(deadline)),
            (Err(_), Patience::Endless) => word::take(&self.word, me, None),
            (answer, _) => answer,
        }
    }

    #[cold]
    fn take_inheriting(&self, patience: Patience<'_>) -> Result<Taken, RobustError> {
        let word = &self.word;
        let acquired = match patience {
            Patience::None => pi::try_lock(word, Scope::Shared),
            Patience::Until(deadline) => pi::lock_until(word, Scope::Shared, deadline),
            Patience::Endless => pi::lock(word, Scope::Shared),
        }?;
        let died = acquired == Acquired::OwnerDied;
        if died {
            // The kernel leaves the bit set. If we die now, it sets it again.
            word.fetch_and(!OWNER_DIED, Relaxed);
        }
        Ok(Taken { died, untidy: false })
    }

    /// Completes a lock; the caller has taken the word.
    ///
    /// # Safety
    /// As [`lock`](Self::lock).
    #[inline]
    unsafe fn enter(&self, me: u32, list: List, taken: Taken) -> Result<RobustLocked, RobustError> {
        step(Step::Taken);
        if self.state.load(Relaxed) == NOT_RECOVERABLE {
            self.release(me, list);
            list.end();
            return Err(RobustError::NotRecoverable);
        }
        if taken.died {
            self.state.store(INCONSISTENT, Relaxed);
            step(Step::Noted);
        }
        // The dead holder may have locked it several times.
        self.depth.store(1, Relaxed);
        // SAFETY: the mutex was free, and so is in no list, or in that of a dead thread, which is
        // no longer followed. It does not move until it is unlocked, by this function's contract.
        unsafe { list.link(self.entry()) };
        step(Step::Linked);
        list.end();
        step(Step::Locked);
        if taken.untidy {
            self.tidy_now_and_then(me);
        }
        Ok(if taken.died { RobustLocked::OwnerDied } else { RobustLocked::Clean })
    }

    /// Frees the word; where the kernel can, together with `list_op_pending`.
    #[inline]
    fn release(&self, me: u32, list: List) {
        match robust::try_unlock(&self.word, me, list.pending()) {
            Some(true) => step(Step::Released),
            Some(false) if self.inherits() => {
                // As below.
                let _ = pi::unlock_robust(&self.word, list.pending());
                step(Step::Released);
            }
            None if self.inherits() => {
                // The kernel refuses only a word that something has overwritten; there is no caller
                // to report that to.
                let _ = pi::unlock(&self.word, Scope::Shared);
                step(Step::Released);
            }
            // The kernel's combined call would free the word with 0, but `WAITERS` must stay
            // (`word.rs`).
            Some(false) | None => word::release(&self.word, me),
        }
    }

    #[cold]
    fn tidy_now_and_then(&self, me: u32) {
        let takes = self.takes.load(Relaxed).wrapping_add(1);
        self.takes.store(takes, Relaxed);
        if takes % TIDY_EVERY == 0 {
            word::tidy(&self.word, me);
        }
    }
}

const fn kind_bits(kind: RobustKind, protocol: RobustProtocol) -> u32 {
    let kind = match kind {
        RobustKind::Normal => 0,
        RobustKind::Recursive => RECURSIVE,
        RobustKind::ErrorChecking => ERROR_CHECKING,
    };
    match protocol {
        RobustProtocol::None => kind,
        RobustProtocol::Inherit => kind | INHERITS,
    }
}
