//! A readers-writer lock whose whole state is one 64-bit word.
//!
//! # Implementation
//!
//! ## State
//!
//! The word holds the number of readers or the writer's owner, the waiter bits, the preference, the
//! scope, and statistics about readers (`word.rs` has the table). So each step is one
//! compare-and-swap that sees all of it. (Ulrich Drepper proposed 64-bit futexes in 2008 for just
//! this purpose.) All zeros is unlocked.
//!
//! ## Acquire and release
//!
//! While no thread waits, an acquire and a release are one read-modify-write each
//! (`uncontended.rs`; `read.rs`, `write.rs` and `upgrade.rs` have the steps around it). A thread
//! that must wait spins for a while and then queues:
//!
//! * in the process's waiter table, for a private lock (`private.rs`, `waiter.rs`). A release
//!   changes the word in one step with the queue and may hand the lock off (`hand_off.rs`);
//! * in the kernel, for a process-shared lock (`shared.rs`, `kernel_queue.rs`).
//!
//! `policy.rs` has every decision: which waiters are served, when one gets its turn, when the lock
//! is biased.
//!
//! | | reader preference (the default) | writer preference |
//! |---|---|---|
//! | a new reader waits | while a writer holds the lock | also while a writer waits |
//! | recursive read | never deadlocks | deadlocks if a writer has begun to wait (1) |
//! | a writer's release serves | all readers, else a writer | a writer, else all readers |
//! | barging | writer past writer, reader past reader | writer past writer |
//! | anti-starvation | a writer gets its turn (2) | the readers get their turn (3) |
//!
//! 1. Except through the `recursive` calls.
//! 2. After 1 to 10 ms of waiting (100 µs while CPUs are idle), newcomers wait too, until the
//!    writer has had the lock.
//! 3. After a reader has waited for 1 ms, all readers get the lock when the next writer leaves.
//!
//! [`Preference`] states what this guarantees. Waiting real-time threads are served before all
//! others, by priority (`rank.rs`).
//!
//! ## Reader bias
//!
//! Readers on several CPUs are slow not because they wait, but because each of them fetches the
//! word's cache line from the previous one. Once readers have often collided on the word with no
//! write in between, the lock becomes *biased* towards readers (`policy.rs`). Its readers then
//! publish themselves in the slots of a process-wide table, each thread in a cache line of its own,
//! and do not touch the word (`visible_readers.rs`). A writer revokes the bias and waits until the
//! slots are empty.
//!
//! ```text
//!   how a writer acquires the lock          the word
//!     free, no SLOTS                        → WRITER
//!     free, but SLOTS                       → UPGRADABLE, no BIASED  (readers enter by the word)
//!        wait until all slots are empty     → UPGRADABLE, no SLOTS
//!        wait until the readers have left   → WRITER          (an upgrade takes the same steps)
//!     held                                    queue
//! ```
//!
//! # Invariants
//!
//! 1. `WRITER` excludes readers, `UPGRADABLE`, `BIASED` and `SLOTS`. `UPGRADABLE` belongs to one
//!    thread. While there may be readers, only that thread can go on to `WRITER`.
//! 2. `BIASED` implies `SLOTS`, and that no writer waits: a writer that announces itself clears
//!    `BIASED`.
//! 3. In a private lock, `READERS_WAIT` and `WRITERS_WAIT` are exact: they are set and cleared
//!    under the bucket lock. Copies from before a fork are cleared by the first thread that looks
//!    at the queue and finds it empty.
//! 4. A release touches the lock for the last time in the read-modify-write that releases it, or
//!    under the bucket lock. So the next holder may free the lock at once. (Only a slot, the waiter
//!    table and the kernel's queue are touched later, and the queues are found by address.)
//! 5. Under reader preference, readers queue only while a writer holds the lock or a thread has the
//!    turn.
//!
//! # Memory orderings
//!
//! Acquiring the lock uses `Acquire`, releasing it uses `Release`. A hand-off uses both: it makes
//! what the earlier readers did visible to the writer. The only full fences are the two of the slot
//! protocol, explained in `visible_readers.rs`.

#[cfg(not(loom))]
mod api;
mod bias;
mod biased;
#[cfg(all(test, not(loom)))]
mod biased_tests;
mod error;
#[cfg(loom)]
mod for_models;
mod hand_off;
mod kernel_queue;
mod policy;
#[cfg(all(test, not(loom)))]
mod policy_tests;
mod posix;
mod preference;
mod private;
mod rank;
mod read;
mod revocation;
mod shared;
mod slot_table;
mod surroundings;
#[cfg(all(test, not(loom)))]
mod tests;
#[cfg(all(test, not(loom)))]
mod turn_tests;
mod uncontended;
mod upgrade;
mod visible_readers;
#[cfg(all(test, not(loom)))]
mod visible_readers_tests;
mod waiter;
mod word;
mod write;

#[cfg(not(loom))]
pub use api::{
    MappedRwLockReadGuard, MappedRwLockWriteGuard, RwLock, RwLockOptions, RwLockReadGuard,
    RwLockUpgradableReadGuard, RwLockWriteGuard, const_rwlock,
};
pub use error::RwLockError;
pub use preference::Preference;
#[cfg(loom)]
pub(crate) use surroundings::let_timers_fire;

use crate::atomic::AtomicU64;
use crate::atomic::Ordering::Relaxed;
use crate::futex::Scope;
use crate::lock::const_fn::const_fn;
use slot_table::Key;
use word::{PREFER_WRITER, READERS_WAIT, SHARED, SLOTS, State, UPGRADE_WAITS, WOKEN, WRITERS_WAIT};

/// A readers-writer lock without the data. 8 bytes; all zeros is unlocked, private, and prefers
/// readers.
///
/// It implements the traits of [`lock_api`]. Most programs want [`RwLock`](crate::RwLock) instead.
/// What POSIX requires beyond those traits (errors, absolute deadlines on either clock, one
/// `unlock` for both modes) is in inherent methods.
///
/// * **Fork.** A child gets the lock in the state that it had in the parent: held, if it was held.
///   What the word records about waiting threads is no longer true in the child, and corrects
///   itself.
/// * **Signal handlers** must not use it.
/// * **Freeing.** The thread that acquired the lock last may free it right after releasing it, even
///   while other threads are still returning from their release.
/// * **Scope [`Shared`](Scope::Shared).** The lock may lie in memory that several processes map. A
///   process that is killed while it *waits* does no harm. One that is killed while it holds the
///   lock leaves it held.
///
/// ```
/// use waitword::{Preference, RawRwLock, Scope};
/// use waitword::lock_api::RawRwLock as _;
///
/// static LOCK: RawRwLock = RawRwLock::with(Preference::Writer, Scope::Private);
///
/// LOCK.lock_shared();
/// assert!(LOCK.try_lock_shared());
/// assert!(!LOCK.try_lock_exclusive());
/// // SAFETY: acquired twice above.
/// unsafe {
///     LOCK.unlock_shared();
///     LOCK.unlock_shared();
/// }
/// assert!(LOCK.is_idle());
/// ```
#[repr(C)]
pub struct RawRwLock {
    word: AtomicU64,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<RawRwLock>() == 8 && align_of::<RawRwLock>() == 8);

/// What a waiter other than a reader wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    /// To write. The number identifies the writer, if it is not 0.
    Write(u32),
    /// To hold the upgradable lock.
    ReadUpgradably,
}

impl RawRwLock {
    const_fn! {
        /// Creates an unlocked private lock with the default preference: all zeros.
        #[inline]
        pub const fn new() -> Self {
            Self::with(Preference::Reader, Scope::Private)
        }
    }

    const_fn! {
        /// Creates an unlocked lock with the default preference.
        #[inline]
        pub const fn with_scope(scope: Scope) -> Self {
            Self::with(Preference::Reader, scope)
        }
    }

    const_fn! {
        /// Creates an unlocked lock.
        #[inline]
        pub const fn with(preference: Preference, scope: Scope) -> Self {
            Self {
                word: AtomicU64::new(kind(preference, scope)),
            }
        }
    }

    /// Returns the class of threads that the lock prefers.
    #[inline]
    pub fn preference(&self) -> Preference {
        match self.state().prefers_writers() {
            true => Preference::Writer,
            false => Preference::Reader,
        }
    }

    /// Returns which threads can use the lock: those of one process, or of several.
    #[inline]
    pub fn scope(&self) -> Scope {
        match self.state().is_shared() {
            true => Scope::Shared,
            false => Scope::Private,
        }
    }

    /// Returns whether the lock is neither held nor waited for. `pthread_rwlock_destroy` may ask
    /// this before it returns `EBUSY`.
    ///
    /// The answer is a snapshot if other threads can still use the lock. For a process-shared lock
    /// it may be `false` because of waiters that have given up, until the lock has been released
    /// again: once for the readers among them, and once for the writers.
    pub fn is_idle(&self) -> bool {
        const WAITING: u64 = READERS_WAIT | WRITERS_WAIT | UPGRADE_WAITS | WOKEN;
        !self.is_held() && !self.state().has(WAITING)
    }

    /// Whether any thread holds the lock.
    fn is_held(&self) -> bool {
        let state = self.state();
        !state.is_free() || state.has(SLOTS) && visible_readers::any(self.key(state))
    }

    #[inline]
    fn state(&self) -> State {
        // Relaxed: a thread that acts on the value does so by a read-modify-write with its own
        // ordering.
        State(self.word.load(Relaxed))
    }

    /// Replaces `seen` by `new` if the word has not changed.
    #[inline]
    fn replace(&self, seen: State, new: State, order: crate::atomic::Ordering) -> bool {
        self.word.compare_exchange(seen.0, new.0, order, Relaxed).is_ok()
    }

    #[inline]
    fn address(&self) -> usize {
        (&raw const self.word).addr()
    }

    /// The key that a reader of this lock publishes under the bias in `state`.
    #[inline]
    fn key(&self, state: State) -> Key {
        Key::new(self.address(), state)
    }
}

const fn kind(preference: Preference, scope: Scope) -> u64 {
    let preference = match preference {
        Preference::Reader => 0,
        Preference::Writer => PREFER_WRITER,
    };
    let scope = match scope {
        Scope::Private => 0,
        Scope::Shared => SHARED,
    };
    preference | scope
}

impl Default for RawRwLock {
    fn default() -> Self {
        Self::new()
    }
}

impl core::fmt::Debug for RawRwLock {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let state: State = self.state();
        f.debug_tuple("RawRwLock").field(&state).finish()
    }
}
