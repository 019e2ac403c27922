//! The locks, a folder or file each. They know the table only through `futex`: [`parking`](crate::futex::parking) where a
//! lock's own word must change in one step with its queue, `wait` and `wake` elsewhere.

mod key;
mod rwlock;

pub(crate) use key::key_of;
#[cfg(not(loom))]
pub use rwlock::{
    MappedRwLockReadGuard, MappedRwLockWriteGuard, RwLock, RwLockReadGuard,
    RwLockUpgradableReadGuard, RwLockWriteGuard, const_rwlock,
};
pub use rwlock::{Preference, RawRwLock, RwLockError};
