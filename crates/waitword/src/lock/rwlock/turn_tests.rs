//! How long a turn keeps readers out.
//!
//! Regression: a signal handler that ran made a reader start its wait again. (Another one: once a
//! re-check timer fired every second, each second doubled the turn, so a thread that read again
//! while it read, 6 s after a writer had begun to wait, waited 16 s. `policy_tests.rs`)

use super::tests::{leaked, start, until};
use super::word::Right;
use super::*;
use crate::Deadline;
use core::sync::atomic::Ordering::SeqCst;
use core::time::Duration;
use lock_api::RawRwLock as _;
use std::sync::mpsc::{TryRecvError, channel};
use std::time::Instant;

const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn a_disturbed_reader_does_not_start_its_wait_again() {
    extern "C" fn nothing(_: i32) {}
    // SAFETY: the handler does nothing. No other test of this program uses the signal.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(i32) as usize;
        libc::sigaction(libc::SIGWINCH, &action, core::ptr::null_mut());
    }
    let disturbed = [Scope::Private, Scope::Shared]
        .map(|scope| std::thread::spawn(move || read_again_while_disturbed(scope)));
    for done in disturbed {
        done.join().unwrap();
    }
}

fn read_again_while_disturbed(scope: Scope) {
    let lock = leaked(Preference::Reader, scope);
    assert!(lock.try_read().is_ok());
    // A turn of a second, whose owner waits for the reader.
    lock.word.fetch_or(State(0).with_turn(12).0, SeqCst);
    let (says, hears) = channel();
    let reader = std::thread::spawn(move || {
        // SAFETY: the call has no arguments and touches no memory.
        says.send(unsafe { libc::gettid() }).unwrap();
        lock.read(0, None)
    });
    let tid = hears.recv().unwrap();
    let began = Instant::now();
    while !reader.is_finished() {
        assert!(began.elapsed() < Duration::from_secs(20), "{scope:?}: {lock:?}");
        // SAFETY: the signal has a handler. If the thread has ended, the call does not find it.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, libc::SIGWINCH) };
        std::thread::sleep(Duration::from_millis(5));
    }
    reader.join().unwrap().unwrap();
    assert_eq!(lock.state().readers(), 2, "{lock:?}");
}

/// Regression: in a process-shared lock, a reader that went to sleep while a writer held the lock
/// was not woken if another thread had the turn when that writer left. It kept sleeping for as long
/// as the lock was then held upgradably, or for reading.
#[test]
fn readers_enter_although_another_thread_has_the_turn() {
    let reads_upgradably = |lock: &RawRwLock| lock.read_upgradably(None);
    let wants_to_write = |lock: &RawRwLock| lock.write(0, None);
    type Wants = fn(&RawRwLock) -> Result<(), RwLockError>;
    type Leaves = unsafe fn(&RawRwLock) -> Result<(), RwLockError>;
    let cases: [(&str, Wants, Leaves); 3] = [
        ("unlock", reads_upgradably, RawRwLock::unlock),
        ("downgrade", wants_to_write, RawRwLock::downgrade_checked),
        ("downgrade to upgradable", wants_to_write, RawRwLock::downgrade_to_upgradable_checked),
    ];
    for scope in [Scope::Private, Scope::Shared] {
        for (case, wants, leaves) in cases {
            let lock = leaked(Preference::Reader, scope);
            lock.write(0, None).unwrap();
            let hears = start(lock, move |lock| lock.read(0, None));
            until(lock, word::READERS_WAIT);
            std::thread::spawn(move || wants(lock));
            until(lock, word::TURN);
            // SAFETY: taken above.
            unsafe { leaves(lock) }.unwrap();
            let read = hears.recv_timeout(PATIENCE);
            assert_eq!(read, Ok(Ok(())), "{scope:?}, {case}: {lock:?}");
        }
    }
}

/// Regression: in a process-shared lock that prefers writers, a reader that had asked with the
/// right of a thread that may already read lost that right when its re-check timer first fired, and
/// then waited while a writer waited.
#[test]
fn a_recursive_reader_waits_only_while_a_writer_holds_the_lock() {
    for scope in [Scope::Private, Scope::Shared] {
        // In some rounds it sleeps already, and its timer has not fired yet.
        for round in 0..10 {
            let lock = leaked(Preference::Writer, scope);
            lock.write(0, None).unwrap();
            std::thread::spawn(move || lock.write(0, None));
            until(lock, word::WRITERS_WAIT);
            let hears = start(lock, move |lock| lock.read_recursive(0, None));
            until(lock, word::READERS_WAIT);
            std::thread::sleep(Duration::from_micros(100 * round));
            // SAFETY: taken above.
            unsafe { lock.downgrade_to_upgradable_checked() }.unwrap();
            let read = hears.recv_timeout(PATIENCE);
            assert_eq!(read, Ok(Ok(())), "{scope:?}, {round}: {lock:?}");
        }
    }
}

/// Regression: from the moment that a waiting writer's re-check timer fired until it had taken its
/// turn, the word showed neither that it waited nor that it had the turn, and a reader could enter.
/// So could a reader that had itself waited long, until the writer queued again.
#[test]
fn readers_stay_out_while_a_waiting_writer_is_awake() {
    type Wants = fn(&RawRwLock) -> Result<(), RwLockError>;
    let wants: [(&str, Wants); 2] = [
        ("writes", |lock| lock.write(0, None)),
        // SAFETY: the caller has acquired the upgradable lock for it.
        ("upgrades", |lock| unsafe { lock.upgrade_checked(0, None) }),
    ];
    for (case, wants) in wants {
        for round in 0..20 {
            let lock = leaked(Preference::Writer, Scope::Private);
            assert!(lock.try_read().is_ok());
            let announces = match case {
                "upgrades" => {
                    lock.read_upgradably(None).unwrap();
                    word::UPGRADE_WAITS
                }
                _ => word::WRITERS_WAIT,
            };
            let writer = std::thread::spawn(move || wants(lock));
            until(lock, announces);
            // A reader whose timer fires too.
            let (says, hears) = channel();
            std::thread::spawn(move || {
                lock.read(0, None).unwrap();
                says.send(()).unwrap();
                // SAFETY: taken above.
                unsafe { lock.unlock_shared() };
            });
            // Long enough for the first re-checks.
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(20) {
                let state = lock.state();
                let newcomer = state.admits_reader(Right::Newcomer);
                let has_waited = state.admits_reader(Right::Waited);
                assert!(!newcomer && !has_waited, "{case}, {round}: {lock:?}");
                assert_eq!(hears.try_recv(), Err(TryRecvError::Empty), "{case}, {round}");
            }
            // SAFETY: taken above.
            unsafe { lock.unlock_shared() };
            writer.join().unwrap().unwrap();
            // SAFETY: the writer holds it, and has ended.
            unsafe { lock.unlock_exclusive() };
            hears.recv_timeout(PATIENCE).unwrap();
        }
    }
}

/// Regression: in a process-shared lock that prefers readers, each re-check and each wake-up that
/// came too late put a writer behind all others, and a release woke the first writer in the
/// kernel's queue. Among 512 threads, one waited for 10 s while the others had 6,500 turns.
#[test]
fn of_writers_in_the_kernel_the_one_that_has_waited_for_longest_is_first() {
    const YOUNG: usize = 16;
    const ROUNDS: usize = 12;
    let mut firsts = 0;
    for round in 0..ROUNDS {
        let lock = leaked(Preference::Reader, Scope::Shared);
        assert!(lock.try_read().is_ok());
        let (says, hears) = channel();
        let write = |name: usize| {
            let says = says.clone();
            std::thread::spawn(move || {
                lock.write(0, None).unwrap();
                says.send(name).unwrap();
                // SAFETY: taken above.
                unsafe { lock.unlock_exclusive() };
            })
        };
        let until = |turn| {
            let began = Instant::now();
            while lock.state().turn() < turn {
                assert!(began.elapsed() < PATIENCE, "{round}: {lock:?}");
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        let mut writers = vec![write(YOUNG)];
        until(8);
        // The other writers come 170 ms before its timer fires next, and their timers fire before
        // that.
        std::thread::sleep(Duration::from_millis(100));
        writers.extend((0..YOUNG).map(write));
        until(9);
        // It sleeps again.
        std::thread::sleep(Duration::from_millis(10));
        // SAFETY: taken above.
        unsafe { lock.unlock_shared() };
        let first = hears.recv_timeout(PATIENCE).unwrap();
        firsts += usize::from(first == YOUNG);
        for writer in writers {
            writer.join().unwrap();
        }
    }
    // On a loaded machine it may be late, so that another thread's timer ends its turn.
    assert!(firsts >= ROUNDS * 3 / 4, "{firsts} of {ROUNDS}");
}

/// A killed process leaves behind the turn that one of its threads had.
#[test]
fn a_turn_in_the_kernel_whose_owner_is_gone_ends() {
    type Wants = fn(&RawRwLock) -> Result<(), RwLockError>;
    let wants: [(&str, Wants); 3] = [
        ("read", |lock| lock.read(0, None)),
        ("read upgradably", |lock| lock.read_upgradably(None)),
        ("write", |lock| lock.write(0, None)),
    ];
    for preference in [Preference::Reader, Preference::Writer] {
        for (case, wants) in wants {
            let lock = leaked(preference, Scope::Shared);
            // That thread had waited for 16 s. Under reader preference, readers wait for half as
            // long.
            let turn = match (case, preference) {
                ("read", Preference::Reader) => 8,
                _ => 15,
            };
            let left = State(word::WRITERS_WAIT).with_turn(turn);
            lock.word.fetch_or(left.0, SeqCst);
            let hears = start(lock, wants);
            let done = hears.recv_timeout(Duration::from_secs(4));
            assert_eq!(done, Ok(Ok(())), "{preference:?}, {case}: {lock:?}");
        }
    }
}

/// A reader that was let in comes late: the lock is free again, and kept for a writer.
#[test]
fn a_reader_does_not_take_a_free_lock_that_is_kept() {
    let lock = leaked(Preference::Reader, Scope::Shared);
    let kept = State(word::WRITERS_WAIT).with_turn(8);
    lock.word.fetch_or(kept.0, SeqCst);
    let hears = start(lock, move |lock| lock.wait_shared_in_kernel(Right::Holder, 0, None));
    assert_eq!(hears.recv_timeout(PATIENCE), Ok(Ok(())), "{lock:?}");
    // The reader slept until its timer fired, which ended the turn.
    assert_eq!(lock.state().turn(), 0, "{lock:?}");
}

/// Regression: each write of a process-shared lock that timed out woke all other writers.
#[test]
fn a_write_that_times_out_wakes_one_other() {
    const WRITERS: usize = 8;
    // So many that the switches caused by timers, about ten per writer, do not matter.
    const TIMED_OUT: usize = 100;
    let lock = leaked(Preference::Reader, Scope::Shared);
    assert!(lock.try_read().is_ok());
    let writers = [(); WRITERS].map(|()| {
        std::thread::spawn(move || {
            lock.write(0, None).unwrap();
            // SAFETY: taken above.
            unsafe { lock.unlock_exclusive() };
            // SAFETY: all zeros are a valid value of this C struct.
            let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
            // SAFETY: the struct lives for the whole call.
            let said = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
            assert_eq!(said, 0);
            usage.ru_nvcsw as usize
        })
    });
    let began = Instant::now();
    while lock.state().turn() < 6 {
        assert!(began.elapsed() < PATIENCE, "{lock:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
    for _ in 0..TIMED_OUT {
        let deadline = Deadline::after(Duration::from_millis(2));
        assert_eq!(lock.write(0, Some(&deadline)), Err(RwLockError::TimedOut));
    }
    // SAFETY: taken above.
    unsafe { lock.unlock_shared() };
    let switches: usize = writers.into_iter().map(|w| w.join().unwrap()).sum();
    // Each call that times out wakes one writer. Each writer's timer fires a few times too.
    assert!(
        switches < TIMED_OUT * WRITERS / 2,
        "{switches} switches of {WRITERS} writers, while {TIMED_OUT} calls timed out"
    );
}
