//! The options of a mutex: flavour, kind and scope.

use super::{FLAVOUR_SHIFT, RawPosixMutex, SHARED, owner};
use crate::atomic::AtomicU32;
use crate::futex::Scope;

/// How threads wait for a mutex. (The flavours of Waiman Long's TO futexes, 2016, and an adaptive
/// one that makes choosing unnecessary.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PosixFlavour {
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
    /// The holder runs with the priority of its highest-priority waiter, and the kernel hands the
    /// mutex off in the order of priorities (`FUTEX_LOCK_PI`). For real-time threads; slow for all
    /// others.
    PriorityInheriting,
}

impl PosixFlavour {
    pub(super) const fn bits(self) -> u32 {
        match self {
            Self::Adaptive => 0,
            Self::Throughput => 1,
            Self::WaitWake => 2,
            Self::PriorityInheriting => 3,
        }
    }

    pub(super) fn from_bits(bits: u32) -> Self {
        match bits & 3 {
            0 => Self::Adaptive,
            1 => Self::Throughput,
            2 => Self::WaitWake,
            _ => Self::PriorityInheriting,
        }
    }
}

/// What happens if the thread that holds a mutex locks it again, or if another thread unlocks it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A second lock by the holder waits forever. The unlocking thread is not checked.
    /// (`PTHREAD_MUTEX_NORMAL`. A priority-inheriting mutex detects both and returns an error.)
    #[default]
    Normal,
    /// A second lock by the holder succeeds, and as many unlocks are needed.
    /// (`PTHREAD_MUTEX_RECURSIVE`.) Up to 65,536 levels. In Rust,
    /// [`ReentrantMutex`](crate::ReentrantMutex) is the safe interface.
    Recursive,
    /// A second lock by the holder and an unlock by another thread return an error.
    /// (`PTHREAD_MUTEX_ERRORCHECK`.)
    ErrorChecking,
}

/// Builds a [`RawPosixMutex`](crate::RawPosixMutex) of any kind and flavour.
///
/// ```
/// use waitword::{Kind, LockError, PosixMutexOptions, RawPosixMutex};
///
/// static LOG: RawPosixMutex = PosixMutexOptions::new().kind(Kind::ErrorChecking).build_raw();
/// LOG.lock_checked()?;
/// assert_eq!(LOG.lock_checked(), Err(LockError::Deadlock));
/// # Ok::<(), LockError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct PosixMutexOptions {
    flavour: PosixFlavour,
    kind: Kind,
    shared: bool,
}

impl PosixMutexOptions {
    /// The defaults: adaptive, private, normal.
    pub const fn new() -> Self {
        Self { flavour: PosixFlavour::Adaptive, kind: Kind::Normal, shared: false }
    }

    /// Sets how threads wait for the mutex.
    pub const fn flavour(mut self, flavour: PosixFlavour) -> Self {
        self.flavour = flavour;
        self
    }

    /// Sets what happens on a second lock by the holder.
    pub const fn kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    /// Sets whether processes that share the mutex's memory may lock it too.
    pub const fn scope(mut self, scope: Scope) -> Self {
        self.shared = matches!(scope, Scope::Shared);
        self
    }

    /// Builds the mutex, unlocked.
    pub const fn build_raw(self) -> RawPosixMutex {
        let (word, data) = self.words();
        #[cfg(not(loom))]
        return RawPosixMutex {
            word: AtomicU32::new(word),
            data: core::sync::atomic::AtomicU32::new(data),
        };
        #[cfg(loom)]
        {
            let _ = (word, data);
            unreachable!()
        }
    }

    /// [`build_raw`](Self::build_raw) in a model, where atomics cannot be created in constants.
    #[cfg(loom)]
    pub(crate) fn build_model(self) -> RawPosixMutex {
        let (word, data) = self.words();
        RawPosixMutex { word: AtomicU32::new(word), data: core::sync::atomic::AtomicU32::new(data) }
    }

    /// The initial values of the two words.
    const fn words(self) -> (u32, u32) {
        let flavour = self.flavour.bits() << FLAVOUR_SHIFT;
        let is_pi = matches!(self.flavour, PosixFlavour::PriorityInheriting);
        if is_pi || !matches!(self.kind, Kind::Normal) {
            let word = owner::word(is_pi, self.kind, self.shared);
            return (word, if is_pi { 0 } else { flavour });
        }
        (0, flavour | if self.shared { SHARED } else { 0 })
    }
}
