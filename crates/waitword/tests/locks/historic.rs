//! Bugs of other mutexes and condvars, each as a test. A lost wake-up hangs, and the watchdog
//! reports which thread waits.

use super::*;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use waitword_testkit::{Answer, Child, Crew, Mapping, fork};

/// Those where the kernel's queue or ours decides, not timing.
fn private_pairings() -> impl Iterator<Item = Pairing> {
    every_normal_pairing().filter(|pairing| {
        pairing.condvar == Scope::Private && pairing.mutex.scope == Scope::Private
    })
}

fn answer_of(waited: Result<(), LockError>) -> Answer {
    waited.map(|()| 0).map_err(LockError::raw_os_error)
}

/// How much CPU time a thread of ours has used, in ticks of 10 ms.
fn ticks(thread: i32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
    // After the name, which may contain anything, `utime` and `stime` are the 12th and the 13th
    // field.
    let numbers = stat.rsplit(')').next().unwrap().split_whitespace();
    let ticks = numbers.skip(11).take(2);
    ticks.map(|number| number.parse::<u64>().unwrap()).sum()
}

/// Drepper's mutex 1 ("Futexes are tricky", 2004): each waiter changed the word and so kept the
/// others from falling asleep. Two of them kept each other busy for as long as the lock was held,
/// and could make the count overflow.
#[test]
fn drepper_mutex_1_waiters_keep_each_other_awake() {
    let mut crew = Crew::new(4);
    for sort in every_normal_sort() {
        let mutex = Arc::new(sort.make());
        mutex.lock();
        crew.order_each(0..4, sort.entries(), &mutex, move |waiting| {
            waiting.lock();
            unlock(waiting);
            Ok(0)
        });
        // Settled: each of them sleeps, and continues to, whatever other threads come and go.
        assert_eq!(crew.settle(), [], "{sort:?}");
        for _ in 0..3 {
            let soon = Deadline::after(Duration::from_micros(200));
            if !sort.has_owner() {
                assert_eq!(mutex.lock_until(soon), Err(LockError::TimedOut));
            }
            assert_eq!(crew.settle(), [], "{sort:?}");
        }
        unlock(&mutex);
        crew.until_back(4);
    }
}

/// The same observed from outside: waiting threads use no CPU time.
#[test]
fn drepper_mutex_1_waiters_burn_no_time() {
    with_every(every_normal_sort(), |sort| {
        let mutex = sort.make();
        mutex.lock();
        std::thread::scope(|scope| {
            let (hello, threads) = std::sync::mpsc::channel();
            for _ in 0..4 {
                let (mutex, hello) = (&mutex, hello.clone());
                scope.spawn(move || {
                    let thread = rustix::thread::gettid().as_raw_nonzero().get();
                    hello.send(thread).unwrap();
                    mutex.lock();
                    unlock(mutex);
                });
            }
            let threads: Vec<i32> = threads.iter().take(4).collect();
            // Until all have come to rest.
            std::thread::sleep(Duration::from_millis(20));
            let burnt = || threads.iter().map(|&thread| ticks(thread)).sum::<u64>();
            let before = burnt();
            std::thread::sleep(Duration::from_millis(80));
            // Waiters that keep each other awake use a CPU for all that time, if they get one.
            assert!(burnt() - before <= 2);
            unlock(&mutex);
        });
    });
}

/// Drepper's mutex 2 is correct because a thread that has waited takes the lock as contended. If it
/// took it as uncontended, the next unlock would wake no thread, and the threads that sleep behind
/// it would sleep on. No later thread wakes them.
#[test]
fn drepper_mutex_2_a_waker_forgets_the_other_sleepers() {
    const THREADS: usize = 5;
    let mut crew = Crew::new(THREADS);
    for sort in every_sort() {
        for timed in [false, true] {
            let mutex = Arc::new(sort.make());
            mutex.lock();
            crew.line_up(0..THREADS, sort.entries(), &mutex, move |waiting| {
                let ample = Deadline::after(Duration::from_secs(1000));
                match timed {
                    true => assert_eq!(waiting.lock_until(ample), Ok(())),
                    false => waiting.lock(),
                }
                unlock(waiting);
                Ok(0)
            });
            unlock(&mutex);
            // A thread that overtakes them as they wake up.
            if mutex.try_lock() {
                unlock(&mutex);
            }
            crew.until_back(THREADS);
            assert_eq!(mutex.destroy(), Ok(()), "{sort:?}");
        }
    }
}

/// Zig #12877: a broadcast was as many signals as there were waiters. A waiter that returned and
/// waited again at once took two of them, and another waiter got none.
#[test]
fn zig_12877_a_broadcast_wakes_the_same_thread_twice() {
    with_every(every_normal_pairing(), |pairing| {
        const THREADS: usize = 5;
        const ROUNDS: usize = 60;
        let pair = pairing.make();
        let round = AtomicUsize::new(0);
        let came = [(); THREADS].map(|()| AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for came in &came {
                let (pair, round) = (&pair, &round);
                scope.spawn(move || {
                    pair.mutex.lock();
                    for mine in 1..=ROUNDS {
                        pair.waiting.fetch_add(1, SeqCst);
                        while round.load(SeqCst) < mine {
                            pair.wait_until(None).unwrap();
                        }
                        came.fetch_add(1, SeqCst);
                        // At once to the next round, with the mutex held all the time.
                    }
                    unlock(&pair.mutex);
                });
            }
            for next in 1..=ROUNDS {
                pair.until_waiting(next * THREADS);
                pair.mutex.lock();
                round.store(next, SeqCst);
                let woken = pair.condvar.notify_all();
                unlock(&pair.mutex);
                if pairing.is_in_table() {
                    assert_eq!(woken, THREADS);
                }
            }
        });
        assert!(came.iter().all(|came| came.load(SeqCst) == ROUNDS));
    });
}

/// Go's semaphores and notes, early versions: a thread was made ready both by a wake and by its
/// timeout. Here: a signal that found a waiter and a deadline that passed at the same time are two
/// different waits, and each lock is one turn.
#[test]
fn go_double_wake_a_deadline_meets_a_wake() {
    with_every(private_pairings(), |pairing| {
        const WAITS: usize = 400;
        let pair = pairing.make();
        let (over, inside) = (AtomicBool::new(false), AtomicUsize::new(0));
        let (signalled, found) = std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let mut signalled = 0;
                for wait in 0..WAITS {
                    pair.mutex.lock();
                    let soon = Deadline::after(Duration::from_micros(wait as u64 % 40));
                    signalled += usize::from(pair.wait_until(Some(soon)).is_ok());
                    assert_eq!(inside.fetch_add(1, SeqCst), 0, "two have the mutex");
                    inside.fetch_sub(1, SeqCst);
                    unlock(&pair.mutex);
                }
                over.store(true, SeqCst);
                signalled
            });
            let mut found = 0;
            while !over.load(SeqCst) {
                let soon = Deadline::after(Duration::from_micros(found as u64 % 20));
                if pair.mutex.lock_until(soon).is_ok() {
                    assert_eq!(inside.fetch_add(1, SeqCst), 0, "two have the mutex");
                    found += usize::from(pair.condvar.notify_one());
                    inside.fetch_sub(1, SeqCst);
                    unlock(&pair.mutex);
                }
                found += usize::from(pair.condvar.notify_one());
            }
            (waiter.join().unwrap(), found)
        });
        if pairing.is_in_table() {
            assert_eq!(signalled, found);
        }
    });
}

/// parking_lot #465: a waiter that timed out cleared the parked bit after it had released the
/// bucket's lock, and so cleared the mark of a waiter that had come meanwhile.
#[test]
fn parking_lot_465_a_timeout_clears_another_s_mark() {
    with_every(every_normal_sort(), |sort| {
        const ROUNDS: usize = 300;
        let mutex = sort.make();
        let (round, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let until = |counter: &AtomicUsize, value| {
            while counter.load(SeqCst) < value {
                std::thread::yield_now();
            }
        };
        std::thread::scope(|scope| {
            for patient in [false, true] {
                let (mutex, round, done, until) = (&mutex, &round, &done, &until);
                scope.spawn(move || {
                    for now in 1..=ROUNDS {
                        until(round, now);
                        // The one comes as the other's time is over.
                        (0..now % 300).for_each(|_| std::hint::spin_loop());
                        let soon = Deadline::after(Duration::from_micros(now as u64 % 60));
                        if patient {
                            mutex.lock();
                            unlock(mutex);
                        } else if mutex.lock_until(soon).is_ok() {
                            unlock(mutex);
                        }
                        done.fetch_add(1, SeqCst);
                    }
                });
            }
            for now in 1..=ROUNDS {
                mutex.lock();
                round.store(now, SeqCst);
                std::thread::sleep(Duration::from_micros(now as u64 % 80));
                unlock(&mutex);
                // No other thread comes: a sleeping thread must have been woken.
                until(&done, 2 * now);
            }
        });
        assert_eq!(mutex.destroy(), Ok(()));
    });
}

/// glibc 13165: a thread that began to wait after a signal took the signal from the waiter that it
/// was meant for.
#[test]
fn glibc_13165_a_late_waiter_takes_the_signal() {
    let mut crew = Crew::new(3);
    for pairing in every_normal_pairing() {
        for with_mutex in [false, true] {
            for _ in 0..5 {
                let pair = Arc::new(pairing.make());
                let wait = |pair: &Arc<Pair>| {
                    let pair = pair.clone();
                    move || answer_of(pair.wait_once(None))
                };
                crew.order(0, pairing.entries(), wait(&pair));
                assert_eq!(crew.settle(), []);
                if with_mutex {
                    pair.mutex.lock();
                }
                assert!(pair.condvar.notify_one());
                if with_mutex {
                    unlock(&pair.mutex);
                }
                // Both come as the first one is on its way back.
                crew.order(1, pairing.entries(), wait(&pair));
                crew.order(2, pairing.entries(), wait(&pair));
                assert_eq!(crew.settle_with(0), [(0, Ok(0))], "{pairing:?}");
                assert_eq!(crew.busy(), [1, 2]);
                assert_eq!(pair.condvar.notify_all(), 2);
                crew.until_back(2);
            }
        }
    }
}

/// glibc 25847 (2.25 to 2.40), in the shape of Skarupke's model and of the reproducer of Mina
/// #18654: a few waiters, and a signaller that hands out work piece by piece and waits until it is
/// done. The waiters of a new group took signals of the old one, put one back for the wrong group,
/// and all threads slept although there was work.
#[test]
fn glibc_25847_a_signal_is_lost_as_groups_change() {
    with_every(every_normal_pairing(), |pairing| {
        const WORKERS: usize = 4;
        const ROUNDS: usize = 400;
        /// Given to each worker at the end.
        const END: usize = usize::MAX / 2;
        let pair = pairing.make();
        let done = RawCondvar::with_scope(pairing.condvar);
        let finished = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..WORKERS {
                scope.spawn(|| {
                    loop {
                        pair.mutex.lock();
                        while pair.ready.load(SeqCst) == 0 {
                            pair.wait_until(None).unwrap();
                        }
                        if pair.ready.load(SeqCst) >= END {
                            unlock(&pair.mutex);
                            return;
                        }
                        pair.ready.fetch_sub(1, SeqCst);
                        finished.fetch_add(1, SeqCst);
                        done.notify_one();
                        unlock(&pair.mutex);
                    }
                });
            }
            let mut given = 0;
            for round in 0..ROUNDS {
                // From one piece to more than there are workers: some groups are used up, some are
                // not.
                let pieces = round % (WORKERS + 2) + 1;
                for _ in 0..pieces {
                    pair.mutex.lock();
                    pair.ready.fetch_add(1, SeqCst);
                    given += 1;
                    if round % 2 == 0 {
                        pair.condvar.notify_one();
                        unlock(&pair.mutex);
                    } else {
                        unlock(&pair.mutex);
                        pair.condvar.notify_one();
                    }
                }
                pair.mutex.lock();
                while finished.load(SeqCst) < given {
                    // SAFETY: the mutex is held, and there is no other.
                    unsafe { done.wait(&pair.mutex, None) }.unwrap();
                }
                unlock(&pair.mutex);
            }
            pair.add(END);
            pair.condvar.notify_all();
        });
    });
}

/// OSRM #3911, glibc 21422: state of dead processes was left in a condvar in shared memory, and a
/// broadcast by a new process waited for them forever.
#[test]
fn osrm_3911_a_broadcast_waits_for_the_dead() {
    let shared = every_normal_pairing().filter(|pairing| {
        pairing.condvar == Scope::Shared
            && pairing.mutex.scope == Scope::Shared
            && !pairing.mutex.is_pi()
    });
    with_every(shared, |pairing| {
        let memory = Mapping::anonymous(4096);
        // SAFETY: a fresh page.
        let pair: &Pair = unsafe {
            memory.at::<Pair>(0).write(pairing.make());
            &*memory.at(0)
        };
        for _ in 0..3 {
            let dead = [(); 3].map(|()| fork(|| pair.wait_once(None).map_or(1, |()| 0)));
            dead.iter().for_each(Child::until_asleep);
            dead.into_iter().for_each(Child::kill);
        }
        // New processes, which know nothing of that.
        for all in [false, true, true] {
            let waiters = [(); 3].map(|()| {
                fork(|| {
                    pair.take();
                })
            });
            pair.until_waiting(3);
            pair.add(3);
            if all {
                pair.condvar.notify_all();
            } else {
                (0..3).for_each(|_| _ = pair.condvar.notify_one());
            }
            assert_eq!(waiters.map(Child::join), [0; 3]);
        }
    });
}
