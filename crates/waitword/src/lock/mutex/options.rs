//! How a mutex is made.

use super::{FLAVOUR_SHIFT, RawPosixMutex, SHARED};
use crate::atomic::AtomicU32;
use crate::futex::Scope;

/// How threads wait for a mutex. (The flavours of Waiman Long's TO futexes, 2016, and one that makes choosing
/// unnecessary.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PosixFlavour {
    /// Chooses for itself, from what it observes, whether to spin, to sleep, and to hand over: the one to use unless
    /// a measurement says otherwise.
    #[default]
    Adaptive,
    /// A running thread may take the lock past sleepers, waiters stay awake for some µs, and who
    /// has waited long is handed it.
    Throughput,
    /// Sleeps at once. For sections that are long or sleep. A waiter may be passed over without bound.
    WaitWake,
    /// Whoever holds it runs with the priority of whoever waits for it, and it is handed over in the order of
    /// priorities, by the kernel (FUTEX_LOCK_PI). For real-time threads; slow for all others.
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

/// What happens if the thread that holds a mutex locks it again, or another one unlocks it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A second lock by its holder waits for ever. Who unlocks is not checked. (`PTHREAD_MUTEX_NORMAL`; a
    /// priority-inheriting one does see both, and says so.)
    #[default]
    Normal,
    /// A second lock by its holder succeeds, and as many unlocks are needed. (`PTHREAD_MUTEX_RECURSIVE`.) Up to
    /// 65,536 levels. In Rust, [`ReentrantMutex`](crate::ReentrantMutex) is the safe way to it.
    Recursive,
    /// A second lock by its holder and an unlock by another thread are refused. (`PTHREAD_MUTEX_ERRORCHECK`.)
    ErrorChecking,
}

/// What [`RawPosixMutex`](crate::RawPosixMutex) to make, of any kind and flavour.
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
    /// Adaptive, private, normal.
    pub const fn new() -> Self {
        Self {
            flavour: PosixFlavour::Adaptive,
            kind: Kind::Normal,
            shared: false,
        }
    }

    /// How threads wait for it.
    pub const fn flavour(mut self, flavour: PosixFlavour) -> Self {
        self.flavour = flavour;
        self
    }

    /// What happens on a second lock by its holder.
    pub const fn kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    /// Whether threads of other processes, in whose memory it lies too, lock it.
    pub const fn scope(mut self, scope: Scope) -> Self {
        self.shared = matches!(scope, Scope::Shared);
        self
    }

    /// Such a mutex, free.
    pub const fn build_raw(self) -> RawPosixMutex {
        let (word, data) = self.words();
        #[cfg(not(loom))]
        return RawPosixMutex {
            word: AtomicU32::new(word),
            data: AtomicU32::new(data),
        };
        #[cfg(loom)]
        {
            let _ = (word, data);
            unreachable!()
        }
    }

    /// The same for a model, in which atomics are not made in constants.
    #[cfg(loom)]
    pub(crate) fn build_model(self) -> RawPosixMutex {
        let (word, data) = self.words();
        RawPosixMutex {
            word: AtomicU32::new(word),
            data: AtomicU32::new(data),
        }
    }

    /// What the two words of a free one hold.
    const fn words(self) -> (u32, u32) {
        let flavour = self.flavour.bits() << FLAVOUR_SHIFT;
        #[cfg(not(loom))]
        {
            use super::special;
            let is_pi = matches!(self.flavour, PosixFlavour::PriorityInheriting);
            if is_pi || !matches!(self.kind, Kind::Normal) {
                let word = special::word(is_pi, self.kind, self.shared);
                return (word, if is_pi { 0 } else { flavour });
            }
        }
        (0, flavour | if self.shared { SHARED } else { 0 })
    }
}
