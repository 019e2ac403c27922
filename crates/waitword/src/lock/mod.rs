//! The locks, a folder or file each. They know the table only through `futex`: [`parking`](crate::futex::parking) where a
//! lock's own word must change in one step with its queue, `wait` and `wake` elsewhere.

#[cfg(not(loom))]
mod api;
mod condvar;
mod key;
mod mutex;
pub(crate) mod pi;
pub(crate) mod robust;

pub use condvar::RawCondvar;
#[cfg(not(loom))]
pub use condvar::{Condvar, WaitTimeoutResult};
pub(crate) use key::{key_at, key_of};
pub use mutex::{Flavour, Kind, LockError, MutexOptions, RawMutex};

#[cfg(not(loom))]
pub use api::{
    MappedMutexGuard, MappedReentrantMutexGuard, Mutex, MutexGuard, RawThreadId, ReentrantMutex,
    ReentrantMutexGuard, const_mutex,
};
