//! The mutex: one interface, four flavours, private and process-shared, eight bytes.
//!
//! | file | contents |
//! |------|----------|
//! | `word.rs` | the bits of the word |
//! | `contended.rs` | the slow paths of lock and unlock: barging, or dispatch by kind and flavour |
//! | `policy/` | what times and counts decide: spin, park, barge, nap, hand off, wake |
//! | `private.rs` | waiters of the throughput and the adaptive flavour: the whole protocol |
//! | `unlock.rs` | their wakers |
//! | `wait_wake.rs` | the wait-wake flavour: sleeps at once |
//! | `history.rs`, `nap.rs` | the records and samples that the policy decides by; the nap |
//! | `real_time.rs` | waiters under a real-time scheduling policy |
//! | `shared.rs` | process-shared words, on the kernel's futex |
//! | `owner.rs` | an owner is kept: recursive, error-checking, priority-inheriting |
//! | `after_wait.rs` | the mutex's side of a condvar wait |
//! | `waiter.rs` | what a parked waiter tells its wakers |
//! | `options.rs`, `error.rs` | the options of a mutex, and its errors |
//! | `api.rs` | [`Mutex`](crate::Mutex) and related types, under parking_lot's names |
//! | `fair.rs` | [`FairMutex`](crate::FairMutex): each unlock hands it off |
//! | `default_flavour.rs` | the default-flavour override of this process |
//!
//! # The two words
//!
//! Lock and unlock change `word` (see `word.rs`). The contents of `data` depend on the mutex:
//!
//! | mutex | `data` |
//! |-------|--------|
//! | plain | bits 30-31: the flavour; bit 29: process-shared or not; |
//! |       | bits 8-28: how waiters woke up lately (`policy/wakes.rs`) |
//! | SPECIAL, with an owner | bits 30-31: the flavour; bits 0-28: the owner's thread number, or 0 |
//! | SPECIAL, priority-inheriting | the kernel's word (`pi.rs`) |
//!
//! Eight zero bytes are a free, private, adaptive mutex.
//!
//! # Fast paths
//!
//! Lock is one compare-and-swap of `word` from 0 to LOCKED. Unlock is a load that checks for
//! LOCKED, and one compare-and-swap from LOCKED to 0. Every other value of the word leads to a slow
//! path. All flavours and kinds are distinguished there.

pub(in crate::lock) mod after_wait;
#[cfg(not(loom))]
pub(in crate::lock) mod api;
mod contended;
mod default_flavour;
mod error;
#[cfg(not(loom))]
pub(in crate::lock) mod fair;
mod history;
mod nap;
mod options;
mod owner;
mod policy;
pub(in crate::lock) mod private;
mod real_time;
mod shared;
mod unlock;
mod wait_wake;
pub(in crate::lock) mod waiter;
mod word;

pub use contended::{GivenBack, LateWaiter};
pub use error::LockError;
pub use options::{Kind, PosixFlavour, PosixMutexOptions};

use crate::atomic::{AtomicU32, Ordering};
use crate::lock::key_of_mutex_at;
use crate::private::Key;
use crate::sys::clock::Deadline;
use waiter::FromCondvar;
use word::{LOCKED, State};

/// A mutex without the data that it protects, on which [`Mutex`](crate::Mutex), the C API's
/// `ww_mutex_t` and condvars are built.
///
/// You must make sure that only a holder unlocks it. Eight bytes, no destructor; eight zero bytes
/// are a free mutex. It may lie in memory that several processes map, if it was made
/// [process-shared](PosixMutexOptions::scope). It may be freed as soon as it has been locked and
/// unlocked for the last time: an unlock does not touch the mutex once another thread can lock it.
///
/// A waiter under a real-time scheduling policy is served before all others, and of several such
/// waiters the one with the highest priority is first (POSIX). A thread's priority is looked up
/// when it goes to sleep, at most every 10 ms.
///
/// No method may be called from a signal handler. After `fork`, the child's copy is held if any
/// thread of the parent held it; a child may unlock what the forking thread held.
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
    /// Not a checker's atomic in a model: what it holds orders nothing.
    data: core::sync::atomic::AtomicU32,
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

/// What the unlocking thread does next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    /// It keeps its CPU.
    GoOn,
    /// It waits for this condvar and gives its CPU up.
    Sleep(FromCondvar),
    /// Unspecified. The lock must not go to a thread that has only just come.
    HandOff,
}

const FLAVOUR_SHIFT: u32 = 30;
const SHARED: u32 = 1 << 29;

#[cfg(loom)]
const FREED: u32 = 0x_dead_dead;

impl RawPosixMutex {
    /// Creates a free mutex: adaptive, private, not recursive.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        PosixMutexOptions::new().build_raw()
    }

    /// Locks the mutex, waiting for as long as necessary. (POSIX: `pthread_mutex_lock`.)
    ///
    /// # Panics
    /// If the mutex is recursive, error-checking, priority-inheriting or destroyed and the lock
    /// fails ([`lock_checked`](Self::lock_checked) returns the reason instead).
    #[inline]
    pub fn lock(&self) {
        if let Err(seen) = self.try_fast() {
            self.lock_contended(seen);
        }
    }

    /// Locks the mutex, or returns an error. A mutex that is neither error-checking, recursive nor
    /// priority-inheriting is always locked in the end.
    ///
    /// # Errors
    /// [`LockError::Deadlock`] if the caller holds the mutex (error-checking, priority-inheriting),
    /// [`LockError::TooMany`] (recursive), [`LockError::Invalid`] if the mutex is destroyed, or the
    /// kernel's error (priority-inheriting).
    #[inline]
    pub fn lock_checked(&self) -> Result<(), LockError> {
        match self.try_fast() {
            Ok(()) => Ok(()),
            Err(seen) => self.lock_slow(seen, None),
        }
    }

    /// Locks the mutex, waiting until `deadline` at the latest, on either clock. (POSIX:
    /// `pthread_mutex_clocklock`.)
    ///
    /// # Errors
    /// [`LockError::TimedOut`], and the errors of [`lock_checked`](Self::lock_checked). A free
    /// mutex is locked even if the deadline has passed.
    #[inline]
    pub fn lock_until(&self, deadline: Deadline) -> Result<(), LockError> {
        match self.try_fast() {
            Ok(()) => Ok(()),
            Err(seen) => self.lock_slow(seen, Some(&deadline)),
        }
    }

    /// Locks the mutex if that needs no waiting. Returns whether it did. Does not block.
    #[inline]
    pub fn try_lock(&self) -> bool {
        match self.try_fast() {
            Ok(()) => true,
            // Plainly locked: by far the most common reason for a failing try, whether or not
            // threads wait.
            Err(seen) => !seen.is_plainly_locked() && self.try_lock_contended(seen),
        }
    }

    /// [`try_lock`](Self::try_lock), with the reason for a failure.
    ///
    /// # Errors
    /// [`LockError::Busy`], and the errors of [`lock_checked`](Self::lock_checked) except
    /// `Deadlock`.
    #[inline]
    pub fn try_lock_checked(&self) -> Result<(), LockError> {
        match self.try_fast() {
            Ok(()) => Ok(()),
            // By far the most common reason for a failing try, whether or not threads wait.
            Err(seen) if seen.is_plainly_locked() => Err(LockError::Busy),
            Err(seen) => self.try_lock_slow(seen),
        }
    }

    /// Unlocks the mutex.
    ///
    /// # Safety
    /// The caller holds the mutex. (A plain mutex may be unlocked by another thread than the one
    /// that locked it, as long as the two agree on it.)
    ///
    /// # Panics
    /// If the mutex keeps an owner, and that is not the calling thread.
    #[inline]
    pub unsafe fn unlock(&self) {
        if let Err(seen) = self.release_fast() {
            self.unlock_contended(seen);
        }
    }

    /// [`unlock`](Self::unlock), with an error instead of a panic.
    ///
    /// # Errors
    /// [`LockError::NotOwner`] if the mutex keeps an owner and that is not the calling thread;
    /// [`LockError::Invalid`] if the mutex is destroyed.
    ///
    /// # Safety
    /// The caller holds the mutex, or the mutex keeps an owner and can check it.
    #[inline]
    pub unsafe fn unlock_checked(&self) -> Result<(), LockError> {
        self.release_fast().or_else(|_| self.unlock_slow(Then::GoOn))
    }

    /// Unlocks the mutex and hands it to a waiter, if there is one: to the waiter that is awake for
    /// it, or else to the one that has waited longest. A thread that comes only now cannot take it
    /// first. Costs a wake-up during which no thread runs with the mutex. (A priority-inheriting
    /// mutex is always handed off, to the highest priority first; a process-shared mutex never is.)
    ///
    /// # Safety
    /// As for [`unlock`](Self::unlock).
    ///
    /// # Panics
    /// As for [`unlock`](Self::unlock).
    #[inline]
    pub unsafe fn unlock_fair(&self) {
        if self.release_fast().is_ok() {
            return;
        }
        if let Err(error) = self.unlock_fair_slow() {
            panic!("mutex not unlocked: {error}");
        }
    }

    /// [`unlock_fair`](Self::unlock_fair) of a private mutex that keeps no owner. The mutex is free
    /// afterwards only if no thread was parked. `unlock_fair` may free it for a thread that parks
    /// at that moment, and other threads may take it first.
    #[inline]
    pub(crate) fn hand_over(&self) {
        if self.release_fast().is_err() {
            self.hand_over_slow();
        }
    }

    /// [`unlock_fair`](Self::unlock_fair), with an error instead of a panic.
    ///
    /// # Errors
    /// As for [`unlock_checked`](Self::unlock_checked).
    ///
    /// # Safety
    /// As for [`unlock_checked`](Self::unlock_checked).
    #[inline]
    pub unsafe fn unlock_fair_checked(&self) -> Result<(), LockError> {
        self.release_fast().or_else(|_| self.unlock_fair_slow())
    }

    /// Hands the mutex to a waiter, as [`unlock_fair`](Self::unlock_fair) does, and locks it again
    /// after that waiter. Does nothing if no thread waits, or if the mutex is priority-inheriting.
    ///
    /// # Safety
    /// As for [`unlock`](Self::unlock).
    #[inline]
    pub unsafe fn bump(&self) {
        if self.word.load(Ordering::Relaxed) != LOCKED {
            self.bump_slow();
        }
    }

    /// Whether the calling thread holds the mutex and would get [`LockError::Deadlock`] if it
    /// locked it again. Always false for a mutex that keeps no owner.
    pub fn would_deadlock(&self) -> bool {
        self.state().is_special() && owner::is_mine(self) && !owner::is_recursively_mine(self)
    }

    /// Whether the mutex was held at the time of the call.
    #[inline]
    pub fn is_locked(&self) -> bool {
        let state = self.state();
        if state.is_special() {
            return owner::is_locked(self);
        }
        state.is_locked()
    }

    /// Takes the mutex if it is free and no thread waits. For `try_lock`, and for a mutex that may
    /// keep an owner: the word of such a mutex is never 0, so an exchange without a load before it
    /// would always fail.
    ///
    /// # Errors
    /// The value of the word.
    #[inline]
    fn try_fast(&self) -> Result<(), State> {
        // (Not in a model: see `release_fast`.)
        #[cfg(not(loom))]
        {
            let seen = self.word.load(Ordering::Relaxed);
            if seen != 0 {
                return Err(State(seen));
            }
        }
        self.lock_fast()
    }

    /// [`try_fast`](Self::try_fast) without the load, for a lock that waits if it must. If another
    /// CPU has the cache line, the load would fetch it in shared state, and the exchange would
    /// fetch it again to write.
    #[inline(always)]
    fn lock_fast(&self) -> Result<(), State> {
        self.word
            .compare_exchange(0, LOCKED, Ordering::Acquire, Ordering::Relaxed)
            .map(drop)
            .map_err(State)
    }

    /// Unlocks the mutex if no thread waits.
    ///
    /// This is one compare-and-swap, which fails if a thread waits. So no thread is left to be
    /// woken once other threads may lock, unlock and free the mutex.
    ///
    /// # Errors
    /// The state of the word, if a thread waits.
    #[inline(always)]
    fn release_fast(&self) -> Result<(), State> {
        // A load first: the holder most often has the line, and a failing exchange costs as much as
        // the one that follows it. (Not in a model: the value seen here may be old, like the one
        // that a failing exchange saw, and would only add states.)
        #[cfg(not(loom))]
        {
            let seen = self.word.load(Ordering::Relaxed);
            if seen != LOCKED {
                return Err(State(seen));
            }
        }
        self.word
            // Release: publishes what was done while the mutex was held.
            .compare_exchange(LOCKED, 0, Ordering::Release, Ordering::Relaxed)
            .map(drop)
            .map_err(State)
    }

    /// The flavour of a mutex that is not priority-inheriting.
    #[inline]
    pub(in crate::lock) fn flavour(&self) -> PosixFlavour {
        let data = self.alive(self.data.load(Ordering::Relaxed));
        PosixFlavour::from_bits(data >> FLAVOUR_SHIFT).or_override()
    }

    /// Whether its word, last seen in this state, is the kernel's futex.
    #[inline]
    fn is_shared_in(&self, state: State) -> bool {
        if state.is_special() {
            return owner::is_shared(state);
        }
        // Relaxed: the bit never changes.
        self.data.load(Ordering::Relaxed) & SHARED != 0
    }

    /// Whether the mutex is private and keeps no owner, going by a state that its word was seen in.
    #[inline(always)]
    fn is_plain(&self, state: State) -> bool {
        !state.is_special() && self.data.load(Ordering::Relaxed) & SHARED == 0
    }

    /// `data` of a priority-inheriting mutex. No model has one.
    #[inline]
    fn kernel_data(&self) -> &AtomicU32 {
        #[cfg(not(loom))]
        return &self.data;
        #[cfg(loom)]
        unreachable!()
    }

    /// The key of its waiters in the table.
    #[inline]
    pub(in crate::lock) fn key(&self) -> Key {
        key_of_mutex_at(self.address())
    }

    pub(in crate::lock) fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// In a model, once all threads have ended: checks that nothing is left in the word or in the
    /// table.
    #[cfg(loom)]
    pub(crate) fn assert_forgotten(&self) {
        assert_eq!(self.word.load(Ordering::Relaxed), 0);
        let found = crate::private::waiter_table().find_waiters(self.key());
        assert!(found.is_none(), "a waiter is still counted");
    }

    /// In a model: from now on no thread may use the mutex, as if its memory had been freed.
    #[cfg(loom)]
    pub(crate) fn pretend_to_free(&self) {
        self.word.store(FREED, Ordering::Relaxed);
        self.data.store(FREED, Ordering::Relaxed);
    }
}

#[cfg(not(loom))]
impl Default for RawPosixMutex {
    fn default() -> Self {
        Self::new()
    }
}
