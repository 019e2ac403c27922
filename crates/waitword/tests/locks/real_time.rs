//! Real-time threads: which waiter gets a mutex, however it is released, for every flavour, kind
//! and scope. (For what C programs observe: `crates/waitword-pthread/conformance/real_time.c`.)

use super::*;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Barrier, Mutex, MutexGuard};
use std::thread::{Scope as Threads, ScopedJoinHandle};
use std::time::Duration;
use waitword::spin;
use waitword_testkit::SleepProbe;

/// The priority of a thread that is not real-time.
const ORDINARY: i32 = 0;
/// The priority of a thread that is above all others in a test.
const DIRECTOR: i32 = 60;

/// Real-time threads of two tests would disturb each other.
static TURN: Mutex<()> = Mutex::new(());

/// Makes the calling thread a real-time thread, or an ordinary one. Returns whether that is
/// permitted.
fn set_priority(priority: i32) -> bool {
    let policy = match priority {
        ORDINARY => libc::SCHED_OTHER,
        _ => libc::SCHED_FIFO,
    };
    waitword_testkit::thread::set_policy(policy, priority)
}

/// The right to use real-time threads; `None` if they are not permitted.
fn real_time_threads() -> Option<MutexGuard<'static, ()>> {
    let turn = TURN.lock().unwrap_or_else(|broken| broken.into_inner());
    let permitted = std::thread::spawn(|| set_priority(1)).join().unwrap();
    if !permitted {
        eprintln!("SKIPPED: SCHED_FIFO is not permitted here");
    }
    permitted.then_some(turn)
}

/// The order in which threads were served, by their priorities.
#[derive(Default)]
struct Served(Mutex<Vec<i32>>);

impl Served {
    fn note(&self, priority: i32) {
        self.0.lock().unwrap().push(priority);
    }

    fn order(&self) -> Vec<i32> {
        self.0.lock().unwrap().clone()
    }
}

/// Starts a thread of this priority. Returns once it sleeps in a futex call.
fn arrive<'scope>(
    threads: &'scope Threads<'scope, '_>,
    priority: i32,
    work: impl FnOnce() + Send + 'scope,
) -> ScopedJoinHandle<'scope, ()> {
    let (send, receive) = channel();
    let thread = threads.spawn(move || {
        assert!(set_priority(priority));
        send.send(SleepProbe::of_this_thread()).unwrap();
        work();
    });
    let probe = receive.recv().unwrap();
    // It may sleep briefly in the channel, or for a bucket: it must stay asleep for some time.
    let mut before = None;
    loop {
        std::thread::sleep(Duration::from_millis(2));
        let sleeps = probe.sleeps_in_futex_call();
        if sleeps.is_some() && sleeps == before {
            return thread;
        }
        before = sleeps;
    }
}

/// How the holder releases a mutex.
type GivesBack = fn(&RawPosixMutex);

fn unlock_fairly(mutex: &RawPosixMutex) {
    // SAFETY: every caller has locked it.
    unsafe { mutex.unlock_fair() };
}

/// The order in which threads of these priorities are served, which arrive one after another while
/// the mutex is held.
fn order_of(mutex: &RawPosixMutex, priorities: &[i32], gives_back: GivesBack) -> Vec<i32> {
    let served = Served::default();
    mutex.lock();
    std::thread::scope(|threads| {
        let served = &served;
        for &priority in priorities {
            arrive(threads, priority, move || {
                mutex.lock();
                served.note(priority);
                gives_back(mutex);
            });
        }
        gives_back(mutex);
    });
    served.order()
}

const ARRIVALS: [i32; 6] = [ORDINARY, 5, 10, 20, 15, 7];
const BY_PRIORITY: [i32; 6] = [20, 15, 10, 7, 5, ORDINARY];

fn is_in_order(gives_back: GivesBack) {
    let Some(_turn) = real_time_threads() else {
        return;
    };
    with_every(every_sort(), |sort| {
        let mutex = sort.make();
        assert_eq!(order_of(&mutex, &ARRIVALS, gives_back), BY_PRIORITY);
        assert_eq!(mutex.destroy(), Ok(()), "{mutex:?}");
    });
}

#[test]
fn an_unlock_serves_the_highest_priority() {
    is_in_order(unlock);
}

#[test]
fn a_fair_unlock_serves_the_highest_priority() {
    is_in_order(unlock_fairly);
}

#[test]
fn a_bump_serves_the_highest_priority() {
    let Some(_turn) = real_time_threads() else {
        return;
    };
    // Other sorts cannot be given away by a bump, or go to a thread that the kernel chooses.
    let in_table = |sort: &Sort| sort.scope == Scope::Private && !sort.is_pi();
    with_every(every_sort().filter(in_table), |sort| {
        let mutex = sort.make();
        let served = Served::default();
        mutex.lock();
        std::thread::scope(|threads| {
            let (mutex, served) = (&mutex, &served);
            for priority in [ORDINARY, 5, 20] {
                arrive(threads, priority, move || {
                    mutex.lock();
                    served.note(priority);
                    unlock(mutex);
                });
            }
            // SAFETY: locked above.
            unsafe { mutex.bump() };
            assert_eq!(served.order().first(), Some(&20));
            unlock(mutex);
        });
    });
}

/// An ordinary thread that unlocks does not keep the mutex from a real-time thread by being faster.
#[test]
fn a_real_time_thread_is_handed_the_mutex() {
    let Some(_turn) = real_time_threads() else {
        return;
    };
    let in_table = |sort: &Sort| sort.scope == Scope::Private;
    with_every(every_sort().filter(in_table), |sort| {
        let mutex = sort.make();
        let over = AtomicBool::new(false);
        mutex.lock();
        std::thread::scope(|threads| {
            arrive(threads, 10, || {
                mutex.lock();
                while !over.load(SeqCst) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                unlock(&mutex);
            });
            unlock(&mutex);
            let had = mutex.try_lock();
            if had {
                unlock(&mutex);
            }
            over.store(true, SeqCst);
            assert!(!had, "an ordinary thread was let in before");
        });
    });
}

/// Binds the calling thread, and all threads that it starts, to one CPU.
fn use_one_cpu() {
    let allowed = sched_getaffinity(None).unwrap();
    let mut one = CpuSet::new();
    one.set((0..CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu)).unwrap());
    sched_setaffinity(None, &one).unwrap();
}

/// The mutex is free, and reserved for an ordinary thread that was woken but gets no CPU.
#[test]
fn a_real_time_thread_takes_what_is_reserved_for_another() {
    let Some(_turn) = real_time_threads() else {
        return;
    };
    let can_be_reserved = |sort: &Sort| sort.scope == Scope::Private && !sort.is_pi();
    use_one_cpu();
    // A waiter that may stay awake, because another test has shown two CPUs, takes the mutex after
    // 2 µs anyway.
    let budget = spin::budget();
    spin::set_budget(Duration::ZERO);
    with_every(every_sort().filter(can_be_reserved), |sort| {
        // A waiter that loses its CPU for long on its way to sleep is handed the mutex. Then this
        // tries again.
        let reserved = (0..20).any(|_| take_what_is_reserved(sort));
        assert!(reserved, "always handed over");
    });
    spin::set_budget(budget);
}

/// Returns false if the mutex was handed off instead.
fn take_what_is_reserved(sort: Sort) -> bool {
    let mutex = sort.make();
    let served = Served::default();
    let take = |priority| {
        mutex.lock();
        served.note(priority);
        unlock(&mutex);
    };
    assert!(set_priority(DIRECTOR));
    mutex.lock();
    let (is_there, may_start) = (&Barrier::new(2), &AtomicBool::new(false));
    let reserved = std::thread::scope(|threads| {
        // It is made now: making a thread may wait for a lock of the kernel, and the ordinary
        // thread would run meanwhile.
        let high = threads.spawn(move || {
            assert!(set_priority(DIRECTOR - 10));
            is_there.wait();
            while !may_start.load(SeqCst) {
                std::thread::park();
            }
            take(DIRECTOR - 10);
        });
        let start_high = || {
            may_start.store(true, SeqCst);
            high.thread().unpark();
        };
        is_there.wait();
        arrive(threads, ORDINARY, || take(ORDINARY));
        // From here on no ordinary thread runs until this one sleeps.
        unlock(&mutex);
        if !mutex.try_lock() {
            start_high();
            return false;
        }
        unlock_fairly(&mutex);
        assert!(!mutex.is_locked());
        start_high();
        high.join().unwrap();
        true
    });
    assert!(set_priority(ORDINARY));
    if reserved {
        assert_eq!(served.order(), [DIRECTOR - 10, ORDINARY]);
    }
    reserved
}

/// Real-time threads that are moved from a condvar, and one that waits for the mutex, too.
#[test]
fn moved_waiters_are_served_by_priority() {
    let Some(_turn) = real_time_threads() else {
        return;
    };
    let in_table =
        |pairing: &Pairing| pairing.is_in_table() && pairing.mutex.scope == Scope::Private;
    with_every(every_pairing().filter(in_table), |pairing| {
        let pair = pairing.make();
        let served = Served::default();
        std::thread::scope(|threads| {
            let (pair, served) = (&pair, &served);
            for priority in ARRIVALS {
                arrive(threads, priority, move || {
                    pair.mutex.lock();
                    pair.wait_until(None).unwrap();
                    served.note(priority);
                    unlock(&pair.mutex);
                });
            }
            pair.mutex.lock();
            arrive(threads, 12, move || {
                pair.mutex.lock();
                served.note(12);
                unlock(&pair.mutex);
            });
            // Some by signals, the others by a broadcast.
            assert!(pair.condvar.notify_one());
            assert!(pair.condvar.notify_one());
            assert_eq!(pair.condvar.notify_all(), ARRIVALS.len() - 2);
            unlock(&pair.mutex);
        });
        assert_eq!(served.order(), [20, 15, 12, 10, 7, 5, ORDINARY]);
    });
}
