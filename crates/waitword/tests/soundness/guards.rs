//! What happens to guards that are forgotten, leaked, moved, or dropped by a panic; and which
//! guards may go to another thread.

use super::LONG;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;
use waitword::{
    CheckedMutex, FallibleMutex, LockError, Mutex, MutexGuard, MutexOptions, PiMutex,
    RawFallibleMutex, RobustAccess, RobustError, RobustMutex, RwLock, Scope,
};
use waitword_testkit::watch;

/// S2: a section of a robust mutex lends its data to a closure. Misuse that must not compile is in
/// `tests/does_not_compile`. A thread that ends has left its sections.
#[test]
fn a_thread_that_ends_has_left_its_robust_sections() {
    let _watchdog = watch();
    static MUTEX: RobustMutex<u64> = RobustMutex::new(0);
    for panics in [false, true] {
        let ended = thread::spawn(move || {
            MUTEX.with(|mut value| {
                *value += 1;
                if panics {
                    // Not `panic`: its message would be taken for a failure.
                    std::panic::resume_unwind(Box::new(()));
                }
            })
        });
        assert_eq!(ended.join().is_err(), panics);
        let next = MUTEX.try_with(|value| (RobustAccess::owner_died(&value), *value));
        assert_eq!(next, Ok((false, 1 + u64::from(panics))));
    }
    let again = MUTEX.with(|_| (MUTEX.with(|_| ()), MUTEX.try_with(|_| ())));
    assert_eq!(again, Ok((Err(RobustError::Deadlock), Err(RobustError::Busy))));
}

/// A forgotten guard leaves its mutex locked, even after its thread has ended.
#[test]
fn a_forgotten_guard_leaves_its_mutex_locked() {
    let _watchdog = watch();
    let plain = Mutex::new(0);
    let checked = CheckedMutex::new(0);
    let inheriting = PiMutex::new(0);
    let lock = RwLock::new(0);
    thread::scope(|scope| {
        let ends = || {
            std::mem::forget(plain.lock());
            std::mem::forget(checked.lock());
            std::mem::forget(inheriting.lock());
            std::mem::forget(lock.read());
        };
        scope.spawn(ends).join().unwrap();
    });
    let short = Duration::from_millis(5);
    assert!(plain.try_lock().is_none() && plain.try_lock_for(short).is_none());
    assert_eq!(checked.try_lock().unwrap_err(), LockError::Busy);
    assert_eq!(checked.lock_for(short).unwrap_err(), LockError::TimedOut);
    assert_eq!(inheriting.try_lock().unwrap_err(), LockError::Busy);
    assert_eq!(inheriting.lock_for(short).unwrap_err(), LockError::OwnerDied);
    assert!(lock.try_read().is_some());
    assert!(lock.try_write().is_none() && lock.try_write_for(short).is_none());
    // As values they can still be moved.
    assert_eq!(plain.into_inner() + checked.into_inner(), 0);
    assert_eq!(inheriting.into_inner() + lock.into_inner(), 0);
}

/// A leaked exclusive reference stays the only one.
#[test]
fn a_leaked_guard_keeps_excluding() {
    let _watchdog = watch();
    static PLAIN: Mutex<u32> = Mutex::new(0);
    static CHECKED: CheckedMutex<u32> = CheckedMutex::new(0);
    let (leaked, data) = channel::<[&'static mut u32; 2]>();
    let leaks = move || {
        let checked = Box::leak(Box::new(CHECKED.lock().unwrap()));
        let both = [MutexGuard::leak(PLAIN.lock()), &mut **checked];
        leaked.send(both).unwrap();
    };
    thread::spawn(leaks).join().unwrap();
    let [plain, checked] = data.recv().unwrap();
    (*plain, *checked) = (1, 2);
    assert!(PLAIN.try_lock().is_none());
    assert_eq!(CHECKED.try_lock().unwrap_err(), LockError::Busy);
    assert_eq!((*plain, *checked), (1, 2));
}

fn each_lock_and_unlock<R: RawFallibleMutex + Sync>(mutex: FallibleMutex<R, [u32; 2]>) {
    let mut guard = mutex.lock().unwrap();
    guard[1] = 3;
    assert_eq!(mutex.lock().unwrap_err(), LockError::Deadlock);
    assert_eq!(mutex.lock_for(LONG).unwrap_err(), LockError::Deadlock);
    assert_eq!(mutex.try_lock().unwrap_err(), LockError::Busy);
    assert!(mutex.is_locked());
    assert_eq!(format!("{guard:?}"), "[0, 3]");
    assert!(format!("{mutex:?}").contains("is held"), "{mutex:?}");
    thread::scope(|scope| {
        scope.spawn(|| {
            let short = Duration::from_millis(1);
            assert_eq!(mutex.lock_for(short).unwrap_err(), LockError::TimedOut);
            assert_eq!(mutex.try_lock().unwrap_err(), LockError::Busy);
        });
    });
    drop(guard);
    assert!(!mutex.is_locked());
    assert!(format!("{mutex:?}").contains("[0, 3]"), "{mutex:?}");
    let panics = AssertUnwindSafe(|| {
        let mut guard = mutex.lock().unwrap();
        guard[0] = 4;
        std::panic::resume_unwind(Box::new(()));
    });
    assert!(catch_unwind(panics).is_err());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..300).for_each(|_| mutex.lock().unwrap()[0] += 1));
        }
    });
    assert_eq!(mutex.into_inner(), [1204, 3]);
}

#[test]
fn a_fallible_mutex_locks_and_refuses() {
    let _watchdog = watch();
    each_lock_and_unlock(CheckedMutex::new([0; 2]));
    each_lock_and_unlock(PiMutex::new([0; 2]));
    // Process-shared ones work in private memory, too.
    each_lock_and_unlock(PiMutex::with_scope([0; 2], Scope::Shared));
    let shared = MutexOptions::new().scope(Scope::Shared);
    each_lock_and_unlock(shared.build_checked([0; 2]));
}
