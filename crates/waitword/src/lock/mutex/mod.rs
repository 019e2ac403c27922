//! The mutex: one interface, four flavours, private and process-shared, eight bytes.
//!
//! | file | what it is |
//! |------|------------|
//! | `word.rs` | the bits of the word |
//! | `contended.rs` | past those who wait, or by way of the flavour |
//! | `throughput.rs` | barging, one spinner, hand-off: the throughput and the adaptive flavour |
//! | `unlock.rs` | which waiter its unlocks wake |
//! | `policy.rs` | who lingers, who is the successor, who parks |
//! | `monopoly.rs`, `nap.rs` | a lock that the threads of one CPU have to themselves; the nap of its successor |
//! | `late_successor.rs`, `extras.rs` | a waiter that gets no CPU; some that are woken at once |
//! | `real_time.rs` | waiters under a real-time scheduling policy |
//! | `wait_wake.rs` | sleeps at once |
//! | `shared.rs` | process-shared words, on the kernel's futex |
//! | `special.rs` | an owner is kept: recursive, error-checking, priority-inheriting |
//! | `after_wait.rs` | what a condvar needs |
//! | `waiter.rs` | what a parked waiter says of itself |
//! | `options.rs`, `error.rs` | how one is made, and what may go wrong |
//! | `api.rs` | [`Mutex`](crate::Mutex) and its like, under parking_lot's names |
//! | `fair.rs` | [`FairMutex`](crate::FairMutex): each unlock hands it over |
//! | `stand_in.rs` | what the adaptive flavour stands for in this process |
//!
//! # The two words
//!
//! `word` is what lock and unlock change (see `word.rs`). `data` is, by what the mutex is:
//!
//! | mutex | `data` |
//! |-------|--------|
//! | plain | bits 30-31 the flavour, bit 29 whether it is process-shared; what is remembered: 8-23 `late_successor.rs`, 24-28 `extras.rs` |
//! | SPECIAL, with an owner | bits 30-31 the flavour, bits 0-28 the owner's thread number, or 0 |
//! | SPECIAL, priority-inheriting | the word that the kernel knows (`pi.rs`) |
//!
//! Eight zero bytes are a free, private, adaptive mutex.
//!
//! # Fast paths
//!
//! Lock is one compare-and-swap of `word` from 0 to LOCKED; unlock is a look whether it is LOCKED,
//! and one from LOCKED to 0. Everything else, all flavours and kinds included, is told by a word
//! that is neither.

pub(in crate::lock) mod after_wait;
#[cfg(not(loom))]
pub(in crate::lock) mod api;
mod contended;
mod error;
mod extras;
#[cfg(not(loom))]
pub(in crate::lock) mod fair;
mod late_successor;
mod monopoly;
mod nap;
mod options;
mod policy;
mod real_time;
mod shared;
#[cfg(not(loom))]
mod special;
mod stand_in;
pub(in crate::lock) mod throughput;
mod unlock;
mod wait_wake;
pub(in crate::lock) mod waiter;
mod word;

pub use contended::{GivenBack, LateWaiter};
pub use error::LockError;
#[cfg(loom)]
pub(crate) use extras::let_extras_be_woken;
#[cfg(loom)]
pub(crate) use late_successor::let_successors_be_late;
#[cfg(loom)]
pub(crate) use nap::let_mutexes_be_monopolized;
pub use options::{Kind, PosixFlavour, PosixMutexOptions};
#[cfg(loom)]
pub(crate) use waiter::let_time_pass;

use crate::atomic::{AtomicU32, Ordering};
use crate::lock::key_of_mutex_at;
use crate::private::Key;
use crate::sys::clock::Deadline;
use waiter::FromCondvar;
use word::{LOCKED, State};

/// A mutex without the data that it protects: what [`Mutex`](crate::Mutex), the C API's `ww_mutex_t` and
/// condvars work on.
///
/// Whoever uses this type itself sees to it that only a holder unlocks. Eight bytes, no destructor; all bytes zero
/// is a free one. It may lie in memory that several processes map, if it was made
/// [process-shared](PosixMutexOptions::scope). It may be freed as soon as it is locked and unlocked
/// for the last time: an unlock does not touch it any more once another thread can lock it.
///
/// Of several threads that wait, one under a real-time scheduling policy is served before all
/// others, and of those the one with the highest priority (POSIX). A thread's priority is looked up
/// when it goes to sleep, at most every 10 ms.
///
/// Not for signal handlers, none of it. After `fork`, the child's copy is held if any thread of the parent held it; a
/// child may unlock what the forking thread held.
///
/// ```
/// use waitword::RawPosixMutex;
///
/// let mutex = RawPosixMutex::new();
/// mutex.lock();
/// assert!(!mutex.try_lock());
/// // SAFETY: locked just above.
/// unsafe { mutex.unlock() };
/// ```
#[repr(C)]
#[derive(Debug)]
pub struct RawPosixMutex {
    pub(in crate::lock) word: AtomicU32,
    data: AtomicU32,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<RawPosixMutex>() == 8);

/// The deadline has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lock) struct LockTimedOut;

impl From<LockTimedOut> for LockError {
    fn from(_: LockTimedOut) -> Self {
        Self::TimedOut
    }
}

/// What the thread that unlocks does next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    /// It keeps its CPU.
    GoOn,
    /// It waits for this condvar, and its CPU is free.
    Sleep(FromCondvar),
    /// Whatever it does: the lock is not to be had by one who comes only now.
    HandOver,
}

const FLAVOUR_SHIFT: u32 = 30;
const SHARED: u32 = 1 << 29;

#[cfg(loom)]
const FREED: u32 = 0x_dead_dead;

impl RawPosixMutex {
    /// A free one: adaptive, private, not recursive.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        PosixMutexOptions::new().build_raw()
    }

    /// Takes it, waiting as long as it needs. (POSIX: `pthread_mutex_lock`.)
    ///
    /// # Panics
    /// If it is error-checking or priority-inheriting and something is wrong with this lock
    /// ([`lock_checked`](Self::lock_checked) tells what).
    #[inline]
    pub fn lock(&self) {
        if let Err(seen) = self.try_fast() {
            self.lock_contended(seen);
        }
    }

    /// Takes it, or says why not. One that is neither error-checking, recursive nor priority-inheriting is always
    /// taken in the end.
    ///
    /// # Errors
    /// [`LockError::Deadlock`] if the caller holds it (error-checking, priority-inheriting), [`LockError::TooMany`]
    /// (recursive), [`LockError::Invalid`] for a destroyed one, or what the kernel says (priority-inheriting).
    #[inline]
    pub fn lock_checked(&self) -> Result<(), LockError> {
        match self.try_fast() {
            Ok(()) => Ok(()),
            Err(seen) => self.lock_slow(seen, None),
        }
    }

    /// Takes it, waiting until `deadline` at the latest, on either clock. (POSIX: `pthread_mutex_clocklock`.)
    ///
    /// # Errors
    /// [`LockError::TimedOut`], and as [`lock_checked`](Self::lock_checked). A free lock is taken whatever the deadline.
    #[inline]
    pub fn lock_until(&self, deadline: Deadline) -> Result<(), LockError> {
        match self.try_fast() {
            Ok(()) => Ok(()),
            Err(seen) => self.lock_slow(seen, Some(&deadline)),
        }
    }

    /// Takes it if that needs no waiting; whether it did. Does not block.
    #[inline]
    pub fn try_lock(&self) -> bool {
        self.try_lock_checked().is_ok()
    }

    /// [`try_lock`](Self::try_lock), with the reason if it did not.
    ///
    /// # Errors
    /// [`LockError::Busy`], and as [`lock_checked`](Self::lock_checked) but for `Deadlock`.
    #[inline]
    pub fn try_lock_checked(&self) -> Result<(), LockError> {
        match self.try_fast() {
            Ok(()) => Ok(()),
            // By far the most usual answer to a trylock that fails, whoever else waits.
            Err(seen) if State(seen).is_plainly_locked() => Err(LockError::Busy),
            Err(seen) => self.try_lock_slow(State(seen)),
        }
    }

    /// Gives it back.
    ///
    /// # Safety
    /// The caller holds it. (A plain one may be unlocked by another thread than locked it, as long as they
    /// agree on it.)
    ///
    /// # Panics
    /// If it has an owner, and that is not the calling thread.
    #[inline]
    pub unsafe fn unlock(&self) {
        if let Err(seen) = self.release_fast() {
            self.unlock_contended(seen);
        }
    }

    /// [`unlock`](Self::unlock), or why not.
    ///
    /// # Errors
    /// [`LockError::NotOwner`] if it has an owner and that is not the calling thread; [`LockError::Invalid`] for a
    /// destroyed one.
    ///
    /// # Safety
    /// The caller holds it, or it has an owner and can tell.
    #[inline]
    pub unsafe fn unlock_checked(&self) -> Result<(), LockError> {
        self.release_fast().or_else(|_| self.unlock_slow())
    }

    /// Gives it to the thread that has waited longest, or to one that is awake for it, if any waits, instead of letting
    /// one take it that comes only now.
    /// Costs a wake-up during which nobody has it. (A priority-inheriting one is always given so, to the highest
    /// priority first; a process-shared one never.)
    ///
    /// # Safety
    /// As [`unlock`](Self::unlock).
    ///
    /// # Panics
    /// As [`unlock`](Self::unlock).
    #[inline]
    pub unsafe fn unlock_fair(&self) {
        if self.release_fast().is_ok() {
            return;
        }
        if let Err(error) = self.unlock_fair_slow() {
            panic!("mutex not unlocked: {error}");
        }
    }

    /// [`unlock_fair`](Self::unlock_fair) of a private one that keeps no owner, which is free
    /// afterwards only if no thread was parked. `unlock_fair` may free it for a thread that parks
    /// just then, and others may take it first.
    #[inline]
    pub(crate) fn hand_over(&self) {
        if self.release_fast().is_err() {
            unlock::unlock_fairly(self);
        }
    }

    /// [`unlock_fair`](Self::unlock_fair), or why not.
    ///
    /// # Errors
    /// As [`unlock_checked`](Self::unlock_checked).
    ///
    /// # Safety
    /// As [`unlock_checked`](Self::unlock_checked).
    #[inline]
    pub unsafe fn unlock_fair_checked(&self) -> Result<(), LockError> {
        self.release_fast().or_else(|_| self.unlock_fair_slow())
    }

    /// Gives it to a thread that waits, as [`unlock_fair`](Self::unlock_fair) does, and takes it again behind that; does
    /// nothing if nobody waits, or if it is priority-inheriting.
    ///
    /// # Safety
    /// As [`unlock`](Self::unlock).
    #[inline]
    pub unsafe fn bump(&self) {
        if self.word.load(Ordering::Relaxed) != LOCKED {
            self.bump_slow();
        }
    }

    /// Whether the calling thread holds it, and would be told [`LockError::Deadlock`] if it locked it once more. False of a mutex that
    /// does not know its holder.
    #[cfg(not(loom))]
    pub fn would_deadlock(&self) -> bool {
        self.state().is_special() && special::is_mine(self) && !special::is_recursively_mine(self)
    }

    /// Whether somebody held it just now.
    #[inline]
    pub fn is_locked(&self) -> bool {
        let state = self.state();
        #[cfg(not(loom))]
        if state.is_special() {
            return special::is_locked(self);
        }
        state.is_locked()
    }

    /// Takes the mutex if it is free and no thread waits. For `try_lock`, and for a mutex that may
    /// keep an owner: its word is never 0, so an exchange without a look would fail each time.
    ///
    /// # Errors
    /// What the word was.
    #[inline]
    pub(in crate::lock) fn try_fast(&self) -> Result<(), u32> {
        // (Not in a model: see `release_fast`.)
        #[cfg(not(loom))]
        {
            let seen = self.word.load(Ordering::Relaxed);
            if seen != 0 {
                return Err(seen);
            }
        }
        self.lock_fast()
    }

    /// The same without a look first, for a lock that waits if it must. If the line is another
    /// CPU's, a look would fetch it to share, and the exchange once more, to write.
    #[inline(always)]
    fn lock_fast(&self) -> Result<(), u32> {
        self.word
            .compare_exchange(0, LOCKED, Ordering::Acquire, Ordering::Relaxed)
            .map(drop)
    }

    /// Gives the mutex back if no thread waits.
    ///
    /// It is one compare-and-swap, which fails if a thread waits. So no thread is left to be woken
    /// once others may lock, unlock and free the mutex.
    ///
    /// # Errors
    /// The state of the word, if a thread waits.
    #[inline(always)]
    fn release_fast(&self) -> Result<(), State> {
        // A look first: its holder most often has the line, and an exchange that fails costs as
        // much as the one that follows it. (Not in a model: what is seen here may be old, as what a
        // failing one saw, and would only add states.)
        #[cfg(not(loom))]
        {
            let seen = self.word.load(Ordering::Relaxed);
            if seen != LOCKED {
                return Err(State(seen));
            }
        }
        self.word
            // Release: what was done with it held.
            .compare_exchange(LOCKED, 0, Ordering::Release, Ordering::Relaxed)
            .map(drop)
            .map_err(State)
    }

    #[inline]
    pub(in crate::lock) fn flavour(&self) -> PosixFlavour {
        #[cfg(not(loom))]
        if special::is_pi(self) {
            return PosixFlavour::PriorityInheriting;
        }
        let data = self.alive(self.data.load(Ordering::Relaxed));
        PosixFlavour::from_bits(data >> FLAVOUR_SHIFT).or_stand_in()
    }

    /// Whether its word is the kernel's futex.
    #[inline]
    pub(in crate::lock) fn is_shared(&self) -> bool {
        #[cfg(not(loom))]
        if self.state().is_special() {
            return special::is_shared(self);
        }
        // Relaxed: the bit never changes.
        self.data.load(Ordering::Relaxed) & SHARED != 0
    }

    /// Under which its waiters stand in the table.
    #[inline]
    pub(in crate::lock) fn key(&self) -> Key {
        key_of_mutex_at(core::ptr::from_ref(self).addr())
    }

    #[inline]
    fn state(&self) -> State {
        // Acquire: so that an unlock that reads PARKED finds the table that the waiter stands in.
        State(self.alive(self.word.load(Ordering::Acquire)))
    }

    /// One attempt to change the word.
    #[inline]
    fn change(&self, from: State, to: State, success: Ordering) -> Result<(), State> {
        self.word
            .compare_exchange_weak(from.0, to.0, success, Ordering::Acquire)
            .map(drop)
            .map_err(|now| State(self.alive(now)))
    }

    /// In a model: what was read is not of one whose memory has been freed.
    #[inline(always)]
    fn alive(&self, seen: u32) -> u32 {
        #[cfg(loom)]
        assert_ne!(seen, FREED, "a mutex is used after it was freed");
        seen
    }

    /// In a model, once all have ended: that nothing is left in the word or in the table.
    #[cfg(loom)]
    pub(crate) fn assert_forgotten(&self) {
        assert_eq!(self.word.load(Ordering::Relaxed), 0);
        let found = crate::private::waiter_table().find_waiters(self.key());
        assert!(found.is_none(), "somebody is counted still");
    }

    /// In a model: from now on nobody may use it, as if its memory had been freed.
    #[cfg(loom)]
    pub(crate) fn pretend_to_free(&self) {
        self.word.store(FREED, Ordering::Relaxed);
        self.data.store(FREED, Ordering::Relaxed);
    }

    /// Changes the word in a way that orders nothing.
    fn set(&self, mut to: impl FnMut(State) -> State) {
        let mut state = self.state();
        while let Err(now) = self.change(state, to(state), Ordering::Relaxed) {
            state = now;
        }
    }

    /// Changes the word so that it is released.
    fn release(&self, to: impl Fn(State) -> State) {
        let mut state = self.state();
        while let Err(now) = self.change(state, to(state), Ordering::Release) {
            state = now;
        }
    }

    /// Under the bucket's lock: announces a waiter, unless there is nothing to wait for; whether it waits.
    fn announce(&self, mut to: impl FnMut(State) -> Option<State>) -> bool {
        let mut state = self.state();
        while let Some(next) = to(state) {
            // Release: the table that the waiter is about to stand in.
            match self.change(state, next, Ordering::Release) {
                Ok(()) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    /// Under the bucket's lock: a waiter has left.
    fn note_parked(&self, others_wait: bool) {
        if !others_wait {
            self.set(|state| state.with_parked(false));
        }
    }
}

#[cfg(not(loom))]
impl Default for RawPosixMutex {
    fn default() -> Self {
        Self::new()
    }
}
