//! The fair mutex: each unlock that finds a waiter hands the mutex off to the one that came first.

use crate::{fail, unwinds};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};
use waitword::{FairMutex, FairMutexGuard, MappedFairMutexGuard, Semaphore, const_fair_mutex};
use waitword_testkit::{Crew, watch};

/// How a holder releases it.
#[derive(Clone, Copy, Debug)]
enum Way {
    Drop,
    Fair,
    Panic,
    Bump,
}

/// One thread waits, and the holder releases the mutex. It is locked for the waiter at once, before
/// the waiter has run.
fn hands_over(way: Way, waits: fn(&'static FairMutex<u32>) -> FairMutexGuard<'static, u32>) {
    static HOLDS: Semaphore = Semaphore::new(0);
    let mutex: &'static FairMutex<u32> = Box::leak(Box::new(const_fair_mutex(0)));
    let mut crew = Crew::new(1);
    let mut guard = mutex.lock();
    *guard = 1;
    crew.order(0, 1, move || {
        let mut guard = waits(mutex);
        HOLDS.wait();
        *guard += 1;
        Ok(0)
    });
    assert_eq!(crew.settle(), []);
    match way {
        Way::Drop => drop(guard),
        Way::Fair => FairMutexGuard::unlock_fair(guard),
        Way::Panic => assert!(unwinds(|| {
            let _guard = guard;
            fail()
        })),
        Way::Bump => {
            // It returns after the waiter has had the mutex.
            HOLDS.post().unwrap();
            FairMutexGuard::bump(&mut guard);
            assert_eq!(*guard, 2);
            drop(guard);
            assert_eq!(crew.settle_with(0), [(0, Ok(0))]);
            return;
        }
    }
    assert!(mutex.is_locked() && mutex.try_lock().is_none());
    assert!(mutex.try_lock_for(Duration::from_millis(1)).is_none());
    HOLDS.post().unwrap();
    assert_eq!(*mutex.lock(), 2);
    assert_eq!(crew.settle_with(0), [(0, Ok(0))]);
}

#[test]
fn an_unlock_hands_it_over() {
    let _watchdog = watch();
    for way in [Way::Drop, Way::Fair, Way::Panic, Way::Bump] {
        println!("{way:?}");
        hands_over(way, FairMutex::lock);
        hands_over(way, |mutex| mutex.try_lock_for(Duration::from_secs(3600)).unwrap());
        hands_over(way, |mutex| {
            let deadline = Instant::now() + Duration::from_secs(3600);
            mutex.try_lock_until(deadline).unwrap()
        });
    }
}

#[test]
fn it_goes_to_all_in_the_order_of_arrival() {
    static MUTEX: FairMutex<Vec<usize>> = FairMutex::new(Vec::new());
    let mut crew = Crew::new(6);
    let guard = MUTEX.lock();
    for worker in 0..6 {
        crew.order(worker, 1, move || {
            MUTEX.lock().push(worker);
            // Behind all waiters.
            MUTEX.lock().push(10 + worker);
            Ok(0)
        });
        assert_eq!(crew.settle(), []);
    }
    drop(guard);
    let last = crew.settle_with(5);
    assert!(last.contains(&(5, Ok(0))));
    let order = MUTEX.lock().clone();
    assert_eq!(order[..6], [0, 1, 2, 3, 4, 5]);
    let mut second = order[6..].to_vec();
    second.sort();
    assert_eq!(second, [10, 11, 12, 13, 14, 15]);
}

/// A waiter that gives up leaves the queue to the other waiters.
#[test]
fn a_deadline_passes() {
    let _watchdog = watch();
    static MUTEX: FairMutex<()> = FairMutex::new(());
    let guard = MUTEX.lock();
    std::thread::scope(|scope| {
        let hasty = scope.spawn(|| {
            assert!(MUTEX.try_lock_for(Duration::from_millis(2)).is_none());
            assert!(MUTEX.try_lock_until(Instant::now()).is_none());
        });
        let patient = scope.spawn(|| drop(MUTEX.lock()));
        hasty.join().unwrap();
        drop(guard);
        patient.join().unwrap();
    });
    assert!(!MUTEX.is_locked());
}

#[test]
fn one_thread_holds_it_at_a_time() {
    let _watchdog = watch();
    let (mutex, inside, gave_up) = (FairMutex::new(0), AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (mutex, inside, gave_up) = (&mutex, &inside, &gave_up);
            scope.spawn(move || {
                for turn in 0..1500 {
                    let guard = match (thread + turn) % 4 {
                        0 => mutex.try_lock_for(Duration::from_micros(20)),
                        1 => mutex.try_lock(),
                        _ => Some(mutex.lock()),
                    };
                    let Some(mut guard) = guard else {
                        gave_up.fetch_add(1, SeqCst);
                        continue;
                    };
                    assert!(!inside.swap(true, SeqCst));
                    if turn % 64 == 0 {
                        std::thread::yield_now();
                    }
                    inside.store(false, SeqCst);
                    *guard += 1;
                    if turn % 8 == 0 {
                        FairMutexGuard::bump(&mut guard);
                    }
                }
            });
        }
    });
    assert_eq!(mutex.into_inner() + gave_up.into_inner(), 4 * 1500);
}

#[test]
fn a_guard_may_be_mapped() {
    let mutex = FairMutex::new((1, 2));
    let mut second: MappedFairMutexGuard<'_, i32> =
        FairMutexGuard::map(mutex.lock(), |pair| &mut pair.1);
    *second += 1;
    assert!(mutex.try_lock().is_none());
    drop(second);
    assert_eq!(mutex.into_inner(), (1, 3));
}
