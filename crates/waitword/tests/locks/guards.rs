//! The mutex and the condvar under the names of `lock_api` and parking_lot.

use super::*;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};
use waitword::{
    Condvar, Flavour, MappedMutexGuard, Mutex, MutexGuard, MutexOptions, ReentrantMutex,
    ReentrantMutexGuard, WaitTimeoutResult, const_mutex,
};
use waitword_testkit::watch;

/// One with a value, of every flavour and scope that a `Mutex` can have.
fn every_mutex() -> impl Iterator<Item = (MutexOptions, Mutex<[u32; 2]>)> {
    const FLAVOURS: [Flavour; 3] = [Flavour::Adaptive, Flavour::Throughput, Flavour::WaitWake];
    FLAVOURS.into_iter().flat_map(|flavour| {
        SCOPES.map(|scope| {
            let options = MutexOptions::new().flavour(flavour).scope(scope);
            (options, options.build([0; 2]))
        })
    })
}

#[test]
fn a_guard_holds_it() {
    let _watchdog = watch();
    for (sort, mut mutex) in every_mutex() {
        let mut guard = mutex.lock();
        guard[0] = 1;
        assert!(mutex.is_locked() && mutex.try_lock().is_none(), "{sort:?}");
        std::thread::scope(|scope| {
            let elsewhere = scope.spawn(|| {
                let soon = Duration::from_millis(1);
                assert!(mutex.try_lock().is_none());
                assert!(mutex.try_lock_for(soon).is_none());
                assert!(mutex.try_lock_until(Instant::now() + soon).is_none());
                assert!(mutex.try_lock_until(Instant::now()).is_none());
            });
            elsewhere.join().unwrap();
        });
        drop(guard);
        assert!(!mutex.is_locked());
        assert_eq!(mutex.try_lock().unwrap()[0], 1);
        assert_eq!(mutex.try_lock_for(Duration::ZERO).unwrap()[0], 1);
        assert_eq!(mutex.try_lock_until(Instant::now()).unwrap()[0], 1);
        mutex.get_mut()[1] = 2;
        assert_eq!(mutex.into_inner(), [1, 2]);
    }
}

#[test]
fn a_part_of_a_value_is_held_as_a_whole() {
    let _watchdog = watch();
    for (sort, mutex) in every_mutex() {
        let mut part: MappedMutexGuard<'_, u32> =
            MutexGuard::map(mutex.lock(), |pair| &mut pair[1]);
        *part = 5;
        assert!(mutex.is_locked(), "{sort:?}");
        let part = MappedMutexGuard::map(part, |part| part);
        MappedMutexGuard::unlock_fair(part);
        assert_eq!(*mutex.lock(), [0, 5]);
        let refused = MutexGuard::try_map(mutex.lock(), |_| None::<&mut u32>);
        let guard = refused.err().unwrap();
        MutexGuard::unlock_fair(guard);
        assert!(!mutex.is_locked());
    }
}

#[test]
fn a_guard_lets_go_for_a_while() {
    let _watchdog = watch();
    for (sort, mutex) in every_mutex() {
        let mut guard = mutex.lock();
        MutexGuard::bump(&mut guard);
        let seen = MutexGuard::unlocked(&mut guard, || mutex.lock()[0]);
        assert_eq!(MutexGuard::unlocked_fair(&mut guard, || mutex.lock()[1]), seen);
        assert!(mutex.is_locked(), "{sort:?}");
        // As a C caller would: lock here, unlock elsewhere in the code.
        std::mem::forget(guard);
        // SAFETY: forgotten above.
        unsafe { mutex.force_unlock() };
        std::mem::forget(mutex.lock());
        // SAFETY: forgotten above.
        unsafe { mutex.force_unlock_fair() };
        assert!(!mutex.is_locked());
    }
}

#[test]
fn threads_count_with_every_sort() {
    let watchdog = watch();
    for (sort, mutex) in every_mutex() {
        watchdog.pat();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for turn in 0..300 {
                        let mut pair = mutex.lock();
                        pair[0] += 1;
                        if turn % 10 == 0 {
                            MutexGuard::unlock_fair(pair);
                        }
                    }
                });
            }
        });
        assert_eq!(mutex.into_inner(), [1200, 0], "{sort:?}");
    }
}

#[test]
fn a_reentrant_mutex_is_locked_again_by_its_holder_only() {
    let _watchdog = watch();
    let mutex = ReentrantMutex::new(RefCell::new(0));
    let outer = mutex.lock();
    {
        let inner = mutex.lock();
        *inner.borrow_mut() += 1;
        assert!(mutex.try_lock().is_some());
        assert!(mutex.try_lock_for(Duration::ZERO).is_some());
    }
    assert!(mutex.is_owned_by_current_thread());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert!(mutex.is_locked() && !mutex.is_owned_by_current_thread());
            assert!(mutex.try_lock().is_none());
            assert!(mutex.try_lock_for(Duration::from_millis(1)).is_none());
        });
    });
    let part = ReentrantMutexGuard::map(outer, |cell| cell);
    assert_eq!(*part.borrow(), 1);
    drop(part);
    assert!(!mutex.is_locked());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let outer = mutex.lock();
                    let before = *outer.borrow();
                    *mutex.lock().borrow_mut() = before + 1;
                    ReentrantMutexGuard::unlock_fair(outer);
                }
            });
        }
    });
    assert_eq!(*mutex.lock().borrow(), 801);
}

#[test]
fn they_are_made_in_constants_and_shown() {
    let _watchdog = watch();
    static PLAIN: Mutex<u32> = Mutex::new(1);
    static NAMED: Mutex<u32> = const_mutex(2);
    static CHOSEN: Mutex<u32> =
        MutexOptions::new().flavour(Flavour::WaitWake).scope(Scope::Private).build(3);
    static SIGNAL: Condvar = Condvar::new();
    static DEEP: ReentrantMutex<Cell<u32>> = ReentrantMutex::new(Cell::new(4));
    assert_eq!(*PLAIN.lock() + *NAMED.lock() + *CHOSEN.lock(), 6);
    assert!(!SIGNAL.notify_one());
    assert_eq!(format!("{PLAIN:?}"), "Mutex { data: 1 }");
    let guard = PLAIN.lock();
    assert!(format!("{PLAIN:?}").contains("<locked>"));
    assert_eq!((format!("{guard:?}"), format!("{guard}")), ("1".into(), "1".into()));
    drop(guard);
    assert!(format!("{DEEP:?}").contains('4'));
    assert_eq!(*Mutex::<u32>::default().lock(), 0);
    assert!(!format!("{:?}", Condvar::default()).is_empty());
    assert!(!format!("{:?} {:?}", RawCondvar::default(), PosixMutexOptions::new()).is_empty());
    let from: Mutex<&str> = "value".into();
    assert_eq!(from.into_inner(), "value");
}

#[test]
fn a_condvar_waits_with_guards_of_every_sort() {
    let watchdog = watch();
    for (sort, mutex) in every_mutex() {
        watchdog.pat();
        let pair = Arc::new((mutex, Condvar::new()));
        let (mutex, condvar) = &*pair;
        let soon = Duration::from_millis(1);
        let mut guard = mutex.lock();
        assert!(condvar.wait_for(&mut guard, soon).timed_out(), "{sort:?}");
        assert!(condvar.wait_until(&mut guard, Instant::now() + soon).timed_out());
        let timed = condvar.wait_while_for(&mut guard, |pair| pair[0] == 0, soon);
        assert!(timed.timed_out());
        let in_vain = condvar.wait_while_until(&mut guard, |_| false, Instant::now());
        assert!(!in_vain.timed_out(), "nothing to wait for");
        drop(guard);
        let there = pair.clone();
        let thread = std::thread::spawn(move || {
            let (mutex, condvar) = &*there;
            let mut guard = mutex.lock();
            while guard[0] == 0 {
                condvar.wait(&mut guard);
            }
            guard[1] = 1;
            condvar.notify_all();
            condvar.wait_while(&mut guard, |pair| pair[0] == 1);
        });
        mutex.lock()[0] = 1;
        condvar.notify_one();
        let mut guard = mutex.lock();
        condvar.wait_while(&mut guard, |pair| pair[1] == 0);
        guard[0] = 2;
        condvar.notify_all();
        drop(guard);
        thread.join().unwrap();
    }
}

/// A wait that times out with its condition true reports that it did not time out.
#[test]
fn a_condition_that_comes_true_at_the_end_counts() {
    let _watchdog = watch();
    let (mutex, condvar) = (Mutex::new(0), Condvar::new());
    let mut looks = 0;
    let result: WaitTimeoutResult = condvar.wait_while_for(
        &mut mutex.lock(),
        |_| {
            looks += 1;
            looks < 2
        },
        Duration::from_millis(1),
    );
    assert!(!result.timed_out());
}

#[test]
fn a_second_mutex_panics_and_is_held_still() {
    let _watchdog = watch();
    #[derive(PartialEq)]
    enum Step {
        Comes,
        Waits,
        Goes,
    }
    let (first, second, condvar) = (Mutex::new(Step::Comes), Mutex::new(()), Condvar::new());
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let mut step = first.lock();
            *step = Step::Waits;
            condvar.wait_while(&mut step, |step| *step != Step::Goes);
        });
        while *first.lock() != Step::Waits {
            std::thread::yield_now();
        }
        let mut guard = second.lock();
        let wait = std::panic::AssertUnwindSafe(|| condvar.wait(&mut guard));
        let refused = std::panic::catch_unwind(wait).unwrap_err();
        assert!(
            refused.downcast_ref::<String>().is_some_and(|text| text.contains("another mutex"))
        );
        assert!(second.is_locked());
        drop(guard);
        *first.lock() = Step::Goes;
        assert_eq!(condvar.notify_all(), 1);
        waiter.join().unwrap();
    });
}
