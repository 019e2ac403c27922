//! How locks describe themselves to the deadlock detection.

use core::fmt;

/// The kind of lock that a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[cfg_attr(
    not(feature = "deadlock_detection"),
    allow(unreachable_pub, reason = "public with the feature")
)]
pub enum LockKind {
    /// A [`Mutex`](crate::Mutex), or the mutex inside a [`ReentrantMutex`](crate::ReentrantMutex).
    Mutex,
    /// A [`CheckedMutex`](crate::CheckedMutex).
    CheckedMutex,
    /// A [`PiMutex`](crate::PiMutex).
    PiMutex,
    /// A [`RwLock`](crate::RwLock).
    RwLock,
}

impl fmt::Display for LockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mutex => "mutex",
            Self::CheckedMutex => "error-checking mutex",
            Self::PiMutex => "priority-inheriting mutex",
            Self::RwLock => "rwlock",
        })
    }
}

/// How a thread holds a lock, or wants to hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Together with other readers.
    Shared,
    /// Together with readers, as the only thread that may upgrade.
    Upgradable,
    /// Exclusively.
    Exclusive,
    /// Exclusively, wanted by a thread that holds the lock upgradably.
    Upgrade,
}
