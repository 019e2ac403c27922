//! A lock for many readers or one writer, whose whole state is one 64-bit word.
//!
//! # The word
//!
//! How many readers hold it, or who writes; who waits; the preference and the scope; what was seen of its readers: all in one
//! word (`state.rs` has the table), so that each step is one compare-and-swap that sees everything. (Ulrich Drepper's 64-bit futexes,
//! 2008, were meant for just this.) All zeros is unlocked.
//!
//! # Who gets it
//!
//! Taking and giving back are one read-modify-write each while nobody waits (`fast.rs`). Who must wait spins a little and queues: for a
//! private lock in the process's table (`wait.rs`), where a release changes the word in one step with the queue and may hand the lock
//! over (`hand_over.rs`, whom and when: `policy.rs`); for a process-shared lock in the kernel (`kernel.rs`).
//!
//! | | reader preference (the default) | writer preference |
//! |---|---|---|
//! | a new reader waits | while somebody writes | also while a writer waits |
//! | reading again while one reads | always goes on | deadlocks if a writer has come meanwhile, except by the `recursive` calls |
//! | a leaving writer is followed by | all readers that wait; else a writer | a writer that waits; else all readers |
//! | barging | writers among themselves; readers among readers | writers among themselves |
//! | a class that waits | a writer's turn comes after 1 to 10 ms of waiting (100 µs while CPUs are idle): newcomers wait too, until it has had the lock | a reader's turn comes after 1 ms: all readers get the lock when the next writer leaves |
//!
//! What that guarantees stands at [`Preference`]. Real-time threads that wait come before all others, by priority (`rank.rs`).
//!
//! # Fast readers
//!
//! Readers of one lock on several CPUs are slow not because they wait but because each fetches the word's cache line from the last. Once
//! readers have collided in the word often, with no write in between, the lock becomes *fast* (`bias.rs`): its readers write it
//! down in slots of a process-wide table, each thread in a line of its own, and do not touch the word (`slots.rs`). A writer makes it slow again and waits
//! until the slots are empty.
//!
//! ```text
//!   a writer's way in                                state of the word
//!     nobody holds it, no slots                      → WRITER
//!     nobody holds it, but slots may stand           → CLAIMED, not FAST   (readers still come in, by the word)
//!        wait until all slots are empty              → CLAIMED, no SLOTS
//!        wait until the readers have left            → WRITER              (an upgradable reader goes the same way)
//!     somebody holds it                              queue
//! ```
//!
//! # Invariants
//!
//! 1. `WRITER` excludes readers, `CLAIMED`, `FAST` and `SLOTS`. `CLAIMED` belongs to one thread; only that one goes on to `WRITER` while readers may be there.
//! 2. `FAST` implies `SLOTS`, and nobody who waits to write (whoever announces that clears it).
//! 3. A bit that says that somebody of a private lock waits is set and cleared under the bucket's lock, exactly; copies from before a fork are
//!    cleared by whoever looks and finds nobody.
//! 4. A release touches the lock last in the read-modify-write that gives it back, or under the bucket's lock. Whoever has the lock next may free it.
//!    (What is touched later: a slot, the table, the kernel's queue, by address.)
//! 5. Under reader preference, readers are queued only while somebody writes or has the turn.
//!
//! # Orderings
//!
//! Taking acquires, giving back releases. A release that hands over does both: what the readers did who left before it
//! passes through it to the writer. Slots: see `slots.rs`; its two fences are the only ones.

mod bias;
#[cfg(all(test, not(loom)))]
mod bias_tests;
mod error;
mod fast;
mod hand_over;
mod kernel;
mod policy;
mod posix;
mod rank;
mod slots;
mod state;
#[cfg(all(test, not(loom)))]
mod tests;
#[cfg(not(loom))]
mod traits;
#[cfg(all(test, not(loom)))]
mod turn_tests;
mod upgrade;
mod wait;

pub use error::RwLockError;
#[cfg(not(loom))]
pub use traits::{
    MappedRwLockReadGuard, MappedRwLockWriteGuard, RwLock, RwLockOptions, RwLockReadGuard,
    RwLockUpgradableReadGuard, RwLockWriteGuard, const_rwlock,
};

use crate::atomic::AtomicU64;
use crate::futex::Scope;
use state::{PREFER_WRITER, SHARED, State};

/// Whom a [`RawRwLock`] prefers: readers, or writers. Decided when it is made.
///
/// Neither class starves under either: a thread that has waited for 1 to 10 ms asks for a turn, after which newcomers queue
/// up behind, and the lock goes to whoever has waited longest. (How soon after, depends on how long the sections are.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Preference {
    /// POSIX's default, glibc's `PTHREAD_RWLOCK_PREFER_READER_NP`, and the default here. A reader waits only while somebody writes.
    ///
    /// Reading again while one reads **never deadlocks**, whoever waits. When a writer has its turn, a reader that comes is held
    /// back, but never for longer than that writer has waited so far (100 µs at first if CPUs are idle, else 1 to 4 ms; then twice as long each time, at most 8.2 s); a turn that brings the writer no luck ends
    /// so, and the next lasts twice as long. So the writer has the lock at the latest soon after it has waited twice as long as the longest
    /// section of a reader, and a reader that read already has waited in vain, but not for ever.
    #[default]
    Reader,
    /// glibc's `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`. A reader waits also while a writer waits.
    ///
    /// A thread that reads and asks to read again **deadlocks** if a writer has begun to wait in between; the `recursive` calls of
    /// `lock_api` exist for that: they wait only while somebody writes. Readers that have waited for 1 ms get the lock, all of them together, when the next
    /// writer leaves.
    Writer,
}

/// A lock for many readers or one writer, without the data. 8 bytes; all zeros is unlocked, private, and prefers readers.
///
/// It implements [`lock_api`]'s traits, and [`RwLock`](crate::RwLock) is what most programs want. What POSIX asks for (errors, absolute
/// deadlines on either clock, one `unlock` for both) are methods of its own.
///
/// * **Fork.** A child has the lock as its parent had it at that moment: held, if it was. What the word says of threads that waited is not true
///   in the child and puts itself right.
/// * **Signal handlers** must not use it.
/// * It may be freed by whoever took it last, right after giving it back, also while others' calls that give it back are still on their way
///   out.
/// * Scope [`Shared`](Scope::Shared): may lie in memory that several processes map. A process that is killed while it *waits* does no harm; one
///   that is killed while it holds the lock leaves it held.
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
/// // SAFETY: taken twice above.
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

/// What somebody waits for who is no reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    /// To write, and to be known by this number, if it is not 0.
    Write(u32),
    /// To hold the lock upgradably.
    Claim,
}

impl RawRwLock {
    /// An unlocked private lock of the default preference: all zeros.
    #[cfg(not(loom))]
    #[inline]
    pub const fn new() -> Self {
        Self::with(Preference::Reader, Scope::Private)
    }

    /// An unlocked lock of the default preference.
    #[cfg(not(loom))]
    #[inline]
    pub const fn with_scope(scope: Scope) -> Self {
        Self::with(Preference::Reader, scope)
    }

    /// An unlocked lock.
    #[cfg(not(loom))]
    #[inline]
    pub const fn with(preference: Preference, scope: Scope) -> Self {
        Self {
            word: AtomicU64::new(kind(preference, scope)),
        }
    }

    /// An unlocked lock.
    #[cfg(loom)]
    pub fn with(preference: Preference, scope: Scope) -> Self {
        Self {
            word: AtomicU64::new(kind(preference, scope)),
        }
    }

    /// Whom it prefers.
    #[inline]
    pub fn preference(&self) -> Preference {
        match self.state().prefers_writers() {
            true => Preference::Writer,
            false => Preference::Reader,
        }
    }

    /// Who can use it.
    #[inline]
    pub fn scope(&self) -> Scope {
        match self.state().is_shared() {
            true => Scope::Shared,
            false => Scope::Private,
        }
    }

    /// Whether nobody holds it and nobody waits for it: what `pthread_rwlock_destroy` may ask before it says `EBUSY`. True only of
    /// that moment, if others can still come. Of a process-shared one it may be false for those who have given up, until it has been
    /// given back again, once for the readers and once for the writers among them.
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

/// What models reach that are not `lock_api`'s callers.
#[cfg(loom)]
impl RawRwLock {
    /// Makes it fast, as readers that collide would.
    pub(crate) fn become_fast(&self, number: u32) {
        assert!(self.try_to_become_fast(number));
    }

    /// The same where others may be in its way; whether it is fast now.
    pub(crate) fn try_to_become_fast(&self, number: u32) -> bool {
        let state = self.state();
        let fast = state.biased(number);
        state.may_become_fast() && self.replace(state, fast, crate::atomic::Ordering::Relaxed)
    }

    /// Whether a writer has queued.
    pub(crate) fn keeps_a_writer_waiting(&self) -> bool {
        self.state().has(state::WRITERS_WAIT)
    }

    /// As a word from before a fork would say.
    pub(crate) fn pretend_that_a_writer_waits(&self) {
        self.word
            .fetch_or(state::WRITERS_WAIT, crate::atomic::Ordering::Relaxed);
    }

    /// As the drop of a reader's guard.
    pub(crate) fn unlock_shared(&self) {
        self.release_shared();
    }

    pub(crate) fn unlock_shared_fairly(&self) {
        self.release_fairly(state::Release::Reader);
    }

    /// Takes it upgradably.
    pub(crate) fn claim(&self) -> bool {
        self.acquire_upgradable(None).is_ok()
    }

    /// From the claim to the lock.
    pub(crate) fn upgrade_claim(
        &self,
        deadline: Option<&crate::Deadline>,
    ) -> Result<(), RwLockError> {
        self.become_writer(0, deadline)
    }

    pub(crate) fn release_claim_of_model(&self) {
        self.release_upgradable();
    }

    /// From writing to reading.
    pub(crate) fn become_reader(&self) {
        self.release_exclusive_to(state::Release::WriterToReader);
    }
}
