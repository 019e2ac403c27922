//! Cycles of each length, through each kind of lock.

use super::{Part, alone, deadlock, leaked, part};
use std::time::Duration;
use waitword::deadlock::LockKind;
use waitword::{
    CheckedCondvar, CheckedMutex, Condvar, Flavour, Mutex, MutexOptions, PiCondvar, PiMutex,
    ReentrantMutex, RwLock, RwLockUpgradableReadGuard, RwLockWriteGuard,
};

/// A thread that takes the first lock, meets the other threads, and waits for the second.
fn takes<First, Second>(
    name: &str,
    first: impl FnOnce() -> First + Send + 'static,
    second: impl FnOnce() -> Second + Send + 'static,
) -> (String, Part) {
    part(name, |barrier| {
        let _first = first();
        barrier.wait();
        let _second = second();
    })
}

#[test]
fn two_threads_with_mutexes_of_each_flavour() {
    alone(|| {
        for flavour in [Flavour::Adaptive, Flavour::Throughput, Flavour::WaitWake] {
            let make = || leaked(MutexOptions::new().flavour(flavour).build(()));
            let (a, b) = (make(), make());
            deadlock([
                takes("left", || a.lock(), || b.lock()),
                takes("right", || b.lock(), || a.lock()),
            ]);
        }
    });
}

#[test]
fn three_threads_with_locks_taken_by_try_lock_or_deadline() {
    alone(|| {
        let [a, b, c] = [(); 3].map(|()| leaked(Mutex::new(())));
        deadlock([
            takes("a", || a.try_lock().unwrap(), || b.lock()),
            takes("b", || b.try_lock_for(Duration::from_secs(60)).unwrap(), || c.lock()),
            takes("c", || c.lock(), || a.lock()),
        ]);
    });
}

#[test]
fn a_thread_that_locks_its_own_lock_again() {
    alone(|| {
        let mutex = leaked(Mutex::new(()));
        deadlock([part("mutex", |_| {
            let _first = mutex.lock();
            let _second = mutex.lock();
        })]);
        let rwlock = leaked(RwLock::new(()));
        deadlock([part("read, write", |_| {
            let _first = rwlock.read();
            let _second = rwlock.write();
        })]);
        let rwlock = leaked(RwLock::new(()));
        deadlock([part("write, read", |_| {
            let _first = rwlock.write();
            let _second = rwlock.read();
        })]);
        let rwlock = leaked(RwLock::new(()));
        deadlock([part("upgrade, read still", |_| {
            let _first = rwlock.read();
            let _second = RwLockUpgradableReadGuard::upgrade(rwlock.upgradable_read());
        })]);
    });
}

#[test]
fn a_reentrant_mutex() {
    alone(|| {
        let (a, b) = (leaked(ReentrantMutex::new(())), leaked(Mutex::new(())));
        deadlock([
            part("left", |barrier| {
                let _outer = a.lock();
                drop(a.lock());
                barrier.wait();
                let _b = b.lock();
            }),
            takes("right", || b.lock(), || a.lock()),
        ]);
    });
}

#[test]
fn readers_and_writers() {
    alone(|| {
        let (a, b) = (leaked(RwLock::new(())), leaked(RwLock::new(())));
        deadlock([
            takes("reads a", || a.read(), || b.write()),
            takes("reads b", || b.read(), || a.write()),
        ]);
        let (a, b) = (leaked(RwLock::new(())), leaked(RwLock::new(())));
        deadlock([
            takes("writes a", || a.write(), || b.read()),
            part("wrote b", |barrier| {
                let _b = RwLockWriteGuard::downgrade_to_upgradable(b.write());
                let _b = RwLockUpgradableReadGuard::upgrade(_b);
                barrier.wait();
                let _a = a.read();
            }),
        ]);
    });
}

#[test]
fn a_mutex_and_one_of_several_readers() {
    alone(|| {
        let (a, b) = (leaked(Mutex::new(())), leaked(RwLock::new(())));
        let _innocent = b.read();
        let found = deadlock([
            takes("reader", || b.read(), || a.lock()),
            takes("writer", || a.lock(), || b.write()),
        ]);
        assert_eq!(found[0].lock_kind(), LockKind::Mutex);
        assert_eq!(found[1].lock_kind(), LockKind::RwLock);
    });
}

#[test]
fn a_downgraded_writer_keeps_out_writers_and_an_upgradable_reader_its_like() {
    alone(|| {
        let (a, b) = (leaked(RwLock::new(())), leaked(RwLock::new(())));
        deadlock([
            takes("downgraded", || RwLockWriteGuard::downgrade(a.write()), || b.upgradable_read()),
            takes("upgradable", || b.upgradable_read(), || a.write()),
        ]);
    });
}

#[test]
fn a_waiter_of_a_condition_variable_before_and_after_it_is_signalled() {
    alone(|| {
        for is_signalled in [false, true] {
            let (a, b) = (leaked(Mutex::new(())), leaked(Mutex::new(())));
            let changed = leaked(Condvar::new());
            deadlock([
                part("waiter", |barrier| {
                    let _a = a.lock();
                    let mut b = b.lock();
                    barrier.wait();
                    changed.wait(&mut b);
                }),
                part("signaller", move |barrier| {
                    barrier.wait();
                    let _b = b.lock();
                    if is_signalled {
                        assert!(changed.notify_one());
                    }
                    let _a = a.lock();
                }),
            ]);
        }
    });
}

#[test]
fn mutexes_that_may_refuse() {
    alone(|| {
        let (a, b) = (leaked(CheckedMutex::new(())), leaked(CheckedMutex::new(())));
        deadlock([
            takes("left", || a.lock().unwrap(), || b.lock().unwrap()),
            takes("right", || b.try_lock().unwrap(), || a.lock().unwrap()),
        ]);
        // The kernel finds cycles that consist only of these locks, and refuses the last lock. With
        // another kind of lock between them, it does not.
        let (a, b) = (leaked(PiMutex::new(())), leaked(Mutex::new(())));
        let found = deadlock([
            takes("has b", || b.lock(), || a.lock().unwrap()),
            takes("has a", || a.lock_for(Duration::from_secs(60)).unwrap(), || b.lock()),
        ]);
        assert_eq!(found[0].lock_kind(), LockKind::PiMutex);
    });
}

#[test]
fn waiters_of_condition_variables_of_mutexes_that_may_refuse() {
    alone(|| {
        let (a, b) = (leaked(Mutex::new(())), leaked(CheckedMutex::new(())));
        let changed = leaked(CheckedCondvar::new());
        deadlock([
            part("checked waiter", |barrier| {
                let _a = a.lock();
                let b = b.lock().unwrap();
                barrier.wait();
                let _b = changed.wait(b).unwrap();
            }),
            part("checked signaller", |barrier| {
                barrier.wait();
                let _b = b.lock().unwrap();
                changed.notify_one();
                let _a = a.lock();
            }),
        ]);
        let (a, b) = (leaked(Mutex::new(())), leaked(PiMutex::new(())));
        let changed = leaked(PiCondvar::new());
        deadlock([
            part("pi waiter", |barrier| {
                let _a = a.lock();
                let b = b.lock().unwrap();
                barrier.wait();
                let _b = changed.wait(b).unwrap();
            }),
            part("pi signaller", |barrier| {
                barrier.wait();
                let _b = b.lock().unwrap();
                changed.notify_one();
                let _a = a.lock();
            }),
        ]);
    });
}
