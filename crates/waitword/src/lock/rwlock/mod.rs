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
//! While no thread waits, an acquire and a release are one read-modify-write each (`fast.rs`). A
//! thread that must wait spins for a while and then queues:
//!
//! * in the process's waiter table, for a private lock (`private.rs`). A release changes the word
//!   in one step with the queue and may hand the lock off (`hand_over.rs`; `policy.rs` decides
//!   when, and to which waiter);
//! * in the kernel, for a process-shared lock (`shared.rs`).
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
//! write in between, the lock becomes *biased* towards readers (`bias.rs`). Its readers then
//! publish themselves in the slots of a process-wide table, each thread in a cache line of its own,
//! and do not touch the word (`slots.rs`). A writer revokes the bias and waits until the slots are
//! empty.
//!
//! ```text
//!   how a writer acquires the lock          the word
//!     free, no SLOTS                        → WRITER
//!     free, but SLOTS                       → CLAIMED, no FAST   (readers still enter by the word)
//!        wait until all slots are empty     → CLAIMED, no SLOTS
//!        wait until the readers have left   → WRITER             (an upgrade takes the same steps)
//!     held                                    queue
//! ```
//!
//! # Invariants
//!
//! 1. `WRITER` excludes readers, `CLAIMED`, `FAST` and `SLOTS`. `CLAIMED` belongs to one thread.
//!    While there may be readers, only that thread can go on to `WRITER`.
//! 2. `FAST` implies `SLOTS`, and that no writer waits: a writer that announces itself clears
//!    `FAST`.
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
//! protocol, explained in `slots.rs`.

#[cfg(not(loom))]
mod api;
mod bias;
#[cfg(all(test, not(loom)))]
mod bias_tests;
mod error;
mod fast;
mod hand_over;
mod policy;
mod posix;
mod private;
mod rank;
mod shared;
mod slots;
#[cfg(all(test, not(loom)))]
mod tests;
#[cfg(all(test, not(loom)))]
mod turn_tests;
mod upgrade;
mod word;

#[cfg(not(loom))]
pub use api::{
    MappedRwLockReadGuard, MappedRwLockWriteGuard, RwLock, RwLockOptions, RwLockReadGuard,
    RwLockUpgradableReadGuard, RwLockWriteGuard, const_rwlock,
};
pub use error::RwLockError;

use crate::atomic::AtomicU64;
use crate::futex::Scope;
use word::{PREFER_WRITER, SHARED, State};

/// Which class of threads a [`RawRwLock`] prefers: readers or writers. Fixed when the lock is
/// created.
///
/// Neither class starves under either preference. A thread that has waited for 0.1 to 10 ms asks
/// for a turn. After that, newcomers queue behind it, and the lock goes to the thread that has
/// waited longest. (How soon depends on the length of the critical sections.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Preference {
    /// POSIX's default, glibc's `PTHREAD_RWLOCK_PREFER_READER_NP`, and the default here. A reader
    /// waits only while a writer holds the lock.
    ///
    /// A recursive read **never deadlocks**, whichever threads wait. While a writer has its turn, a
    /// new reader is held back, but never for longer than that writer has waited so far: 100 µs at
    /// first if CPUs are idle, else 1 to 4 ms; then twice as long each time, at most 8.2 s. If the
    /// writer does not get the lock within its turn, the turn ends, and the next one lasts twice as
    /// long. So the writer gets the lock at the latest soon after it has waited twice as long as
    /// the longest section of a reader. A reader that already holds the lock has then waited in
    /// vain, but not forever.
    #[default]
    Reader,
    /// glibc's `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`. A reader also waits while a writer
    /// waits.
    ///
    /// A thread that holds the lock for reading and acquires it again **deadlocks** if a writer has
    /// begun to wait in between. Use the `recursive` calls of `lock_api` for that: they wait only
    /// while a writer holds the lock. Once readers have waited for 1 ms, all of them together get
    /// the lock when the next writer leaves.
    Writer,
}

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
    Claim,
}

impl RawRwLock {
    /// Creates an unlocked private lock with the default preference: all zeros.
    #[cfg(not(loom))]
    #[inline]
    pub const fn new() -> Self {
        Self::with(Preference::Reader, Scope::Private)
    }

    /// Creates an unlocked lock with the default preference.
    #[cfg(not(loom))]
    #[inline]
    pub const fn with_scope(scope: Scope) -> Self {
        Self::with(Preference::Reader, scope)
    }

    /// Creates an unlocked lock.
    #[cfg(not(loom))]
    #[inline]
    pub const fn with(preference: Preference, scope: Scope) -> Self {
        Self {
            word: AtomicU64::new(kind(preference, scope)),
        }
    }

    /// Creates an unlocked lock.
    #[cfg(loom)]
    pub fn with(preference: Preference, scope: Scope) -> Self {
        Self {
            word: AtomicU64::new(kind(preference, scope)),
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
        self.is_untouched()
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

#[cfg(not(loom))]
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

/// What models need beyond `lock_api`.
#[cfg(loom)]
impl RawRwLock {
    /// Makes the lock biased, as colliding readers would.
    pub(crate) fn become_fast(&self, number: u32) {
        assert!(self.try_to_become_fast(number));
    }

    /// The same while other threads may interfere. Returns whether the lock is biased now.
    pub(crate) fn try_to_become_fast(&self, number: u32) -> bool {
        let state = self.state();
        let fast = state.biased(number);
        state.may_become_fast() && self.replace(state, fast, crate::atomic::Ordering::Relaxed)
    }

    /// Whether a writer is queued.
    pub(crate) fn keeps_a_writer_waiting(&self) -> bool {
        self.state().has(word::WRITERS_WAIT)
    }

    /// Sets a stale bit, as in a word copied by a fork.
    pub(crate) fn pretend_that_a_writer_waits(&self) {
        self.word
            .fetch_or(word::WRITERS_WAIT, crate::atomic::Ordering::Relaxed);
    }

    /// The same as dropping a reader's guard.
    pub(crate) fn unlock_shared(&self) {
        self.release_shared();
    }

    pub(crate) fn unlock_shared_fairly(&self) {
        self.release_fairly(word::Release::Reader);
    }

    /// Acquires the upgradable lock.
    pub(crate) fn claim(&self) -> bool {
        self.acquire_upgradable(None).is_ok()
    }

    /// Upgrades to writing.
    pub(crate) fn upgrade_claim(
        &self,
        deadline: Option<&crate::Deadline>,
    ) -> Result<(), RwLockError> {
        self.become_writer(0, deadline)
    }

    pub(crate) fn release_claim_of_model(&self) {
        self.release_upgradable();
    }

    /// Downgrades from writing to reading.
    pub(crate) fn become_reader(&self) {
        self.release_exclusive_to(word::Release::WriterToReader);
    }
}
