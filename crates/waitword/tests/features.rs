//! The cargo features `arc_lock` and `serde`: guards that own their lock, and locks that are
//! serialised as the values that they protect.

use std::sync::Arc;
use std::thread;
use std::time::Duration;
use waitword::{
    ArcMutexGuard, ArcReentrantMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard,
    ArcRwLockWriteGuard, CheckedMutex, FairMutex, Mutex, PiMutex, RawFairMutex, RawMutex,
    RawRwLock, RawThreadId, ReentrantMutex, RwLock,
};

#[test]
fn a_guard_owns_its_mutex() {
    let mutex = Arc::new(Mutex::new(1));
    let mut guard: ArcMutexGuard<RawMutex, i32> = mutex.lock_arc();
    assert!(mutex.try_lock_arc().is_none());
    assert!(mutex.try_lock_arc_for(Duration::from_millis(1)).is_none());
    *guard += 1;
    let weak = Arc::downgrade(&mutex);
    drop(mutex);
    assert_eq!(*guard, 2);
    drop(guard);
    assert!(weak.upgrade().is_none());

    let fair = Arc::new(FairMutex::new(1));
    let guard: ArcMutexGuard<RawFairMutex, i32> = fair.lock_arc();
    assert!(fair.is_locked());
    drop(guard);
    assert!(!fair.is_locked());

    let reentrant = Arc::new(ReentrantMutex::new(1));
    let outer: ArcReentrantMutexGuard<RawMutex, RawThreadId, i32> = reentrant.lock_arc();
    assert_eq!(*reentrant.lock_arc(), *outer);
}

#[test]
fn a_guard_owns_its_rwlock() {
    let lock = Arc::new(RwLock::new(1));
    let reads: ArcRwLockReadGuard<RawRwLock, i32> = lock.read_arc();
    let upgradable: ArcRwLockUpgradableReadGuard<RawRwLock, i32> = lock.upgradable_read_arc();
    assert!(lock.try_write_arc().is_none());
    assert_eq!(*reads, 1);
    drop(reads);
    let mut writes: ArcRwLockWriteGuard<RawRwLock, i32> =
        ArcRwLockUpgradableReadGuard::upgrade(upgradable);
    *writes += 1;
    assert!(lock.try_read_arc().is_none());
    assert_eq!(*ArcRwLockWriteGuard::downgrade(writes), 2);
    assert!(lock.try_write().is_some());
}

macro_rules! goes_through_json {
    ($($Lock:ident)*) => {
        $(
            let text = serde_json::to_string(&$Lock::new(vec![1, 2])).unwrap();
            assert_eq!(text, "[1,2]", stringify!($Lock));
            let lock: $Lock<Vec<u32>> = serde_json::from_str(&text).unwrap();
            assert_eq!(lock.into_inner(), [1, 2]);
            assert!(serde_json::from_str::<$Lock<u32>>("[]").is_err());
        )*
    };
}

#[test]
fn a_lock_is_serialized_as_what_it_protects() {
    goes_through_json!(Mutex FairMutex ReentrantMutex RwLock CheckedMutex PiMutex);
}

#[test]
fn a_mutex_that_cannot_be_locked_cannot_be_serialized() {
    fn refused(mutex: &impl serde::Serialize) -> String {
        serde_json::to_string(mutex).unwrap_err().to_string()
    }
    let checked = CheckedMutex::new(1);
    let guard = checked.lock().unwrap();
    let said = refused(&checked);
    assert_eq!(said, waitword::LockError::Deadlock.to_string());
    drop(guard);
    assert_eq!(serde_json::to_string(&checked).unwrap(), "1");

    let inheriting = PiMutex::new(1);
    thread::scope(|scope| {
        let leaks = || std::mem::forget(inheriting.lock().unwrap());
        scope.spawn(leaks).join().unwrap();
    });
    assert_eq!(refused(&inheriting), waitword::LockError::OwnerDied.to_string());
}
