//! The mutex for Rust: a raw mutex that cannot fail, and parking_lot's types on top of it.
//!
//! [`lock_api`] requires that a raw mutex whose lock returns is held exclusively until the unlock.
//! A mutex that may refuse (error-checking, priority-inheriting) or that lets its owner in again
//! (recursive) does not guarantee that. It must not be used with `lock_api`, whose constructors are
//! safe. So [`RawMutex`] is a type of its own, and can be made only in flavours that give the
//! guarantee. The others have [`CheckedMutex`](crate::CheckedMutex), [`PiMutex`](crate::PiMutex)
//! and [`ReentrantMutex`].

use super::{PosixFlavour, PosixMutexOptions, RawPosixMutex};
use crate::deadlock::{self, LockKind, Taking, Way};
use crate::futex::Scope;
use crate::lock::GuardMarker;
use crate::sys::clock::Deadline;
use core::num::NonZeroUsize;
use core::time::Duration;
use std::time::Instant;

/// How threads wait for a mutex. (The flavours of Waiman Long's TO futexes, 2016, and an adaptive
/// one that makes choosing unnecessary.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Flavour {
    /// Decides from what it observes whether to spin, to sleep, or to hand off. Use this one unless
    /// a measurement favours another.
    #[default]
    Adaptive,
    /// A running thread may take the lock past sleeping waiters, waiters stay awake for some µs,
    /// and a thread that has waited long is handed the lock.
    Throughput,
    /// Waiters sleep at once. For critical sections that are long or that sleep. A waiter may be
    /// passed over without bound.
    WaitWake,
}

/// Builds a mutex with options.
///
/// ```
/// use waitword::{Flavour, MutexOptions};
///
/// static LOG: waitword::Mutex<Vec<u8>> =
///     MutexOptions::new().flavour(Flavour::WaitWake).build(Vec::new());
/// LOG.lock().push(1);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct MutexOptions {
    options: PosixMutexOptions,
}

impl MutexOptions {
    /// The defaults: adaptive and private.
    pub const fn new() -> Self {
        Self { options: PosixMutexOptions::new() }
    }

    /// Sets how threads wait for the mutex.
    pub const fn flavour(self, flavour: Flavour) -> Self {
        let flavour = match flavour {
            Flavour::Adaptive => PosixFlavour::Adaptive,
            Flavour::Throughput => PosixFlavour::Throughput,
            Flavour::WaitWake => PosixFlavour::WaitWake,
        };
        Self { options: self.options.flavour(flavour) }
    }

    /// Sets whether processes that share the mutex's memory may lock it too.
    pub const fn scope(self, scope: Scope) -> Self {
        Self { options: self.options.scope(scope) }
    }

    /// The same options, for a mutex of a kind that Rust's [`Mutex`] cannot be.
    pub const fn posix(self) -> PosixMutexOptions {
        self.options
    }

    /// Builds the mutex, unlocked, without data.
    pub const fn build_raw(self) -> RawMutex {
        RawMutex(self.options.build_raw())
    }

    /// Builds the mutex, unlocked, around a value.
    pub const fn build<T>(self, value: T) -> Mutex<T> {
        Mutex::from_raw(self.build_raw(), value)
    }
}

/// A mutex without the data that it protects, whose lock always succeeds: the raw mutex of
/// [`Mutex`].
///
/// Eight bytes, no destructor. It may be freed as soon as it has been locked and unlocked for the
/// last time: an unlock does not touch the mutex once another thread can lock it. Not for signal
/// handlers. After `fork`, the child's copy is held if any thread of the parent held it; a child
/// may unlock what the forking thread held.
///
/// For a mutex that checks its owner, is recursive, or inherits priorities, see [`RawPosixMutex`].
///
/// ```
/// use waitword::RawMutex;
///
/// let mutex = RawMutex::new();
/// mutex.lock();
/// assert!(!mutex.try_lock());
/// // SAFETY: locked just above.
/// unsafe { mutex.unlock() };
/// ```
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct RawMutex(RawPosixMutex);

impl RawMutex {
    /// Creates a free mutex, adaptive and private. For other options, see
    /// [`MutexOptions::build_raw`].
    #[inline]
    pub const fn new() -> Self {
        MutexOptions::new().build_raw()
    }

    /// Locks the mutex, waiting for as long as necessary. Blocks.
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn lock(&self) {
        let taking = self.taking();
        taking.lock(
            || self.0.lock_fast().ok(),
            || {
                if let Err(seen) = self.0.lock_fast() {
                    self.0.lock_contended(seen);
                }
            },
        );
        taking.taken();
    }

    /// Locks the mutex if that needs no waiting. Returns whether it did. Does not block.
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn try_lock(&self) -> bool {
        let taking = self.taking();
        taking.taken_if(self.0.try_lock())
    }

    /// Locks the mutex, waiting until `deadline` at the latest, on either clock. Returns whether it
    /// did. A free mutex is locked even if the deadline has passed.
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn lock_until(&self, deadline: Deadline) -> bool {
        self.lock_until_given(|| deadline)
    }

    /// [`lock_until`](Self::lock_until), with a deadline that is computed only if the mutex is not
    /// free.
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn lock_until_given(&self, deadline: impl FnOnce() -> Deadline) -> bool {
        let taking = self.taking();
        taking.taken_if(self.0.try_fast().is_ok() || self.0.lock_until(deadline()).is_ok())
    }

    /// Unlocks the mutex.
    ///
    /// # Safety
    /// The mutex is locked, by the calling thread or by one that has agreed to this unlock.
    #[inline]
    pub unsafe fn unlock(&self) {
        self.give_back();
        // SAFETY: forwards this function's own contract.
        unsafe { self.0.unlock() };
    }

    /// Unlocks the mutex and hands it to a waiter, if there is one: to the waiter that is awake for
    /// it, or else to the one that has waited longest. A thread that comes only now cannot take it
    /// first. Costs a wake-up during which no thread runs with the mutex. (A process-shared mutex
    /// is not handed off: the kernel keeps its queue.)
    ///
    /// # Safety
    /// As for [`unlock`](Self::unlock).
    #[inline]
    pub unsafe fn unlock_fair(&self) {
        self.give_back();
        // SAFETY: forwards this function's own contract.
        unsafe { self.0.unlock_fair() };
    }

    /// [`unlock_fair`](Self::unlock_fair) of a private mutex, which is free afterwards only if no
    /// thread was parked.
    ///
    /// # Safety
    /// As for [`unlock`](Self::unlock).
    #[inline]
    pub(super) unsafe fn hand_over(&self) {
        self.give_back();
        self.0.hand_over();
    }

    /// Hands the mutex to a waiter, as [`unlock_fair`](Self::unlock_fair) does, and locks it again
    /// after that waiter. Does nothing if no thread waits.
    ///
    /// # Safety
    /// As for [`unlock`](Self::unlock).
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub unsafe fn bump(&self) {
        self.while_given_back(|mutex| {
            // SAFETY: forwards this function's own contract.
            unsafe { mutex.bump() }
        });
    }

    /// Whether the mutex was held at the time of the call.
    #[inline]
    pub fn is_locked(&self) -> bool {
        self.0.is_locked()
    }

    /// Calls `wait`, which unlocks the mutex and locks it again. The calling thread holds the
    /// mutex.
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub(in crate::lock) fn while_given_back<R>(&self, wait: impl FnOnce(&RawPosixMutex) -> R) -> R {
        self.give_back();
        let taking = self.taking();
        let result = taking.wait(|| wait(&self.0));
        taking.taken();
        result
    }

    #[inline(always)]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn taking(&self) -> Taking {
        Taking::of(self, LockKind::Mutex, Way::Exclusive)
    }

    #[inline(always)]
    fn give_back(&self) {
        deadlock::give_back(self, Way::Exclusive);
    }
}

impl From<RawMutex> for RawPosixMutex {
    fn from(mutex: RawMutex) -> Self {
        mutex.0
    }
}

// SAFETY: a lock that returns has changed the word from free to LOCKED, or has been handed the
// mutex by the thread that held it. No other lock returns before the unlock: the flavours of
// `MutexOptions` have no owner that may lock the mutex again, and their lock cannot fail.
unsafe impl lock_api::RawMutex for RawMutex {
    // The trait asks for a constant; each use of it makes a new mutex.
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait's constant")]
    const INIT: Self = Self::new();

    // Either marker is sound: the mutex keeps no owner, and any thread may unlock it for the thread
    // that locked it.
    type GuardMarker = GuardMarker;

    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn lock(&self) {
        Self::lock(self);
    }

    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock(&self) -> bool {
        Self::try_lock(self)
    }

    #[inline]
    unsafe fn unlock(&self) {
        // SAFETY: the trait's contract: the caller holds the mutex.
        unsafe { Self::unlock(self) };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        Self::is_locked(self)
    }
}

// SAFETY: `unlock_fair` releases the lock as `unlock` does, to a waiter if there is one. `bump`
// does so too, and returns with the lock held.
unsafe impl lock_api::RawMutexFair for RawMutex {
    #[inline]
    unsafe fn unlock_fair(&self) {
        // SAFETY: the trait's contract: the caller holds the mutex.
        unsafe { Self::unlock_fair(self) };
    }

    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    unsafe fn bump(&self) {
        // SAFETY: the trait's contract: the caller holds the mutex.
        unsafe { Self::bump(self) };
    }
}

// SAFETY: both methods return true only with the lock taken, as by `lock`.
unsafe impl lock_api::RawMutexTimed for RawMutex {
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_for(&self, timeout: Duration) -> bool {
        self.lock_until_given(|| Deadline::after(timeout))
    }

    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn try_lock_until(&self, timeout: Instant) -> bool {
        self.lock_until_given(|| Deadline::from(timeout))
    }
}

/// Identifies threads, for [`ReentrantMutex`].
#[derive(Debug)]
pub struct RawThreadId;

// SAFETY: the trait requires that no two active threads have the same number, and allows the number
// of a thread that has ended to be reused. `HERE` lives in its thread's own storage for as long as
// the thread does, so active threads have it at different addresses. A thread may get the storage
// of a thread that has ended. If that thread never unlocked a mutex, the new thread counts as the
// holder. The old thread's borrows cannot be in use by any other thread, unless the value is Sync:
// guards are not Send. And what the old thread did to the value happened before its end, and so
// before its storage was reused.
unsafe impl lock_api::GetThreadId for RawThreadId {
    const INIT: Self = Self;

    fn nonzero_thread_id(&self) -> NonZeroUsize {
        thread_local! {
            static HERE: u8 = const { 0 };
        }
        HERE.with(|here| NonZeroUsize::MIN.saturating_add(core::ptr::from_ref(here).addr() - 1))
    }
}

/// A mutual-exclusion lock that decides by itself how to wait.
///
/// The interface is that of `lock_api`, and so of parking_lot: `lock`, `try_lock`, `try_lock_for`,
/// `try_lock_until`, fair unlocks, mapped guards; no poisoning. For other
/// [flavours](crate::PosixFlavour), see [`PosixMutexOptions`](crate::PosixMutexOptions).
///
/// ```
/// use std::sync::Arc;
/// use waitword::Mutex;
///
/// let total = Arc::new(Mutex::new(0));
/// let threads: Vec<_> = (0..4)
///     .map(|_| {
///         let total = total.clone();
///         std::thread::spawn(move || *total.lock() += 1)
///     })
///     .collect();
/// threads.into_iter().for_each(|thread| thread.join().unwrap());
/// assert_eq!(*total.lock(), 4);
/// ```
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;

/// Holds a [`Mutex`] until it is dropped.
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;

/// Holds a [`Mutex`] and gives access to a part of its data.
pub type MappedMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawMutex, T>;

/// A mutex that its holder may lock again; it gives shared access only.
///
/// It is for the threads of one process, even if it was made of a process-shared [`RawMutex`]. A
/// thread is identified by an address in its own storage. In a forked child that address is the
/// parent thread's, so each of the two would count as the holder where the other one is. For a
/// mutex that processes share and lock recursively, use a [`RawPosixMutex`](crate::RawPosixMutex)
/// of [`Kind::Recursive`](crate::Kind::Recursive). After a fork, a child may unlock what the
/// forking thread held, in its own copy.
///
/// ```
/// use std::cell::Cell;
/// use waitword::ReentrantMutex;
///
/// let depth = ReentrantMutex::new(Cell::new(0));
/// let outer = depth.lock();
/// depth.lock().set(1);
/// assert_eq!(outer.get(), 1);
/// ```
pub type ReentrantMutex<T> = lock_api::ReentrantMutex<RawMutex, RawThreadId, T>;

/// Holds a [`ReentrantMutex`] until it is dropped.
pub type ReentrantMutexGuard<'a, T> = lock_api::ReentrantMutexGuard<'a, RawMutex, RawThreadId, T>;

/// Holds a [`ReentrantMutex`] and gives access to a part of its data.
pub type MappedReentrantMutexGuard<'a, T> =
    lock_api::MappedReentrantMutexGuard<'a, RawMutex, RawThreadId, T>;

/// Creates a [`Mutex`] in a constant: parking_lot's name for [`Mutex::new`](lock_api::Mutex::new).
pub const fn const_mutex<T>(value: T) -> Mutex<T> {
    Mutex::from_raw(RawMutex::new(), value)
}

/// Creates a [`ReentrantMutex`] in a constant: parking_lot's name for
/// [`ReentrantMutex::new`](lock_api::ReentrantMutex::new).
pub const fn const_reentrant_mutex<T>(value: T) -> ReentrantMutex<T> {
    ReentrantMutex::from_raw(RawMutex::new(), RawThreadId, value)
}
