//! The mutex for Rust: a raw mutex that cannot fail, and on it the types that parking_lot has.
//!
//! [`lock_api`] asks of a raw mutex that a lock which returns has been taken, alone, until the
//! unlock. A mutex that may refuse (error-checking, priority-inheriting) or that lets its owner in
//! again (recursive) does not keep that, and must not reach `lock_api`, whose constructors are
//! safe. So [`RawMutex`] is a type of its own, which only the flavours that keep it can make. The
//! others: [`CheckedMutex`](crate::CheckedMutex), [`PiMutex`](crate::PiMutex), [`ReentrantMutex`].

use super::{PosixFlavour, PosixMutexOptions, RawPosixMutex};
use crate::deadlock::{self, LockKind, Taking, Way};
use crate::futex::Scope;
use crate::lock::GuardMarker;
use crate::sys::clock::Deadline;
use core::num::NonZeroUsize;
use core::time::Duration;
use std::time::Instant;

/// How threads wait for a mutex. (The flavours of Waiman Long's TO futexes, 2016, and one that
/// makes choosing unnecessary.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Flavour {
    /// Chooses for itself, from what it observes, whether to spin, to sleep, and to hand over: the
    /// one to use unless a measurement says otherwise.
    #[default]
    Adaptive,
    /// A running thread may take the lock past sleepers, waiters stay awake for some µs, and a
    /// thread that has waited long is handed the lock.
    Throughput,
    /// Sleeps at once. For sections that are long or sleep. A waiter may be passed over without
    /// bound.
    WaitWake,
}

/// What mutex to make.
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
    /// Adaptive and private.
    pub const fn new() -> Self {
        Self {
            options: PosixMutexOptions::new(),
        }
    }

    /// How threads wait for it.
    pub const fn flavour(self, flavour: Flavour) -> Self {
        let flavour = match flavour {
            Flavour::Adaptive => PosixFlavour::Adaptive,
            Flavour::Throughput => PosixFlavour::Throughput,
            Flavour::WaitWake => PosixFlavour::WaitWake,
        };
        Self {
            options: self.options.flavour(flavour),
        }
    }

    /// Whether threads of other processes, in whose memory it lies too, lock it.
    pub const fn scope(self, scope: Scope) -> Self {
        Self {
            options: self.options.scope(scope),
        }
    }

    /// The same options, for a mutex of a kind that Rust's [`Mutex`] cannot be.
    pub const fn posix(self) -> PosixMutexOptions {
        self.options
    }

    /// Such a mutex, free, without data.
    pub const fn build_raw(self) -> RawMutex {
        RawMutex(self.options.build_raw())
    }

    /// Such a mutex, free, around a value.
    pub const fn build<T>(self, value: T) -> Mutex<T> {
        Mutex::from_raw(self.build_raw(), value)
    }
}

/// A mutex without the data that it protects, whose lock always succeeds: what [`Mutex`] stands on.
///
/// Eight bytes, no destructor. It may be freed as soon as it is locked and unlocked for the last
/// time: an unlock does not touch it after another thread can lock it. Not for signal handlers.
/// After `fork`, the child's copy is held if any thread of the parent held it; a child may unlock
/// what the forking thread held.
///
/// For one that checks its owner, is recursive, or inherits priorities: [`RawPosixMutex`].
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
    /// A free one: adaptive and private. For others: [`MutexOptions::build_raw`].
    #[inline]
    pub const fn new() -> Self {
        MutexOptions::new().build_raw()
    }

    /// Takes it, waiting as long as it needs. Blocks.
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn lock(&self) {
        let taking = self.taking();
        taking.lock(
            || self.0.lock_fast().ok(),
            || {
                if let Err(seen) = self.0.lock_fast() {
                    self.0.lock_unowned(seen);
                }
            },
        );
        taking.taken();
    }

    /// Takes it if that needs no waiting; whether it did. Does not block.
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn try_lock(&self) -> bool {
        let taking = self.taking();
        taking.taken_if(match self.0.try_fast() {
            Ok(()) => true,
            Err(seen) => self.0.try_lock_unowned(seen),
        })
    }

    /// Takes it, waiting until `deadline` at the latest, on either clock; whether it did. A free
    /// lock is taken whatever the deadline.
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub fn lock_until(&self, deadline: Deadline) -> bool {
        self.lock_until_given(|| deadline)
    }

    /// The deadline is asked for only if the lock is not free.
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    fn lock_until_given(&self, deadline: impl FnOnce() -> Deadline) -> bool {
        let taking = self.taking();
        taking.taken_if(self.0.try_fast().is_ok() || self.0.lock_unowned_until(&deadline()))
    }

    /// Gives it back.
    ///
    /// # Safety
    /// It is locked, by the calling thread or by one that has agreed to this unlock.
    #[inline]
    pub unsafe fn unlock(&self) {
        self.give_back();
        // SAFETY: forwards this function's own contract.
        unsafe { self.0.unlock() };
    }

    /// Gives it to the thread that has waited longest, or to one that is awake for it, if any
    /// waits, instead of letting a thread take it that comes only now. Costs a wake-up during which
    /// no thread has it. (A process-shared one is not handed over: the kernel keeps its queue.)
    ///
    /// # Safety
    /// As [`unlock`](Self::unlock).
    #[inline]
    pub unsafe fn unlock_fair(&self) {
        self.give_back();
        // SAFETY: forwards this function's own contract.
        unsafe { self.0.unlock_fair() };
    }

    /// [`unlock_fair`](Self::unlock_fair) of a private one, which is free afterwards only if no
    /// thread was parked.
    ///
    /// # Safety
    /// As [`unlock`](Self::unlock).
    #[inline]
    pub(super) unsafe fn hand_over(&self) {
        self.give_back();
        self.0.hand_over();
    }

    /// Hands it to a thread that waits, as [`unlock_fair`](Self::unlock_fair) does, and takes it
    /// again behind that. Does nothing if no thread waits.
    ///
    /// # Safety
    /// As [`unlock`](Self::unlock).
    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    pub unsafe fn bump(&self) {
        self.while_given_back(|mutex| {
            // SAFETY: forwards this function's own contract.
            unsafe { mutex.bump() }
        });
    }

    /// Whether it was held just now.
    #[inline]
    pub fn is_locked(&self) -> bool {
        self.0.is_locked()
    }

    /// Calls `wait`, which gives the mutex back and takes it again. The calling thread holds it.
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

// SAFETY: a lock that returns has changed the word from free to LOCKED, or was handed it by the
// thread that held it, and no other does before the unlock: the flavours that `MutexOptions` can
// name have neither an owner that may come in again nor a lock that fails.
unsafe impl lock_api::RawMutex for RawMutex {
    // A constant is what the trait asks for; each use of it makes a new mutex.
    #[allow(
        clippy::declare_interior_mutable_const,
        reason = "the trait's constant"
    )]
    const INIT: Self = Self::new();

    // Sound either way: the mutex keeps no owner, and any thread may unlock it for the one that
    // locked.
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
        // SAFETY: the trait's contract: the caller holds it.
        unsafe { Self::unlock(self) };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        Self::is_locked(self)
    }
}

// SAFETY: both release the lock exactly as `unlock` does, to a waiter if there is one; `bump`
// returns with the lock held.
unsafe impl lock_api::RawMutexFair for RawMutex {
    #[inline]
    unsafe fn unlock_fair(&self) {
        // SAFETY: the trait's contract: the caller holds it.
        unsafe { Self::unlock_fair(self) };
    }

    #[inline]
    #[cfg_attr(feature = "deadlock_detection", track_caller)]
    unsafe fn bump(&self) {
        // SAFETY: the trait's contract: the caller holds it.
        unsafe { Self::bump(self) };
    }
}

// SAFETY: true is returned only with the lock taken, as by `lock`.
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

/// Tells threads apart, for [`ReentrantMutex`].
#[derive(Debug)]
pub struct RawThreadId;

// SAFETY: the trait asks that no two active threads have the same number, and allows the number of
// one that has ended to be used again. `HERE` lives in its thread's own storage as long as the
// thread does, so active threads have theirs at different addresses.
// A thread that is given an ended one's storage, and with it a mutex that the other never unlocked,
// is taken for its holder. The other's borrows cannot be in other hands, unless the value is Sync:
// guards are not Send. And what it did to the value came before its end, and so before the storage
// was given to another.
unsafe impl lock_api::GetThreadId for RawThreadId {
    const INIT: Self = Self;

    fn nonzero_thread_id(&self) -> NonZeroUsize {
        thread_local! {
            static HERE: u8 = const { 0 };
        }
        HERE.with(|here| NonZeroUsize::MIN.saturating_add(core::ptr::from_ref(here).addr() - 1))
    }
}

/// A mutual-exclusion lock that chooses for itself how to wait.
///
/// The interface is `lock_api`'s, and so parking_lot's: `lock`, `try_lock`, `try_lock_for`,
/// `try_lock_until`, fair unlocks, mapped guards; no poisoning. Other
/// [flavours](crate::PosixFlavour): [`PosixMutexOptions`](crate::PosixMutexOptions).
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

/// Holds a [`Mutex`] for a part of what it protects.
pub type MappedMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawMutex, T>;

/// A mutex that its holder may lock again; it gives shared access only.
///
/// It is for the threads of one process, even if it was made of a process-shared [`RawMutex`]. A
/// thread is known by an address in its own storage. In a forked child that address is the parent
/// thread's, so each would be taken for the holder where the other is. What processes share and
/// lock recursively is a [`RawPosixMutex`](crate::RawPosixMutex) of
/// [`Kind::Recursive`](crate::Kind::Recursive). After a fork, a child may unlock what the forking
/// thread held, in its own copy.
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

/// Holds a [`ReentrantMutex`] for a part of what it protects.
pub type MappedReentrantMutexGuard<'a, T> =
    lock_api::MappedReentrantMutexGuard<'a, RawMutex, RawThreadId, T>;

/// A [`Mutex`] in a constant: parking_lot's name for [`Mutex::new`](lock_api::Mutex::new).
pub const fn const_mutex<T>(value: T) -> Mutex<T> {
    Mutex::from_raw(RawMutex::new(), value)
}

/// A [`ReentrantMutex`] in a constant: parking_lot's name for
/// [`ReentrantMutex::new`](lock_api::ReentrantMutex::new).
pub const fn const_reentrant_mutex<T>(value: T) -> ReentrantMutex<T> {
    ReentrantMutex::from_raw(RawMutex::new(), RawThreadId, value)
}
