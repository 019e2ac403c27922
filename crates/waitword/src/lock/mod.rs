//! The locks, one file or folder each. They reach the waiter table only through `futex`: through
//! [`parking`](crate::futex::parking) where a lock's own word must change in one step with its
//! queue, and through `wait` and `wake` elsewhere.

#[cfg(not(loom))]
mod atomic_wait;
mod auto_event;
mod barrier;
pub(crate) mod condvar;
mod const_fn;
mod count;
mod event;
#[cfg(not(loom))]
mod fallible;
pub(crate) mod interrupter;
pub(crate) mod kernel_wait;
mod key;
mod latch;
#[cfg(not(loom))]
mod lazy_lock;
pub(crate) mod mutex;
pub(crate) mod once;
#[cfg(not(loom))]
mod once_lock;
#[cfg(not(loom))]
mod permit;
pub(crate) mod pi;
pub(crate) mod robust;
mod rwlock;
mod semaphore;
mod sleep;
pub(crate) mod tokens;

pub(crate) use key::{key_of, key_of_mutex_at};
#[cfg(loom)]
pub(crate) use rwlock::let_timers_fire;

pub use auto_event::AutoEvent;
pub use barrier::{Barrier, BarrierWaitResult};
pub use condvar::RawCondvar;
pub use count::CountError;
pub use event::Event;
pub use latch::Latch;
pub use mutex::{Kind, LockError, PosixFlavour, PosixMutexOptions, RawPosixMutex};
pub use once::{Once, OnceState};
pub use robust::{RawRobustMutex, RobustError, RobustKind, RobustLocked, RobustProtocol};
pub use rwlock::{Preference, RawRwLock, RwLockError};
pub use semaphore::Semaphore;

#[cfg(not(loom))]
pub use self::{
    atomic_wait::AtomicWait,
    condvar::{Condvar, WaitTimeoutResult},
    fallible::{
        CheckedCondvar, CheckedMutex, CheckedMutexGuard, FallibleCondvar, FallibleMutex,
        FallibleMutexGuard, PiCondvar, PiMutex, PiMutexGuard, RawCheckedMutex, RawFallibleMutex,
        RawPiMutex,
    },
    lazy_lock::LazyLock,
    once_lock::OnceLock,
    permit::SemaphorePermit,
    robust::{RobustAccess, RobustMutex},
    rwlock::{
        MappedRwLockReadGuard, MappedRwLockWriteGuard, RwLock, RwLockOptions, RwLockReadGuard,
        RwLockUpgradableReadGuard, RwLockWriteGuard, const_rwlock,
    },
};
#[cfg(not(loom))]
pub use mutex::api::{
    Flavour, MappedMutexGuard, MappedReentrantMutexGuard, Mutex, MutexGuard, MutexOptions,
    RawMutex, RawThreadId, ReentrantMutex, ReentrantMutexGuard, const_mutex, const_reentrant_mutex,
};
#[cfg(not(loom))]
pub use mutex::fair::{
    FairMutex, FairMutexGuard, MappedFairMutexGuard, RawFairMutex, const_fair_mutex,
};

/// Guards that own an [`Arc`](std::sync::Arc) of their lock, with the feature `arc_lock`.
#[cfg(all(feature = "arc_lock", not(loom)))]
pub use lock_api::{
    ArcMutexGuard, ArcReentrantMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard,
    ArcRwLockWriteGuard,
};

/// Whether guards can be sent to another thread. The feature `send_guard` decides this for all
/// locks that are built on `lock_api`.
#[cfg(all(feature = "send_guard", not(loom)))]
type GuardMarker = lock_api::GuardSend;
#[cfg(all(not(feature = "send_guard"), not(loom)))]
type GuardMarker = lock_api::GuardNoSend;
