//! Safe programs that must not reach the same memory twice, or reach it without the lock. None of
//! these uses `unsafe`.
//!
//! The first five were possible once (CHANGELOG, "Fixed"). Programs that must not compile are in
//! `tests/does_not_compile`.

#![deny(unsafe_code)]

#[allow(unsafe_code, reason = "the tests' own tools")]
mod condvars;
mod guards;

use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};
use waitword::{FallibleMutexGuard, LockError, PiCondvar, PiMutex};
use waitword_testkit::watch;

/// Long enough for every wait here that must succeed.
const LONG: Duration = Duration::from_secs(60);

/// Waits until threads that are about to lock this mutex, which is held, are queued in the kernel.
fn until_queued(mutex: &PiMutex<u64>) {
    // A test cannot observe that queue. A thread that is late finds the dead owner's ID in the
    // word, which leads to the same error.
    assert!(mutex.is_locked());
    thread::sleep(Duration::from_millis(100));
}

/// S1: a thread leaks its guard and ends while another thread waits. The kernel gives the lock to
/// the waiter.
#[test]
fn a_dead_owners_borrow_of_a_priority_inheriting_mutex_stays_exclusive() {
    let _watchdog = watch();
    static MUTEX: PiMutex<u64> = PiMutex::new(0);
    let (leaked, data) = channel();
    let (go, may_end) = channel::<()>();
    let owner = thread::spawn(move || {
        let data: &'static mut u64 = &mut *Box::leak(Box::new(MUTEX.lock().unwrap()));
        leaked.send(data).unwrap();
        may_end.recv().unwrap_err();
    });
    let data: &'static mut u64 = data.recv().unwrap();
    let waiters: Vec<_> =
        (0..2).map(|_| thread::spawn(|| MUTEX.lock_for(LONG).map(|guard| *guard))).collect();
    until_queued(&MUTEX);
    drop(go);
    owner.join().unwrap();
    *data = 1;
    for waiter in waiters {
        assert_eq!(waiter.join().unwrap(), Err(LockError::OwnerDied));
    }
    // Nor can any later lock call succeed.
    assert_eq!(MUTEX.lock().unwrap_err(), LockError::OwnerDied);
    assert_eq!(MUTEX.try_lock().unwrap_err(), LockError::OwnerDied);
    assert_eq!(MUTEX.lock_for(LONG).unwrap_err(), LockError::OwnerDied);
    assert_eq!(*data, 1);
}

/// S1, with no thread waiting when the owner ends: its ID stays in the word.
#[test]
fn a_dead_owner_without_waiters_is_detected() {
    let _watchdog = watch();
    static MUTEX: PiMutex<u64> = PiMutex::new(0);
    let leak = || std::mem::forget(MUTEX.lock().unwrap());
    thread::spawn(leak).join().unwrap();
    assert_eq!(MUTEX.try_lock().unwrap_err(), LockError::Busy);
    assert_eq!(MUTEX.lock().unwrap_err(), LockError::OwnerDied);
    assert_eq!(MUTEX.lock_for(LONG).unwrap_err(), LockError::OwnerDied);
}

/// S1, through a condition variable: a waiter that was moved to the mutex gets it from a dead
/// owner.
#[test]
fn a_signalled_waiter_gets_nothing_from_a_dead_owner() {
    let _watchdog = watch();
    static MUTEX: PiMutex<u64> = PiMutex::new(0);
    static CONDVAR: PiCondvar = PiCondvar::new();
    let waiter = thread::spawn(|| {
        let guard = MUTEX.lock().unwrap();
        CONDVAR.wait_while(guard, |value| *value == 0).map(drop)
    });
    let owner = thread::spawn(|| {
        // Once the waiter sleeps.
        thread::sleep(Duration::from_millis(100));
        let mut guard = MUTEX.lock().unwrap();
        *guard = 1;
        CONDVAR.notify_all();
        std::mem::forget(guard);
    });
    owner.join().unwrap();
    assert_eq!(waiter.join().unwrap(), Err(LockError::OwnerDied));
}

/// S3: the mutex of a wait cannot be locked again, because its owner waits for another mutex that
/// this thread holds.
#[test]
fn a_wait_that_cannot_lock_its_mutex_again_returns_no_guard() {
    let _watchdog = watch();
    static CONDVAR: PiCondvar = PiCondvar::new();
    static FIRST: PiMutex<u64> = PiMutex::new(0);
    static SECOND: PiMutex<u64> = PiMutex::new(0);
    let (waits, waiting) = channel();
    let waiter = thread::spawn(move || {
        let second = SECOND.lock().unwrap();
        let first = FIRST.lock().unwrap();
        waits.send(()).unwrap();
        let waited = CONDVAR.wait_for(first, Duration::from_millis(500));
        let waited = waited.map(|(guard, _)| drop(guard));
        // `first` is gone with the error, which reports that the other thread holds the mutex.
        let held = FIRST.try_lock().map(drop);
        drop(second);
        (waited, held)
    });
    waiting.recv().unwrap();
    let other = thread::spawn(|| {
        let first = FIRST.lock().unwrap();
        // Waits for the waiter, which will wait for this thread.
        drop(SECOND.lock().unwrap());
        drop(first);
    });
    let (waited, held) = waiter.join().unwrap();
    other.join().unwrap();
    assert_eq!(waited, Err(LockError::Deadlock));
    assert_eq!(held, Err(LockError::Busy));
    // Both mutexes and the condition variable work as before.
    let guard = FIRST.lock().unwrap();
    let (guard, timeout) = CONDVAR.wait_for(guard, Duration::ZERO).unwrap();
    assert!(timeout.timed_out());
    drop(guard);
    drop(SECOND.lock().unwrap());
}

/// S4: a second mutex is refused at the call, and threads that wait with the first one are
/// signalled as usual.
#[test]
fn a_second_priority_inheriting_mutex_is_refused_before_anything_waits() {
    let _watchdog = watch();
    static CONDVAR: PiCondvar = PiCondvar::new();
    static FIRST: PiMutex<bool> = PiMutex::new(false);
    static SECOND: PiMutex<bool> = PiMutex::new(false);
    let (waits, waiting) = channel();
    let waiter = thread::spawn(move || {
        let guard = FIRST.lock().unwrap();
        waits.send(()).unwrap();
        CONDVAR.wait_while(guard, |go_on| !*go_on).map(drop)
    });
    waiting.recv().unwrap();
    let mut go_on = FIRST.lock().unwrap();
    let refused = CONDVAR.wait(SECOND.lock().unwrap()).map(drop);
    assert_eq!(refused, Err(LockError::OtherMutex));
    assert!(SECOND.try_lock().is_ok(), "the refused guard is gone");
    *go_on = true;
    CONDVAR.notify_all();
    drop(go_on);
    waiter.join().unwrap().unwrap();
    // With no waiter, another mutex is accepted.
    let guard = SECOND.lock().unwrap();
    let later = Instant::now();
    let (guard, timeout) = CONDVAR.wait_until(guard, later).unwrap();
    assert!(timeout.timed_out());
    assert!(std::ptr::eq(FallibleMutexGuard::mutex(&guard), &SECOND));
}
