//! The locks, a folder or file each. They know the table only through `futex`: [`parking`](crate::futex::parking) where a
//! lock's own word must change in one step with its queue, `wait` and `wake` elsewhere.

#[cfg(not(loom))]
mod api;
#[cfg(not(loom))]
mod atomic_wait;
mod auto_event;
mod barrier;
mod condvar;
mod const_fn;
mod count;
mod event;
mod interrupter;
mod key;
mod latch;
mod mutex;
mod once;
pub(crate) mod pi;
pub(crate) mod robust;
mod rwlock;
mod semaphore;
mod sleep;
mod tokens;

pub(crate) use key::{key_of, key_of_mutex_at};
#[cfg(loom)]
pub(crate) use mutex::{let_extras_be_woken, let_heirs_be_late, let_time_pass};

pub use auto_event::AutoEvent;
pub use barrier::{Barrier, BarrierWaitResult};
pub use condvar::{RawCondvar, Wakeup};
pub use count::CountError;
pub use event::Event;
pub use interrupter::Interrupter;
pub use latch::Latch;
pub use mutex::{Flavour, Kind, LockError, MutexOptions, RawMutex};
pub use once::{Once, OnceState};
pub use robust::{RawRobustMutex, RobustError, RobustKind, RobustLocked, RobustProtocol};
pub use rwlock::{Preference, RawRwLock, RwLockError};
pub use semaphore::Semaphore;

#[cfg(not(loom))]
pub use api::{
    MappedMutexGuard, MappedReentrantMutexGuard, Mutex, MutexGuard, RawThreadId, ReentrantMutex,
    ReentrantMutexGuard, const_mutex,
};
#[cfg(not(loom))]
pub use atomic_wait::AtomicWait;
#[cfg(not(loom))]
pub use condvar::{Condvar, WaitTimeoutResult};
#[cfg(not(loom))]
pub use robust::{RobustGuard, RobustMutex};
#[cfg(not(loom))]
pub use rwlock::{
    MappedRwLockReadGuard, MappedRwLockWriteGuard, RwLock, RwLockReadGuard,
    RwLockUpgradableReadGuard, RwLockWriteGuard, const_rwlock,
};
