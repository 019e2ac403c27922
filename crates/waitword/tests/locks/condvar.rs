//! The answer of each call on a condvar, with mutexes of every flavour, kind and scope, and which
//! waiters a signal wakes.

use super::*;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use waitword::Clock;
use waitword_testkit::{Answer, Crew};

fn deadlines() -> [Deadline; 4] {
    let soon = Duration::from_millis(3);
    [
        Deadline::after(soon),
        Deadline::at_system_time(SystemTime::now() + soon),
        Deadline::at(Clock::Monotonic, Duration::from_nanos(1)),
        Deadline::at(Clock::Realtime, Duration::from_nanos(1)),
    ]
}

fn answer_of(waited: Result<(), LockError>) -> Answer {
    waited.map(|()| 0).map_err(LockError::raw_os_error)
}

/// Each thread of the crew waits, one after another.
fn all_wait(crew: &mut Crew, threads: usize, pairing: Pairing, pair: &Arc<Pair>) {
    crew.line_up(0..threads, pairing.entries(), pair, move |pair| answer_of(pair.wait_once(None)));
}

fn woken(workers: std::ops::Range<usize>) -> Vec<(usize, Answer)> {
    workers.map(|worker| (worker, Ok(0))).collect()
}

#[test]
fn a_signal_without_waiters_is_not_kept() {
    with_every(every_pairing(), |pairing| {
        let pair = pairing.make();
        for _ in 0..2 {
            assert!(!pair.condvar.notify_one());
            assert_eq!(pair.condvar.notify_all(), 0);
            let soon = Some(Deadline::after(Duration::from_micros(100)));
            assert_eq!(pair.wait_once(soon), Err(LockError::TimedOut));
        }
        assert_eq!(pair.condvar.destroy(), Ok(()));
    });
}

#[test]
fn a_deadline_passes_on_both_clocks() {
    with_every(every_pairing(), |pairing| {
        let pair = pairing.make();
        for deadline in deadlines() {
            pair.mutex.lock();
            assert_eq!(pair.wait_until(Some(deadline)), Err(LockError::TimedOut));
            assert!(deadline.has_passed());
            assert!(pair.mutex.is_locked(), "it comes back with the mutex");
            unlock(&pair.mutex);
            assert!(!pair.condvar.notify_one());
        }
        assert_eq!(pair.condvar.destroy(), Ok(()));
        assert_eq!(pair.mutex.destroy(), Ok(()));
    });
}

/// A signal wakes one waiter, not two, and in order of arrival.
#[test]
fn signals_wake_one_by_one_in_order() {
    const THREADS: usize = 4;
    let mut crew = Crew::new(THREADS);
    for pairing in every_pairing() {
        for with_mutex in [false, true] {
            let pair = Arc::new(pairing.make());
            all_wait(&mut crew, THREADS, pairing, &pair);
            for worker in 0..THREADS {
                if with_mutex {
                    pair.mutex.lock();
                }
                assert!(pair.condvar.notify_one(), "{pairing:?}");
                if with_mutex {
                    unlock(&pair.mutex);
                }
                let back = crew.settle_with(worker);
                assert_eq!(back, woken(worker..worker + 1), "{pairing:?}");
            }
            assert!(!pair.condvar.notify_one());
            assert_eq!(pair.condvar.destroy(), Ok(()));
            assert_eq!(pair.mutex.destroy(), Ok(()), "{pairing:?}");
        }
    }
}

/// (SerenityOS #23669: `pthread_cond_broadcast` woke one waiter.)
#[test]
fn a_broadcast_wakes_all() {
    const THREADS: usize = 6;
    let mut crew = Crew::new(THREADS);
    for pairing in every_pairing() {
        for with_mutex in [false, true] {
            for signals_before in [0, 2] {
                let pair = Arc::new(pairing.make());
                all_wait(&mut crew, THREADS, pairing, &pair);
                for worker in 0..signals_before {
                    assert!(pair.condvar.notify_one());
                    assert_eq!(crew.settle_with(worker), woken(worker..worker + 1));
                }
                if with_mutex {
                    pair.mutex.lock();
                }
                let all = pair.condvar.notify_all();
                assert_eq!(all, THREADS - signals_before, "{pairing:?}");
                if with_mutex {
                    unlock(&pair.mutex);
                }
                let mut back = Vec::new();
                while back.len() < all {
                    back.extend(crew.settle());
                }
                back.sort_unstable();
                assert_eq!(back, woken(signals_before..THREADS), "{pairing:?}");
                assert_eq!(pair.condvar.notify_all(), 0);
                assert_eq!(pair.condvar.destroy(), Ok(()));
                assert_eq!(pair.mutex.destroy(), Ok(()), "{pairing:?}");
            }
        }
    }
}

/// While the mutex is held, no signal wakes any waiter: it could only wait for the mutex. Then the
/// waiters get the mutex in order of arrival, if it is unlocked fairly.
#[test]
fn a_broadcast_causes_no_herd() {
    const THREADS: usize = 4;
    let mut crew = Crew::new(THREADS);
    let moved = every_normal_pairing()
        .filter(|pairing| pairing.is_in_table() && pairing.mutex.scope == Scope::Private);
    for pairing in moved {
        let pair = Arc::new(pairing.make());
        let order = Arc::new(std::sync::Mutex::new(Vec::new()));
        for worker in 0..THREADS {
            let (pair, order) = (pair.clone(), order.clone());
            crew.order(worker, 1, move || {
                pair.mutex.lock();
                let waited = pair.wait_until(None);
                order.lock().unwrap().push(worker);
                // SAFETY: the wait has locked it.
                unsafe { pair.mutex.unlock_fair() };
                answer_of(waited)
            });
            assert_eq!(crew.settle(), []);
        }
        pair.mutex.lock();
        assert!(pair.condvar.notify_one());
        assert_eq!(pair.condvar.notify_all(), THREADS - 1);
        assert_eq!(crew.settle(), []);
        assert!(crew.idle().is_empty(), "no thread has been woken");
        // The condvar has no waiters left; the mutex has.
        assert_eq!(pair.condvar.destroy(), Ok(()));
        assert_eq!(pair.mutex.destroy(), Err(LockError::Busy));
        // SAFETY: locked above.
        unsafe { pair.mutex.unlock_fair() };
        crew.until_back(THREADS);
        assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3], "{pairing:?}");
        assert_eq!(pair.mutex.destroy(), Ok(()));
    }
}

/// A waiter that was moved to the mutex has been signalled, however long the mutex is held: its
/// deadline no longer counts.
#[test]
fn a_deadline_after_the_signal_does_not_count() {
    let mut crew = Crew::new(2);
    for pairing in every_pairing() {
        let pair = Arc::new(pairing.make());
        let deadline = Deadline::after(Duration::from_millis(10));
        crew.order_each(0..2, pairing.entries(), &pair, move |pair| {
            answer_of(pair.wait_once(Some(deadline)))
        });
        loop {
            pair.mutex.lock();
            if pair.condvar.notify_all() > 0 || deadline.has_passed() {
                break;
            }
            unlock(&pair.mutex);
            std::thread::yield_now();
        }
        let in_time = !deadline.has_passed();
        while !deadline.has_passed() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(2));
        unlock(&pair.mutex);
        let mut back = Vec::new();
        while back.len() < 2 {
            back.extend(crew.settle_with(back.first().map_or(0, |&(first, _)| 1 - first)));
        }
        // The second one may not have waited yet when the broadcast came.
        let signalled = back.iter().filter(|(_, answer)| answer.is_ok()).count();
        assert!(signalled > 0 || !in_time, "{pairing:?}");
    }
}

#[test]
fn a_stranger_is_refused() {
    let with_owner = every_pairing().filter(|pairing| pairing.mutex.has_owner());
    with_every(with_owner, |pairing| {
        let pair = pairing.make();
        assert_eq!(pair.wait_until(None), Err(LockError::NotOwner), "free");
        pair.mutex.lock();
        std::thread::scope(|scope| {
            let waited = scope.spawn(|| pair.wait_until(None)).join().unwrap();
            assert_eq!(waited, Err(LockError::NotOwner), "another's");
        });
        unlock(&pair.mutex);
        assert!(!pair.condvar.notify_one());
        assert_eq!(pair.condvar.destroy(), Ok(()));
    });
}

/// All threads that wait at the same time must use the same mutex.
#[test]
fn a_second_mutex_is_refused() {
    let mut crew = Crew::new(1);
    let others: Vec<_> = every_normal_sort().collect();
    for pairing in every_pairing().filter(|pairing| pairing.is_in_table()) {
        for other in &others {
            let pair = Arc::new(pairing.make());
            all_wait(&mut crew, 1, pairing, &pair);
            let other = other.make();
            other.lock();
            // SAFETY: held; that it is another mutex is what is tested.
            let refused = unsafe { pair.condvar.wait(&other, None) };
            assert_eq!(refused, Err(LockError::Invalid), "{pairing:?}");
            assert!(other.is_locked());
            unlock(&other);
            // The waiter is still found.
            assert!(pair.condvar.notify_one());
            assert_eq!(crew.settle_with(0), woken(0..1));
        }
    }
}

/// Once no thread waits any more, any other mutex may be next, of any sort.
#[test]
fn one_mutex_after_another() {
    let mut crew = Crew::new(2);
    let sorts: Vec<_> = every_normal_sort().collect();
    for scope in SCOPES {
        for first in &sorts {
            for second in &sorts {
                let condvar = Arc::new(RawCondvar::with_scope(scope));
                for sort in [first, second, first] {
                    let entries = usize::from(scope == Scope::Private && !sort.is_pi());
                    let mutex = Arc::new(sort.make());
                    for worker in 0..2 {
                        let (mutex, condvar) = (mutex.clone(), condvar.clone());
                        crew.order(worker, entries, move || {
                            mutex.lock();
                            // SAFETY: held, and no other mutex is used for a wait now.
                            let waited = unsafe { condvar.wait(&mutex, None) };
                            unlock(&mutex);
                            answer_of(waited)
                        });
                        assert_eq!(crew.settle(), [], "{first:?}, {second:?}");
                    }
                    assert!(condvar.notify_one());
                    assert_eq!(crew.settle_with(0), woken(0..1));
                    assert_eq!(condvar.notify_all(), 1);
                    assert_eq!(crew.settle_with(1), woken(1..2));
                }
            }
        }
    }
}

#[test]
fn a_private_condvar_with_waiters_is_busy() {
    let mut crew = Crew::new(2);
    for pairing in every_pairing().filter(|pairing| pairing.is_in_table()) {
        let pair = Arc::new(pairing.make());
        all_wait(&mut crew, 2, pairing, &pair);
        for worker in 0..2 {
            assert_eq!(pair.condvar.destroy(), Err(LockError::Busy));
            assert!(pair.condvar.notify_one());
            assert_eq!(crew.settle_with(worker), woken(worker..worker + 1));
        }
        assert_eq!(pair.condvar.destroy(), Ok(()));
    }
}

/// Of a process-shared condvar: signalled waiters are still on their way when it is destroyed.
#[test]
fn a_shared_condvar_is_destroyed_when_all_waiters_have_left() {
    const THREADS: usize = 3;
    let mut crew = Crew::new(THREADS);
    let shared = every_normal_pairing().filter(|pairing| pairing.condvar == Scope::Shared);
    for pairing in shared {
        let pair = Arc::new(pairing.make());
        all_wait(&mut crew, THREADS, pairing, &pair);
        pair.mutex.lock();
        assert_eq!(pair.condvar.notify_all(), THREADS);
        let destroyer = std::thread::spawn({
            let pair = pair.clone();
            move || {
                let destroyed = pair.condvar.destroy();
                // No former waiter holds the mutex now, or will take it.
                (destroyed, pair.mutex.is_locked())
            }
        });
        std::thread::sleep(Duration::from_millis(2));
        assert!(!destroyer.is_finished(), "they need the mutex to leave");
        unlock(&pair.mutex);
        let (destroyed, _) = destroyer.join().unwrap();
        assert_eq!(destroyed, Ok(()));
        crew.until_back(THREADS);
    }
}

/// One of two levels is released, so the mutex stays held. The wait works as long as no signaller
/// needs the mutex.
#[test]
fn a_recursive_mutex_held_twice_stays_held() {
    let mut crew = Crew::new(1);
    let recursive = every_pairing().filter(|pairing| pairing.mutex.kind == Kind::Recursive);
    for pairing in recursive {
        let pair = Arc::new(pairing.make());
        for all in [false, true] {
            let waiting = pair.clone();
            let waiter = std::thread::spawn(move || {
                let Pair { mutex, .. } = &*waiting;
                mutex.lock();
                mutex.lock();
                let soon = Some(Deadline::after(Duration::from_millis(1)));
                assert_eq!(waiting.wait_until(soon), Err(LockError::TimedOut));
                waiting.waiting.store(1, SeqCst);
                assert_eq!(waiting.wait_until(None), Ok(()));
                waiting.waiting.store(0, SeqCst);
                // Exactly two levels.
                unlock(mutex);
                assert!(mutex.is_locked());
                unlock(mutex);
            });
            while !waiter.is_finished() {
                if pair.waiting.load(SeqCst) == 1 {
                    assert!(pair.mutex.is_locked() || pair.waiting.load(SeqCst) == 0);
                    match all {
                        false => _ = pair.condvar.notify_one(),
                        true => _ = pair.condvar.notify_all(),
                    }
                }
                std::thread::yield_now();
            }
            waiter.join().unwrap();
            assert!(!pair.mutex.is_locked(), "{pairing:?}");
        }
        // Nothing stays behind: the next waiter releases everything.
        all_wait(&mut crew, 1, pairing, &pair);
        assert!(!pair.mutex.is_locked());
        assert!(pair.condvar.notify_one());
        assert_eq!(crew.settle_with(0), woken(0..1));
    }
}
