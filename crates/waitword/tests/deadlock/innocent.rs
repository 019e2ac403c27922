//! What must not be reported.

use super::{alone, leaked};
use std::mem::forget;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use waitword::deadlock::check_deadlock;
use waitword::{CheckedMutex, Condvar, LockError, Mutex, PiMutex, RwLock, RwLockWriteGuard};

/// Checks continuously until `is_over`.
#[track_caller]
fn nothing_is_reported_until(is_over: impl Fn() -> bool) {
    while !is_over() {
        let found = check_deadlock();
        assert!(found.is_empty(), "{found:#?}");
    }
}

/// Threads take the locks in any order, but one thread at a time. The detector sees each hold one
/// lock and wait for another, and later threads do so the other way round.
#[test]
fn a_second_of_contention() {
    alone(|| {
        let turn = &Mutex::new(0);
        let (first, second) = (&Mutex::new(()), &RwLock::new(()));
        let (third, changed) = (&CheckedMutex::new(()), &Condvar::new());
        let (running, rounds) = (&AtomicUsize::new(4), &AtomicUsize::new(0));
        let end = Instant::now() + Duration::from_secs(1);
        thread::scope(|scope| {
            for seed in 0..4 {
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed);
                    while Instant::now() < end {
                        let mut turn = turn.lock();
                        *turn += 1;
                        match random.u32(..4) {
                            0 => drop(changed.wait_for(&mut turn, Duration::from_micros(50))),
                            1 => drop(changed.notify_all()),
                            _ => {}
                        }
                        let mut held = (None, None, None, None);
                        let mut order = [0, 1, 2, 3];
                        random.shuffle(&mut order);
                        for lock in order {
                            match lock {
                                0 => held.0 = Some(first.lock()),
                                1 if held.2.is_none() => held.1 = Some(second.write()),
                                2 if held.1.is_none() => held.2 = Some(second.read()),
                                3 => held.3 = Some(third.lock().unwrap()),
                                _ => {}
                            }
                        }
                        // From here on it waits for nothing.
                        drop(turn);
                        rounds.fetch_add(1, SeqCst);
                        if let (Some(write), true) = (held.1.take(), random.bool()) {
                            held.2 = Some(RwLockWriteGuard::downgrade(write));
                        }
                        thread::yield_now();
                    }
                    running.fetch_sub(1, SeqCst);
                });
            }
            nothing_is_reported_until(|| running.load(SeqCst) == 0);
        });
        assert!(rounds.load(SeqCst) > 4);
    });
}

#[test]
fn a_cycle_with_a_deadline_in_it() {
    alone(|| {
        // Long enough for some hundreds of checks.
        let patience = Duration::from_millis(300);
        let (a, b) = (&Mutex::new(()), &RwLock::new(()));
        let (met, is_over) = (&Barrier::new(2), &AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                let _a = a.lock();
                met.wait();
                assert!(b.try_read_for(patience).is_none());
                is_over.store(true, SeqCst);
            });
            scope.spawn(|| {
                let _b = b.write();
                met.wait();
                drop(a.lock());
            });
            nothing_is_reported_until(|| is_over.load(SeqCst));
        });
    });
}

#[test]
fn locks_that_are_refused() {
    alone(|| {
        let is_over = &AtomicBool::new(false);
        let until = Instant::now() + Duration::from_millis(300);
        thread::scope(|scope| {
            scope.spawn(|| {
                let (checked, pi) = (CheckedMutex::new(()), PiMutex::new(()));
                let (_checked, _pi) = (checked.lock().unwrap(), pi.lock().unwrap());
                while Instant::now() < until {
                    assert_eq!(checked.lock().err(), Some(LockError::Deadlock));
                    assert_eq!(pi.lock().err(), Some(LockError::Deadlock));
                }
                is_over.store(true, SeqCst);
            });
            nothing_is_reported_until(|| is_over.load(SeqCst));
        });
    });
}

#[test]
fn a_lock_at_the_address_of_one_whose_guard_was_leaked() {
    alone(|| {
        for leaker_ends in [false, true] {
            at_the_address_of_a_leaked_one(leaker_ends);
        }
    });
}

/// One thread is recorded as the holder of a lock that is gone. Another thread holds the new lock
/// at its address. A third thread waits for that, and holds what the first one waits for.
fn at_the_address_of_a_leaked_one(leaker_ends: bool) {
    let mut place = Box::new(Mutex::new(()));
    let other = leaked(Mutex::new(()));
    thread::scope(|scope| {
        let (go_on, may_go_on) = mpsc::channel::<()>();
        let (has_leaked, leaked) = mpsc::channel::<()>();
        let place = &mut place;
        let leaker = thread::Builder::new();
        let address = std::ptr::from_mut(&mut **place).expose_provenance();
        let leaker = leaker
            .spawn_scoped(scope, move || {
                let old = std::ptr::with_exposed_provenance::<Mutex<()>>(address);
                // SAFETY: the mutex lives, and the main thread does not touch it until it gets the
                // message below.
                forget(unsafe { (*old).lock() });
                has_leaked.send(()).unwrap();
                if !leaker_ends {
                    may_go_on.recv().unwrap();
                    drop(other.lock());
                }
            })
            .unwrap();
        leaked.recv().unwrap();
        let mut leaker = Some(leaker);
        if leaker_ends {
            leaker.take().unwrap().join().unwrap();
        }
        **place = Mutex::new(());
        let place = &**place;
        let held = place.lock();
        let (has_other, holds_other) = mpsc::channel::<()>();
        let waiter = scope.spawn(move || {
            let _other = other.lock();
            has_other.send(()).unwrap();
            drop(place.lock());
        });
        holds_other.recv().unwrap();
        let _ = go_on.send(());
        // Each of them is found in a wait many times.
        let end = Instant::now() + Duration::from_millis(200);
        nothing_is_reported_until(|| Instant::now() > end);
        drop(held);
        waiter.join().unwrap();
    });
}

#[test]
fn a_mutex_that_another_thread_unlocks() {
    alone(|| {
        let (mutex, other) = (leaked(waitword::RawMutex::new()), leaked(Mutex::new(())));
        thread::scope(|scope| {
            mutex.lock();
            // SAFETY: locked just above, for this thread to unlock it.
            scope.spawn(|| unsafe { mutex.unlock() }).join().unwrap();
            // Still recorded as held by the main thread.
            let (locked, is_locked) = mpsc::channel::<()>();
            let (go_on, may_go_on) = mpsc::channel::<()>();
            scope.spawn(move || {
                mutex.lock();
                locked.send(()).unwrap();
                may_go_on.recv().unwrap();
                // SAFETY: locked above.
                unsafe { mutex.unlock() };
            });
            is_locked.recv().unwrap();
            let (has_other, holds_other) = mpsc::channel::<()>();
            scope.spawn(move || {
                let _other = other.lock();
                has_other.send(()).unwrap();
                mutex.lock();
                // SAFETY: locked just above.
                unsafe { mutex.unlock() };
            });
            holds_other.recv().unwrap();
            scope.spawn(move || {
                let end = Instant::now() + Duration::from_millis(200);
                nothing_is_reported_until(|| Instant::now() > end);
                go_on.send(()).unwrap();
            });
            drop(other.lock());
        });
    });
}
