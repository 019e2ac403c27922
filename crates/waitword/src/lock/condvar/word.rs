//! The condvar's sixteen bytes: what each field and bit means.
//!
//! | offset | name | `private.rs` | `priority.rs` | `shared.rs` |
//! |--------|------|-----------|---------------|-------------|
//! | 0 | `mutex` | the waiters' mutex; 0: none | BY_PRIORITY | low half: `relay`; high: count |
//! | 8 | `sequence` | | counts signals; waiters sleep on it | the same |
//! | 12 | `traits` | | | SHARED |
//!
//! In `shared.rs`, `relay` is the word to which a broadcast moves waiters, and the high half counts
//! the waiters. All zeros is a private condvar without waiters.
//!
//! # The binding of a private condvar
//!
//! `mutex` alone tells where the waiters of a private condvar are, so that a signaller always
//! interprets the address correctly, whenever it reads it:
//!
//! | bit 0, BY_PRIORITY | bit 1 | the other bits |
//! |---|---|---|
//! | 0 | KEPT: waiters cannot be moved to the mutex's queue (`private.rs`) | the mutex |
//! | 1 | 0 | 0 |
//!
//! Without BY_PRIORITY, `mutex` is nonzero if and only if a waiter is queued in the table, and it
//! changes only under the bucket lock. The exception is a child of `fork`, where it may name a
//! mutex for which no thread waits. With BY_PRIORITY, it does not tell whether threads wait, and
//! the next thread that waits in the table overwrites it.

use crate::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::futex::Scope;
use crate::lock::LockError;
use crate::lock::const_fn::const_fn;

/// A condition variable that does not know what its mutex protects. [`Condvar`](crate::Condvar) and
/// the C API's `ww_cond_t` are built on it.
///
/// Waiters are signalled in order of arrival, except that threads under a real-time scheduling
/// policy come first, by priority. A signal or broadcast that finds the mutex held wakes no thread:
/// it moves the waiters to the mutex, whose unlocks wake them one by one. (With a
/// priority-inheriting mutex, each signal wakes a waiter, the highest priority first.)
///
/// Sixteen bytes, no destructor. All bytes zero is a private condvar without waiters. A private one
/// may be freed as soon as all waiters have been signalled: threads on their way back do not touch
/// it. A process-shared one must be [destroyed](Self::destroy) first.
///
/// Not for signal handlers. In a child of `fork` there are no waiters.
#[repr(C)]
#[derive(Debug)]
pub struct RawCondvar {
    pub(super) mutex: AtomicU64,
    pub(super) sequence: AtomicU32,
    traits: AtomicU32,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<RawCondvar>() == 16);

#[cfg(loom)]
const FREED: u64 = 0x_dead_dead_dead_dead;

const SHARED: u32 = 1;

/// The bits of `mutex`, see the module's table.
#[cfg_attr(loom, allow(dead_code, reason = "a model has no priorities"))]
pub(super) const BY_PRIORITY: u64 = 1;
pub(super) const KEPT: u64 = 2;

/// Why a wait ended, other than by its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wakeup {
    /// The caller was signalled, or woken spuriously.
    Signalled,
    /// Another thread interrupted the wait. No signal was consumed.
    Interrupted,
}

/// How a wait ended, and whether the caller holds the mutex. It always does, except possibly with a
/// priority-inheriting mutex.
#[derive(Debug)]
pub enum Waited {
    /// The caller holds it.
    Held {
        /// A previous owner ended without unlocking it.
        owner_died: bool,
        /// Why the wait ended or did not begin.
        ended: Result<Wakeup, LockError>,
    },
    /// The mutex could not be locked again.
    NotHeld(LockError),
}

impl Waited {
    pub(super) fn clean(ended: Result<Wakeup, LockError>) -> Self {
        Self::Held { owner_died: false, ended }
    }

    pub(super) fn into_result(self) -> Result<Wakeup, LockError> {
        match self {
            Self::Held { ended, .. } => ended,
            Self::NotHeld(error) => Err(error),
        }
    }
}

impl RawCondvar {
    const_fn! {
        /// Creates a private condvar.
        pub const fn new() -> Self {
            Self::with_scope(Scope::Private)
        }
    }

    const_fn! {
        /// Creates a condvar for the threads of this process, or of all processes that map its
        /// memory.
        pub const fn with_scope(scope: Scope) -> Self {
            let traits = match scope {
                Scope::Private => 0,
                Scope::Shared => SHARED,
            };
            Self {
                mutex: AtomicU64::new(0),
                sequence: AtomicU32::new(0),
                traits: AtomicU32::new(traits),
            }
        }
    }

    /// Whether threads may be waiting.
    #[inline]
    pub(crate) fn may_have_waiters(&self) -> bool {
        self.bound_to() != 0
    }

    /// The value of `mutex`. Relaxed: it changes under the bucket lock. (Of a process-shared
    /// condvar: 0 if there are no waiters.)
    #[inline]
    pub(super) fn bound_to(&self) -> u64 {
        let bound_to = self.mutex.load(Ordering::Relaxed);
        #[cfg(loom)]
        assert_ne!(bound_to, FREED, "a condvar is used after it was freed");
        bound_to
    }

    pub(super) fn is_shared(&self) -> bool {
        self.traits.load(Ordering::Relaxed) & SHARED != 0
    }
}

#[cfg(loom)]
impl RawCondvar {
    /// For models: no thread may use the condvar from now on, as if its memory had been freed.
    pub(crate) fn pretend_to_free(&self) {
        self.mutex.store(FREED, Ordering::Relaxed);
    }
}

impl Default for RawCondvar {
    fn default() -> Self {
        Self::new()
    }
}
