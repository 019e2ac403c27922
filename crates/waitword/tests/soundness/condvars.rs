//! One condition variable with two mutexes, for every pair of kinds. The second one is refused
//! while threads wait with the first, before anything is unlocked, and accepted afterwards.

use super::LONG;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;
use waitword::{
    CheckedCondvar, CheckedMutex, Condvar, Deadline, FallibleCondvar, FallibleMutex, Flavour,
    LockError, Mutex, MutexOptions, PiCondvar, PiMutex, RawFallibleMutex, Scope,
};
use waitword_testkit::watch;

const FLAVOURS: [Flavour; 3] = [Flavour::Adaptive, Flavour::Throughput, Flavour::WaitWake];
const SCOPES: [Scope; 2] = [Scope::Private, Scope::Shared];

/// All options that a plain mutex can have.
fn every_option() -> impl Iterator<Item = MutexOptions> {
    FLAVOURS
        .into_iter()
        .flat_map(|flavour| SCOPES.map(|scope| MutexOptions::new().flavour(flavour).scope(scope)))
}

#[test]
fn a_second_plain_mutex_panics_with_the_first_call() {
    let _watchdog = watch();
    for options in every_option() {
        for others in every_option() {
            let (first, second) = (options.build(false), others.build(0));
            refuse_plain(&first, &second);
        }
    }
}

fn refuse_plain(first: &Mutex<bool>, second: &Mutex<u32>) {
    let condvar = Condvar::new();
    let (waits, waiting) = channel();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let mut go_on = first.lock();
            waits.send(()).unwrap();
            condvar.wait_while(&mut go_on, |go_on| !*go_on);
        });
        waiting.recv().unwrap();
        // The waiter has released it, and so waits.
        let mut go_on = first.lock();
        let mut other = second.lock();
        let refused = catch_unwind(AssertUnwindSafe(|| condvar.wait(&mut other)));
        assert!(refused.is_err());
        // The guard still holds its mutex.
        assert!(second.try_lock().is_none());
        *other += 1;
        *go_on = true;
        drop(go_on);
        condvar.notify_all();
        waiter.join().unwrap();
        assert!(condvar.wait_for(&mut other, Duration::ZERO).timed_out());
        assert_eq!(*other, 1);
    });
}

#[test]
fn a_second_fallible_mutex_is_an_error_of_the_first_call() {
    let _watchdog = watch();
    let checked = || every_option().map(|options| options.build_checked(false));
    for first in checked() {
        for second in checked() {
            refuse_fallible(&CheckedCondvar::new(), &first, &second);
        }
    }
    let inheriting = || SCOPES.map(|scope| PiMutex::with_scope(false, scope));
    for first in inheriting() {
        for second in inheriting() {
            refuse_fallible(&PiCondvar::new(), &first, &second);
        }
    }
}

fn refuse_fallible<R: RawFallibleMutex + Sync>(
    condvar: &FallibleCondvar<R>,
    first: &FallibleMutex<R, bool>,
    second: &FallibleMutex<R, bool>,
) {
    let (waits, waiting) = channel();
    *first.lock().unwrap() = false;
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let guard = first.lock().unwrap();
            waits.send(()).unwrap();
            condvar.wait_while(guard, |go_on| !*go_on).map(drop)
        });
        waiting.recv().unwrap();
        // Another waiter comes and leaves: that does not let the second mutex in.
        let go_on = first.lock().unwrap();
        let (mut go_on, _) = condvar.wait_for(go_on, Duration::from_millis(1)).unwrap();
        let refused = condvar.wait(second.lock().unwrap()).map(drop);
        assert_eq!(refused, Err(LockError::OtherMutex));
        let refused = condvar.wait_for(second.lock().unwrap(), LONG).map(drop);
        assert_eq!(refused, Err(LockError::OtherMutex));
        assert!(second.try_lock().is_ok(), "the error has unlocked it");
        *go_on = true;
        condvar.notify_all();
        drop(go_on);
        waiter.join().unwrap().unwrap();
    });
    let (_guard, timeout) = condvar.wait_for(second.lock().unwrap(), Duration::ZERO).unwrap();
    assert!(timeout.timed_out());
}

/// A condition variable whose user's closure panics is not left bound, and its mutex is not left
/// locked.
#[test]
fn a_panic_in_a_condition_unbinds_and_unlocks() {
    let _watchdog = watch();
    let (first, second) = (CheckedMutex::new(0), CheckedMutex::new(0));
    let condvar = CheckedCondvar::new();
    let panics = AssertUnwindSafe(|| {
        let mut calls = 0;
        let soon = Deadline::after(Duration::from_millis(1));
        let _ = condvar.wait_while_until(
            first.lock().unwrap(),
            |_| {
                calls += 1;
                if calls == 2 {
                    // Not `panic`: its message would be taken for a failure.
                    std::panic::resume_unwind(Box::new(()));
                }
                true
            },
            soon,
        );
    });
    assert!(catch_unwind(panics).is_err());
    assert!(first.try_lock().is_ok());
    let waited = condvar.wait_for(second.lock().unwrap(), Duration::ZERO);
    assert!(waited.unwrap().1.timed_out());
}

/// Threads count with a condition variable of each kind, signalled one by one and all at once.
#[test]
fn threads_take_turns_by_a_fallible_condvar() {
    let _watchdog = watch();
    fn take_turns<R: RawFallibleMutex + Sync>(
        mutex: &FallibleMutex<R, u32>,
        condvar: &FallibleCondvar<R>,
    ) {
        const THREADS: u32 = 4;
        const TURNS: u32 = 200;
        thread::scope(|scope| {
            for me in 0..THREADS {
                scope.spawn(move || {
                    for _ in 0..TURNS {
                        let mine = |turn: &mut u32| *turn % THREADS != me;
                        let guard = mutex.lock().unwrap();
                        let waited = condvar.wait_while_until(guard, mine, Deadline::after(LONG));
                        let (mut turn, timeout) = waited.unwrap();
                        assert!(!timeout.timed_out(), "a signal was lost");
                        *turn += 1;
                        drop(turn);
                        condvar.notify_all();
                    }
                });
            }
        });
        assert_eq!(*mutex.lock().unwrap(), THREADS * TURNS);
    }
    take_turns(&CheckedMutex::new(0), &CheckedCondvar::new());
    take_turns(&PiMutex::new(0), &PiCondvar::new());
}
