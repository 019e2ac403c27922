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
#[cfg(not(loom))]
mod atomic_wait;
mod auto_event;
mod barrier;
mod const_fn;
mod count;
mod event;
mod latch;
mod once;
mod semaphore;
mod sleep;
mod tokens;

#[cfg(not(loom))]
pub use atomic_wait::AtomicWait;
pub use auto_event::AutoEvent;
pub use barrier::{Barrier, BarrierWaitResult};
pub use count::CountError;
pub use event::Event;
pub use latch::Latch;
pub use once::{Once, OnceState};
pub use semaphore::Semaphore;
