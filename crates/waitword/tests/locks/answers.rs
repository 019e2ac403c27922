//! The answer of each call on a mutex, of every flavour, kind and scope.

use super::*;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use waitword::Clock;
use waitword::abi_support::{GivenBack, MutexHooks as _};
use waitword_testkit::{Crew, watch};

/// Runs `what` in another thread, and waits for that to end.
fn elsewhere<R: Send>(what: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| scope.spawn(what).join().unwrap())
}

fn soon_on_both_clocks() -> [Deadline; 2] {
    let soon = Duration::from_millis(5);
    [Deadline::after(soon), Deadline::at_system_time(SystemTime::now() + soon)]
}

fn long_ago_on_both_clocks() -> [Deadline; 2] {
    [Clock::Monotonic, Clock::Realtime].map(|clock| Deadline::at(clock, Duration::from_nanos(1)))
}

#[test]
fn a_free_mutex_is_locked_and_a_held_one_is_not() {
    with_every(every_sort(), |sort| {
        let mutex = sort.make();
        for round in 0..3 {
            assert!(!mutex.is_locked());
            match round {
                0 => mutex.lock(),
                1 => assert_eq!(mutex.lock_checked(), Ok(())),
                _ => assert!(mutex.try_lock()),
            }
            assert!(mutex.is_locked());
            elsewhere(|| {
                assert!(!mutex.try_lock());
                assert_eq!(mutex.try_lock_checked(), Err(LockError::Busy));
                assert!(mutex.is_locked());
            });
            // SAFETY: locked above.
            unsafe {
                match round {
                    0 => mutex.unlock(),
                    1 => assert_eq!(mutex.unlock_checked(), Ok(())),
                    _ => mutex.unlock_fair(),
                }
            }
        }
        assert!(!mutex.is_locked());
        assert_eq!(mutex.destroy(), Ok(()));
    });
}

/// The fast paths do what the full calls do, or nothing.
#[test]
fn a_mutex_with_an_owner_is_locked_at_once_or_not_at_all() {
    with_every(every_sort(), |sort| {
        let mutex = sort.make();
        let has_short_ways = sort.has_owner() && sort.scope == Scope::Private;
        // SAFETY: it has an owner, so the call can check; if it has none, nothing is done.
        let unlock = || matches!(unsafe { mutex.unlock_owned_at_once() }, GivenBack::Yes);
        assert!(!unlock());
        assert_eq!(mutex.lock_owned_at_once(), has_short_ways);
        assert_eq!(mutex.is_locked(), has_short_ways);
        if has_short_ways {
            elsewhere(|| {
                assert!(!mutex.lock_owned_at_once());
                assert!(!unlock());
            });
            let again = mutex.lock_owned_at_once();
            assert_eq!(again, sort.kind == Kind::Recursive);
            if again {
                // One more level, by the full call, and released in either way.
                assert_eq!(mutex.lock_checked(), Ok(()));
                assert!(unlock());
                assert!(!elsewhere(|| mutex.try_lock()));
                assert!(unlock());
            }
            assert!(!elsewhere(|| mutex.try_lock()));
            // A thread waits: the mutex goes to it.
            std::thread::scope(|scope| {
                let waiter = scope.spawn(|| {
                    mutex.lock();
                    // SAFETY: locked above.
                    unsafe { mutex.unlock() };
                });
                std::thread::sleep(Duration::from_millis(1));
                if !unlock() {
                    // SAFETY: locked above.
                    unsafe { mutex.unlock() };
                }
                waiter.join().unwrap();
            });
        }
        assert!(!mutex.is_locked());
        assert_eq!(mutex.destroy(), Ok(()));
        assert!(!mutex.lock_owned_at_once());
    });
}

#[test]
fn a_deadline_passes_on_both_clocks() {
    with_every(every_sort(), |sort| {
        let mutex = sort.make();
        mutex.lock();
        for deadline in soon_on_both_clocks().into_iter().chain(long_ago_on_both_clocks()) {
            elsewhere(|| {
                assert_eq!(mutex.lock_until(deadline), Err(LockError::TimedOut));
                assert!(deadline.has_passed());
            });
        }
        unlock(&mutex);
        // No trace of the waiters that gave up is left.
        assert_eq!(mutex.destroy(), Ok(()));
    });
}

#[test]
fn a_free_mutex_is_locked_whatever_the_deadline() {
    with_every(every_sort(), |sort| {
        let mutex = sort.make();
        for deadline in soon_on_both_clocks().into_iter().chain(long_ago_on_both_clocks()) {
            assert_eq!(mutex.lock_until(deadline), Ok(()));
            unlock(&mutex);
        }
    });
}

#[test]
fn a_mutex_released_in_time_is_locked() {
    let mut crew = Crew::new(1);
    for sort in every_sort() {
        let mutex = Arc::new(sort.make());
        for clock in [Clock::Monotonic, Clock::Realtime] {
            mutex.lock();
            let waiting = mutex.clone();
            crew.order(0, sort.entries(), move || {
                let ample = Duration::from_secs(100);
                let deadline = match clock {
                    Clock::Monotonic => Deadline::after(ample),
                    Clock::Realtime => Deadline::at_system_time(SystemTime::now() + ample),
                };
                waiting.lock_until(deadline).map_err(LockError::raw_os_error)?;
                unlock(&waiting);
                Ok(0)
            });
            assert_eq!(crew.settle(), [], "{sort:?}");
            unlock(&mutex);
            assert_eq!(crew.settle_with(0), [(0, Ok(0))], "{sort:?}");
        }
        assert_eq!(mutex.destroy(), Ok(()));
    }
}

#[test]
fn a_recursive_mutex_has_65536_levels() {
    let recursive = every_sort().filter(|sort| sort.kind == Kind::Recursive);
    with_every(recursive, |sort| {
        const LEVELS: usize = 65_536;
        let mutex = sort.make();
        for level in 0..LEVELS {
            match level % 3 {
                0 => assert_eq!(mutex.lock_checked(), Ok(())),
                1 => assert_eq!(mutex.try_lock_checked(), Ok(())),
                _ => assert_eq!(mutex.lock_until(long_ago_on_both_clocks()[0]), Ok(())),
            }
        }
        assert_eq!(mutex.lock_checked(), Err(LockError::TooMany));
        assert_eq!(mutex.try_lock_checked(), Err(LockError::TooMany));
        assert_eq!(mutex.lock_until(Deadline::after(Duration::ZERO)), Err(LockError::TooMany));
        for level in (0..LEVELS).rev() {
            assert!(mutex.is_locked());
            if level % 10_000 == 0 {
                elsewhere(|| assert!(!mutex.try_lock()));
            }
            unlock(&mutex);
        }
        assert!(!mutex.is_locked());
        elsewhere(|| {
            assert!(mutex.try_lock());
            unlock(&mutex);
        });
        assert_eq!(mutex.destroy(), Ok(()));
    });
}

#[test]
fn a_mutex_with_an_owner_refuses_other_threads() {
    with_every(every_sort().filter(|sort| sort.has_owner()), |sort| {
        let mutex = sort.make();
        // SAFETY: the mutex has an owner, so the call can check, here and below.
        let unlock_checked = || unsafe { mutex.unlock_checked() };
        assert_eq!(unlock_checked(), Err(LockError::NotOwner), "free");
        mutex.lock();
        elsewhere(|| assert_eq!(unlock_checked(), Err(LockError::NotOwner)));
        elsewhere(|| {
            // SAFETY: as above.
            let unlocked = unsafe { mutex.unlock_fair_checked() };
            assert_eq!(unlocked, Err(LockError::NotOwner));
        });
        assert!(mutex.is_locked());
        assert_eq!(unlock_checked(), Ok(()));
        assert_eq!(unlock_checked(), Err(LockError::NotOwner));
    });
}

#[test]
fn a_checking_mutex_refuses_its_owner() {
    let checking = every_sort().filter(|sort| {
        sort.kind == Kind::ErrorChecking || sort.is_pi() && sort.kind == Kind::Normal
    });
    with_every(checking, |sort| {
        let mutex = sort.make();
        mutex.lock();
        assert_eq!(mutex.lock_checked(), Err(LockError::Deadlock));
        for deadline in long_ago_on_both_clocks() {
            assert_eq!(mutex.lock_until(deadline), Err(LockError::Deadlock));
        }
        assert_eq!(mutex.try_lock_checked(), Err(LockError::Busy));
        let locked_twice = std::panic::catch_unwind(|| mutex.lock());
        assert!(locked_twice.is_err());
        unlock(&mutex);
        assert!(!mutex.is_locked());
    });
}

/// A plain mutex is also a signal between threads: any thread may unlock it by agreement.
#[test]
fn a_plain_mutex_may_be_unlocked_by_another_thread() {
    let mut crew = Crew::new(1);
    for sort in every_normal_sort().filter(|sort| !sort.has_owner()) {
        let mutex = Arc::new(sort.make());
        mutex.lock();
        for _ in 0..20 {
            let waiting = mutex.clone();
            crew.order(0, sort.entries(), move || {
                waiting.lock();
                Ok(0)
            });
            assert_eq!(crew.settle(), []);
            // What the crew's thread locks, we unlock the next time.
            unlock(&mutex);
            assert_eq!(crew.settle_with(0), [(0, Ok(0))], "{sort:?}");
            assert!(mutex.is_locked());
        }
        unlock(&mutex);
        assert_eq!(mutex.destroy(), Ok(()));
    }
}

#[test]
fn a_destroyed_mutex_is_detected() {
    with_every(every_sort(), |sort| {
        let mutex = sort.make();
        mutex.lock();
        assert_eq!(mutex.destroy(), Err(LockError::Busy));
        elsewhere(|| assert_eq!(mutex.destroy(), Err(LockError::Busy)));
        unlock(&mutex);
        assert_eq!(mutex.destroy(), Ok(()));
        assert_eq!(mutex.destroy(), Err(LockError::Invalid));
        assert_eq!(mutex.lock_checked(), Err(LockError::Invalid));
        assert_eq!(mutex.try_lock_checked(), Err(LockError::Invalid));
        assert!(!mutex.try_lock() && !mutex.is_locked());
        let soon = Deadline::after(Duration::ZERO);
        assert_eq!(mutex.lock_until(soon), Err(LockError::Invalid));
        // SAFETY: the call can check.
        unsafe {
            assert_eq!(mutex.unlock_checked(), Err(LockError::Invalid));
            assert_eq!(mutex.unlock_fair_checked(), Err(LockError::Invalid));
            mutex.bump();
        }
    });
}

#[test]
fn a_mutex_with_waiters_is_not_destroyed() {
    let mut crew = Crew::new(3);
    for sort in every_sort() {
        let mutex = Arc::new(sort.make());
        mutex.lock();
        crew.line_up(0..3, sort.entries(), &mutex, move |waiting| {
            waiting.lock();
            assert_eq!(waiting.destroy(), Err(LockError::Busy));
            unlock(waiting);
            Ok(0)
        });
        assert_eq!(mutex.destroy(), Err(LockError::Busy));
        unlock(&mutex);
        crew.until_back(3);
        assert_eq!(mutex.destroy(), Ok(()), "{sort:?}: {mutex:?}");
    }
}

/// All are asleep: the first to wait is the first to have it.
#[test]
fn a_fair_unlock_hands_over_in_order() {
    const THREADS: usize = 4;
    let mut crew = Crew::new(THREADS);
    let private = every_sort().filter(|sort| sort.scope == Scope::Private);
    for sort in private {
        for _ in 0..5 {
            let mutex = Arc::new(sort.make());
            let order = Arc::new(std::sync::Mutex::new(Vec::new()));
            mutex.lock();
            for worker in 0..THREADS {
                let (mutex, order) = (mutex.clone(), order.clone());
                crew.order(worker, sort.entries(), move || {
                    mutex.lock();
                    order.lock().unwrap().push(worker);
                    // SAFETY: locked above.
                    unsafe { mutex.unlock_fair() };
                    Ok(0)
                });
                assert_eq!(crew.settle(), []);
            }
            // SAFETY: locked above.
            unsafe { mutex.unlock_fair() };
            crew.until_back(THREADS);
            assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3], "{sort:?}");
            assert_eq!(mutex.destroy(), Ok(()));
        }
    }
}

/// A waiter gets it before the thread that bumps has it again.
#[test]
fn a_bump_lets_one_in() {
    let mut crew = Crew::new(2);
    let private = every_sort().filter(|sort| sort.scope == Scope::Private && !sort.is_pi());
    for sort in private {
        for _ in 0..5 {
            let mutex = Arc::new(sort.make());
            let first = Arc::new(std::sync::Mutex::new(None));
            mutex.lock();
            for worker in 0..2 {
                let (mutex, first) = (mutex.clone(), first.clone());
                crew.order(worker, sort.entries(), move || {
                    mutex.lock();
                    first.lock().unwrap().get_or_insert(worker);
                    unlock(&mutex);
                    Ok(0)
                });
                assert_eq!(crew.settle(), []);
            }
            // SAFETY: locked above.
            unsafe { mutex.bump() };
            assert!(mutex.is_locked());
            assert_eq!(*first.lock().unwrap(), Some(0), "{sort:?}");
            unlock(&mutex);
            crew.until_back(2);
        }
    }
}

/// Without a waiter it is a no-op, for every sort.
#[test]
fn a_bump_without_waiters_does_nothing() {
    with_every(every_sort(), |sort| {
        let mutex = sort.make();
        mutex.lock();
        // SAFETY: locked above.
        unsafe { mutex.bump() };
        elsewhere(|| assert!(!mutex.try_lock()));
        unlock(&mutex);
    });
}

#[test]
fn errors_have_posix_numbers() {
    let numbers = [
        (LockError::Busy, libc::EBUSY),
        (LockError::TimedOut, libc::ETIMEDOUT),
        (LockError::Deadlock, libc::EDEADLK),
        (LockError::NotOwner, libc::EPERM),
        (LockError::TooMany, libc::EAGAIN),
        (LockError::OwnerDied, libc::ESRCH),
        (LockError::Invalid, libc::EINVAL),
        (LockError::OutOfMemory, libc::ENOMEM),
        (LockError::Unsupported, libc::ENOSYS),
        (LockError::Kernel(libc::EFAULT), libc::EFAULT),
    ];
    for (error, number) in numbers {
        assert_eq!(error.raw_os_error(), number);
        assert!(!error.to_string().is_empty() && !format!("{error:?}").is_empty());
    }
}

/// What a static initialiser in C would produce.
#[test]
fn zeros_are_a_free_mutex() {
    let _watchdog = watch();
    let zeros = [0_u32; 2];
    // SAFETY: eight aligned bytes. That zeros are a mutex is what is tested.
    let mutex: RawPosixMutex = unsafe { std::mem::transmute(zeros) };
    for mutex in [&mutex, &RawPosixMutex::default(), &RawPosixMutex::new()] {
        mutex.lock();
        assert!(mutex.is_locked() && !mutex.try_lock());
        unlock(mutex);
        let begun = Instant::now();
        assert_eq!(mutex.lock_until(Deadline::from(begun)), Ok(()));
        unlock(mutex);
        assert!(format!("{mutex:?}").starts_with("RawPosixMutex"));
    }
    assert_eq!(PosixMutexOptions::default(), PosixMutexOptions::new());
}
