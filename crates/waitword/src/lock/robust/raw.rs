//! The robust mutex without its data: kinds, depth, death and recovery. What a C library's robust `pthread_mutex_t` is.
//!
//! A holder may die: its process is killed, or its thread ends without unlocking. The kernel, which knows what each
//! thread holds (`list.rs`), then frees the mutex and says so in its word, and the next to lock it is told
//! ([`RobustLocked::OwnerDied`], `EOWNERDEAD`), once for each death. It repairs what the mutex protects and says so
//! ([`RawRobustMutex::mark_consistent`]). If it unlocks without that, nobody can lock the mutex ever again.
//!
//! ```text
//!                    dies holding it: OWNER_DIED in the word
//!   CONSISTENT <-------------------------------------------------.
//!       |                                                        | mark_consistent
//!       '---- next lock: OwnerDied ----> INCONSISTENT -----------'
//!                                          |      ^
//!                                          |      '--- dies holding it; next lock: OwnerDied
//!                                          '--- unlock ---> NOT_RECOVERABLE (for ever)
//! ```
//!
//! # A lock and an unlock, step by step
//!
//! | lock | unlock | the kernel, if we die after this step |
//! |------|--------|----------------------------------------|
//! | `list_op_pending` = this | `list_op_pending` = this | lock: wakes one if the word is free, else nothing; unlock: as held |
//! | take the word | | finds it in `list_op_pending`, and our number in the word: frees it |
//! | put it into the list | take it out of the list | the same |
//! | | free the word | free, in `list_op_pending`: wakes one |
//! | | wake one | wakes one more, for nothing |
//! | `list_op_pending` = null | `list_op_pending` = null | lock: finds it in the list, frees it |
//!
//! # Invariants
//!
//! 1. `depth`, `state` and `takes` belong to the holder: Relaxed, ordered by the word.
//! 2. A death at any step of lock or unlock either leaves the mutex free, or is reported to exactly one later
//!    holder that lives to hear it.
//! 3. `NOT_RECOVERABLE` is for ever, deaths or not. Whoever takes the word then gives it back; so each who waits is
//!    told in turn.
//! 4. Without priority inheritance, nothing of the mutex is read or written by us once the word is free. The
//!    kernel may: see below.
//!
//! # What is not guaranteed
//!
//! * **Memory reused under a dying unlock.** Between the freeing of the word and `list_op_pending` = null, two
//!   instructions or a wake, somebody else may take the mutex, destroy it and use or map the memory for something
//!   else. If the unlocker is killed just then, the kernel looks at that memory as at a word: it may wake
//!   somebody for nothing, and if the 32 bits happen to be the number of the dead thread, sets `OWNER_DIED` in
//!   them. glibc has the same (its bug 14485); only a kernel that frees the word and clears `list_op_pending` itself can
//!   mend it. Who destroys robust mutexes while others may be killed in them should leave the memory alone
//!   until those have ended.
//! * **2048 mutexes**: of what a thread holds, the kernel sees to the 2048 that were locked last.
//! * **Trust.** Whoever can write the memory can make the mutex say anything, and lead a holder's list astray. Share it
//!   only with processes that may crash you.
//! * **PID namespaces.** Holders are known by their number: all who share a mutex live in one PID namespace.
//! * **Kernels.** Linux 6.2, or a long-term kernel of 2023 or later (commit 90d758896787). Before, the kernel woke a
//!   sleeper for one who died unlocking or just woken only if the whole word was 0, and before 5.5 never: a kill
//!   at that moment can then leave those who wait asleep until somebody locks the mutex again.

use super::error::{RobustError, RobustLocked};
use super::list::{List, Node};
use super::step::{Step, step};
use super::word::{self, Taken};
use crate::atomic::{AtomicU32, Ordering::Relaxed};
use crate::futex::Scope;
use crate::lock::pi::{self, Acquired, OWNER_DIED, TID_MASK};
use crate::sys::clock::Deadline;
use crate::sys::tid::tid;

/// What a robust mutex does when its holder locks it once more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RobustKind {
    /// Waits for itself, for ever or until the deadline (`PTHREAD_MUTEX_NORMAL`). With priority inheritance the
    /// kernel notices: [`RobustError::Deadlock`].
    #[default]
    Normal,
    /// Counts (`PTHREAD_MUTEX_RECURSIVE`).
    Recursive,
    /// Says [`RobustError::Deadlock`] (`PTHREAD_MUTEX_ERRORCHECK`).
    ErrorChecking,
}

/// Whether the holder of a robust mutex runs at the priority of those who wait for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RobustProtocol {
    /// It does not (`PTHREAD_PRIO_NONE`). The mutex may be taken by a passer-by while the one who was woken is
    /// on its way.
    #[default]
    None,
    /// It does (`PTHREAD_PRIO_INHERIT`), and unlock hands the mutex to the waiter of highest priority. Each lock
    /// and unlock with somebody waiting is a system call and a change of threads.
    Inherit,
}

/// What `state` holds: nobody has died, or what was left behind has been repaired.
const CONSISTENT: u32 = 0;
/// The holder knows of a death, and has not yet said that it has repaired what was left behind.
const INCONSISTENT: u32 = 1;
/// It has not, and has unlocked.
const NOT_RECOVERABLE: u32 = 2;

/// What `kind` holds.
const RECURSIVE: u32 = 1;
const ERROR_CHECKING: u32 = 2;
const KIND: u32 = 3;
const INHERITS: u32 = 0x20;

/// A thread that took a word with `WAITERS` set looks for sleepers every so many times.
const TIDY_EVERY: u32 = if cfg!(loom) { 1 } else { 4 };

/// How long a lock may wait.
#[derive(Clone, Copy)]
enum Patience<'a> {
    None,
    Until(&'a Deadline),
    Endless,
}

/// A robust mutex that protects nothing by itself: 40 bytes, laid out so that glibc's own list of robust mutexes, which
/// the kernel walks when a thread ends, can hold it (the word first, the two links last, as in
/// `pthread_mutex_t`).
///
/// For threads of one process or of several that map the memory, at whatever addresses; there is no difference. Zeroed
/// memory is an unlocked mutex of kind [`Normal`](RobustKind::Normal) without inheritance. See
/// [`RobustMutex`](crate::RobustMutex) for one that owns its data and needs no `unsafe`.
///
/// No operation is for signal handlers. A forked child holds none of its parent's robust mutexes.
#[repr(C)]
#[derive(Debug)]
pub struct RawRobustMutex {
    word: AtomicU32,
    /// How many times the holder of a recursive mutex has locked it.
    depth: AtomicU32,
    state: AtomicU32,
    /// How many times somebody took the word with `WAITERS` set and had not slept.
    takes: AtomicU32,
    kind: u32,
    reserved: u32,
    pub(super) node: Node,
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
    /// An unlocked mutex.
    #[cfg(not(loom))]
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

    /// An unlocked mutex.
    #[cfg(loom)]
    pub fn new(kind: RobustKind, protocol: RobustProtocol) -> Self {
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

    /// Locks it; waits for that as long as need be. `pthread_mutex_lock` of a robust mutex.
    ///
    /// Blocks; signals do not end the wait.
    ///
    /// # Errors
    /// [`RobustError::NotRecoverable`]; [`Deadlock`](RobustError::Deadlock) and [`TooDeep`](RobustError::TooDeep) by
    /// kind; [`Unsupported`](RobustError::Unsupported); with inheritance
    /// [`OutOfMemory`](RobustError::OutOfMemory) and [`Kernel`](RobustError::Kernel).
    ///
    /// # Safety
    /// If it is had, the mutex stays where it is, mapped, until it is unlocked or this thread has ended: the
    /// thread's list leads to it.
    #[inline]
    pub unsafe fn lock(&self) -> Result<RobustLocked, RobustError> {
        // SAFETY: forwards this function's own contract.
        unsafe { self.lock_with(Patience::Endless) }
    }

    /// Locks it if nobody holds it, or the caller, if it is recursive. Does not block. `pthread_mutex_trylock`.
    ///
    /// # Errors
    /// [`RobustError::Busy`], also if the caller holds one that is not recursive; those of [`lock`](Self::lock) but
    /// for `Deadlock`.
    ///
    /// # Safety
    /// As [`lock`](Self::lock).
    #[inline]
    pub unsafe fn try_lock(&self) -> Result<RobustLocked, RobustError> {
        // SAFETY: forwards this function's own contract.
        unsafe { self.lock_with(Patience::None) }
    }

    /// Locks it; waits no longer than to the deadline, on either clock. `pthread_mutex_timedlock`,
    /// `pthread_mutex_clocklock`. A mutex that can be had without waiting is had even if the deadline has passed.
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

    /// Unlocks it, and wakes one who waits. `pthread_mutex_unlock`. Does not block.
    ///
    /// If the caller was told that a holder had died, and has not [marked](Self::mark_consistent) the mutex since, the
    /// mutex can never be locked again.
    ///
    /// # Errors
    /// [`RobustError::NotOwner`]; nothing has changed then.
    ///
    /// # Safety
    /// If the mutex [is the caller's](Self::is_mine), the calling thread has locked it. So it is,
    /// or the call fails, unless the word holds the number of a thread that has ended, which the
    /// kernel may have given to the caller. The number stays there if that thread held more than
    /// 2048 mutexes, or if it held this one in another process, of which this memory is a copy.
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
        list.begin(self);
        step(Step::UnlockBegun);
        // SAFETY: the word has this thread's number. So this thread has locked it, by this
        // function's contract, and put it into its list.
        unsafe { list.unlink(self) };
        step(Step::Unlinked);
        self.release(me);
        list.end();
        step(Step::Unlocked);
        Ok(())
    }

    /// Says that what the mutex protects has been repaired after a holder's death. `pthread_mutex_consistent`. The
    /// caller goes on to hold it.
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

    /// Whether the calling thread holds it, and would be told [`RobustError::Deadlock`] if it locked it once more.
    pub fn would_deadlock(&self) -> bool {
        let told = match self.kind & KIND {
            RECURSIVE => false,
            ERROR_CHECKING => true,
            _ => self.inherits(),
        };
        told && self.is_mine()
    }

    /// Whether somebody holds it now: `pthread_mutex_destroy` says `EBUSY` of such a one. A holder whose death the
    /// kernel has seen to holds it no more.
    pub fn is_locked(&self) -> bool {
        self.holder() != 0
    }

    /// The number of the thread that holds it, 0 if nobody does.
    #[inline]
    pub(super) fn holder(&self) -> u32 {
        // Relaxed: whether it is our own number, only we change.
        self.word.load(Relaxed) & TID_MASK
    }

    #[cfg(any(test, loom))]
    pub(crate) fn word(&self) -> &AtomicU32 {
        &self.word
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
        list.begin(self);
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

    /// By its holder. `None`: as anybody else.
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
            // The kernel leaves it set. If we die now, it sets it again.
            word.fetch_and(!OWNER_DIED, Relaxed);
        }
        Ok(Taken {
            died,
            untidy: false,
        })
    }

    /// The word is ours.
    ///
    /// # Safety
    /// As [`lock`](Self::lock).
    #[inline]
    unsafe fn enter(&self, me: u32, list: List, taken: Taken) -> Result<RobustLocked, RobustError> {
        step(Step::Taken);
        if self.state.load(Relaxed) == NOT_RECOVERABLE {
            self.release(me);
            list.end();
            return Err(RobustError::NotRecoverable);
        }
        if taken.died {
            self.state.store(INCONSISTENT, Relaxed);
            step(Step::Noted);
        }
        // The dead may have held it several times.
        self.depth.store(1, Relaxed);
        // SAFETY: it was free, and so in no list, or in that of a dead thread, which nothing
        // follows any more. It stays where it is until it is unlocked, by this function's contract.
        unsafe { list.link(self) };
        step(Step::Linked);
        list.end();
        step(Step::Locked);
        if taken.untidy {
            self.tidy_now_and_then(me);
        }
        Ok(if taken.died {
            RobustLocked::OwnerDied
        } else {
            RobustLocked::Clean
        })
    }

    #[inline]
    fn release(&self, me: u32) {
        if self.inherits() {
            // Only a word that somebody has overwritten can be refused; there is nobody to tell.
            let _ = pi::unlock(&self.word, Scope::Shared);
            step(Step::Released);
        } else {
            word::release(&self.word, me);
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
