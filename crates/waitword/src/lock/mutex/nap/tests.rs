//! Naps at real mutexes.

use super::*;
use crate::atomic::Ordering;
use crate::lock::mutex::waiter::FromCondvar;
use crate::sys::interrupts::Interrupts;
use crate::{PosixFlavour, PosixMutexOptions, RawCondvar};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Runs `test` while another thread takes the lock again and again, past a successor. `section`
/// and `gap` are numbers of pause instructions.
fn beside_one(mutex: &RawPosixMutex, section: u32, gap: u32, test: impl FnOnce()) {
    let pause = |times| (0..times).for_each(|_| std::hint::spin_loop());
    mutex.set(State::with_successor);
    // Clears the record of an earlier mutex at this address.
    history::of(mutex).note_counted(0, 0);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !is_over.load(Relaxed) {
                let change = |change: fn(State) -> State| {
                    let state = mutex.state();
                    mutex.change(state, change(state), Ordering::Relaxed)
                };
                assert!(change(State::taken).is_ok());
                pause(section);
                assert!(change(State::released).is_ok());
                pause(gap);
            }
        });
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(test));
        is_over.store(true, Relaxed);
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// Whether the successor naps, sooner or later. (A sample in which this thread or the other had
/// no CPU is inconclusive.)
fn naps(mutex: &RawPosixMutex, deadline: Option<&Deadline>, patience: Duration) -> bool {
    let began = Instant::now();
    while began.elapsed() < patience {
        if due(mutex, deadline, now()) != 0 {
            return true;
        }
    }
    false
}

#[test]
fn the_successor_of_a_monopolized_lock_naps_unless_it_might_oversleep() {
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1) {
        return;
    }
    let mutex = RawPosixMutex::new();
    let interrupts = Interrupts::new();
    // SAFETY: `interrupts` outlives its last use.
    let left = unsafe { Deadline::brought_forward(None, &interrupts, true) };
    let timed = Deadline::after(Duration::from_secs(3600));
    beside_one(&mutex, 0, 0, || {
        let began = Instant::now();
        while !(is_monopolized(&mutex) && monopoly(&mutex).are_short()) {
            assert!(began.elapsed() < PATIENCE && naps(&mutex, None, PATIENCE));
            if monopoly(&mutex).is_saturated() {
                // The lock counts as saturated, too, and then turns are not counted.
                history::of(&mutex).note_counted(0, 0);
            }
        }
        // A wait of the drop-in, which has no deadline but may be interrupted.
        assert!(naps(&mutex, Some(&left), PATIENCE));
        assert!(!naps(&mutex, Some(&timed), Duration::from_millis(20)));
    });
}

/// The use is sampled only after a long time, and a sample in which the other thread had no CPU
/// is inconclusive.
const PATIENCE: Duration = Duration::from_secs(20);
/// Long enough for so many samples of the use that a saturation would have been found.
const LONG_ENOUGH: Duration = Duration::from_millis(200);

#[test]
fn the_successor_of_a_saturated_lock_naps() {
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1) {
        return;
    }
    let mutex = RawPosixMutex::new();
    beside_one(&mutex, 200, 20, || {
        let began = Instant::now();
        while !monopoly(&mutex).is_saturated() {
            assert!(began.elapsed() < PATIENCE && naps(&mutex, None, PATIENCE));
        }
    });
}

#[test]
fn a_saturated_lock_that_is_unused_when_naps_end_no_longer_counts_as_saturated() {
    let mutex = RawPosixMutex::new();
    let seen = Use { looks: 100, held: 80, turns: 8 };
    let (saturated, _) = Monopoly::default().with_use(Some(seen));
    let naps_end = |is_held: bool| {
        history::of(&mutex).note_counted(0, saturated.to_bits());
        (0..4).for_each(|_| note_end(&mutex, false));
        assert_eq!(monopoly(&mutex).is_saturated(), is_held);
    };
    naps_end(false);
    mutex.lock();
    naps_end(true);
}

/// Whether naps are on hold at a lock that is left alone and was taken in short turns before.
fn are_on_hold(mutex: &RawPosixMutex, is_elsewhere: bool) -> bool {
    let (short, _) = Monopoly::default().with(4, SAMPLE.as_nanos() as u64);
    history::of(mutex).note_counted(0, short.to_bits());
    (0..4).for_each(|_| note_end(mutex, is_elsewhere));
    !is_monopolized(mutex)
}

#[test]
fn naps_are_on_hold_at_an_unused_lock() {
    let mutex = RawPosixMutex::new();
    mutex.set(State::with_successor);
    // Threads may have waited for a condvar with an earlier mutex at this address.
    let began = Instant::now();
    while has_waited_lately(&mutex) {
        assert!(began.elapsed() < PATIENCE);
        std::thread::yield_now();
    }
    assert!(are_on_hold(&mutex, false));
    assert!(!are_on_hold(&mutex, true));
    history::note_wait(&mutex);
    assert!(!are_on_hold(&mutex, false));

    let held = RawPosixMutex::new();
    held.lock();
    assert!(!are_on_hold(&held, false));
}

/// In a nap the thread may move to another CPU. Such a nap is inconclusive.
#[test]
fn a_successor_that_naps_at_an_unused_lock_stops_napping() {
    let mutex = RawPosixMutex::new();
    mutex.set(State::with_successor);
    let (short, _) = Monopoly::default().with(4, SAMPLE.as_nanos() as u64);
    history::of(&mutex).note_counted(0, short.to_bits());
    let began = Instant::now();
    while is_monopolized(&mutex) {
        assert!(began.elapsed() < PATIENCE);
        sleep(&mutex, 20_000);
    }
}

#[test]
fn the_successor_of_a_lock_with_long_gaps_does_not_nap() {
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1) {
        return;
    }
    let unsaturated = RawPosixMutex::new();
    // In a single sample, a holder that loses its CPU in a section may look like one with long
    // sections.
    let stays_awake = || {
        let mut stays = false;
        beside_one(&unsaturated, 40, 200, || {
            stays = !naps(&unsaturated, None, LONG_ENOUGH);
        });
        stays
    };
    assert!((0..10).any(|_| stays_awake()));
}

/// Records that the lock was held for this many hundredths of the time.
fn note_use(mutex: &RawPosixMutex, held: u32) {
    let seen = Use { looks: 100, held, turns: 8 };
    let (known, _) = Monopoly::default().with_use(Some(seen));
    history::of(mutex).note_counted(0, known.to_bits());
}

/// Other tests change the state of the process, too. So this one repeats until the state is as
/// expected.
#[test]
fn beside_others_a_lock_is_monopolized_sooner() {
    let mutex = Box::new(RawPosixMutex::new());
    let is_saturated = |others_run_for: u64| {
        note_use(&mutex, 40);
        spin::pretend_to_be_beside_others(others_run_for);
        monopoly(&mutex).is_saturated()
    };
    let began = Instant::now();
    while !is_saturated(1_000_000_000) || is_saturated(0) {
        assert!(began.elapsed() < PATIENCE);
    }
}

/// A signalled thread is parked at a mutex that has a successor. Returns whether the holder
/// wakes it when it gives the mutex back to wait for another condvar.
fn is_woken_past_successor(is_monopolized: bool) -> bool {
    let mutex = Box::new(PosixMutexOptions::new().flavour(PosixFlavour::Throughput).build_raw());
    let (condvar, has_had_it) = (RawCondvar::new(), AtomicBool::new(false));
    let mut is_woken = false;
    std::thread::scope(|threads| {
        threads.spawn(|| {
            mutex.lock();
            // SAFETY: the mutex is held, and every waiter uses this mutex.
            unsafe { condvar.wait(&mutex, None) }.unwrap();
            has_had_it.store(true, Relaxed);
            // SAFETY: the mutex is held.
            unsafe { mutex.unlock() };
        });
        while !condvar.may_have_waiters() {
            std::thread::yield_now();
        }
        mutex.lock();
        assert!(condvar.notify_one());
        mutex.set(State::with_successor);
        note_use(&mutex, if is_monopolized { 80 } else { 20 });
        mutex.unlock_to_sleep(FromCondvar::ELSEWHERE);
        let began = Instant::now();
        let patience = if is_monopolized { PATIENCE } else { LONG_ENOUGH };
        while !is_woken && began.elapsed() < patience {
            is_woken = has_had_it.load(Relaxed);
            std::thread::yield_now();
        }
        mutex.lock();
        mutex.set(State::without_successor);
        // SAFETY: locked above.
        unsafe { mutex.unlock() };
    });
    is_woken
}

#[test]
fn a_thread_that_waits_for_a_condvar_wakes_another_past_a_successor_that_may_nap() {
    assert!(is_woken_past_successor(true));
    assert!(!is_woken_past_successor(false));
}
