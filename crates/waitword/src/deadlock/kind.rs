//! What the locks say of themselves to the deadlock detection.

use core::fmt;

/// What kind of lock a thread waits for.
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

/// How a thread holds a lock, or wants to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Beside other readers.
    Shared,
    /// Beside readers, as the only thread that may upgrade.
    Upgradable,
    /// Alone.
    Exclusive,
    /// Alone, by a thread that holds it upgradably.
    Upgrade,
}
