//! The cargo feature `send_guard`: a guard is dropped by a thread other than the one that locked,
//! for each lock whose guards may be sent.

use impls::impls;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use waitword::*;
use waitword_testkit::{Crew, watch};

/// As with parking_lot's feature: what a guard lends must be `Send`, and a reentrant mutex knows
/// its thread.
const _: () = {
    assert!(impls!(MutexGuard<'static, u32>: Send) && !impls!(MutexGuard<'static, Rc<()>>: Send));
    assert!(impls!(FairMutexGuard<'static, u32>: Send));
    assert!(impls!(MappedMutexGuard<'static, u32>: Send));
    assert!(impls!(RwLockReadGuard<'static, u32>: Send));
    assert!(impls!(RwLockWriteGuard<'static, u32>: Send));
    assert!(impls!(RwLockUpgradableReadGuard<'static, u32>: Send));
    assert!(impls!(MappedRwLockReadGuard<'static, u32>: Send));
    assert!(!impls!(ReentrantMutexGuard<'static, u32>: Send));
    assert!(!impls!(CheckedMutexGuard<'static, u32>: Send));
    assert!(!impls!(PiMutexGuard<'static, u32>: Send));
    assert!(!impls!(RobustAccess<'static, u32>: Send));
};

/// Another thread drops what is sent. After that no other thread waits for it any longer.
fn dropped_elsewhere<G: Send>(guard: G) {
    std::thread::scope(|scope| {
        scope.spawn(move || drop(guard)).join().unwrap();
    });
}

/// One thread waits for the lock while its guard travels.
fn travels<L: Send + Sync + 'static, G: Send>(
    lock: L,
    entries: usize,
    take: impl Fn(&'static L) -> G,
    wait: impl Fn(&'static L) + Send + 'static,
) {
    let lock: &'static L = Box::leak(Box::new(lock));
    let mut crew = Crew::new(1);
    let guard = take(lock);
    crew.order(0, entries, move || {
        wait(lock);
        Ok(0)
    });
    assert_eq!(crew.settle(), []);
    dropped_elsewhere(guard);
    assert_eq!(crew.settle_with(0), [(0, Ok(0))]);
}

#[test]
fn a_mutex_is_unlocked_by_another_thread() {
    let _watchdog = watch();
    for flavour in [Flavour::Adaptive, Flavour::Throughput, Flavour::WaitWake] {
        let mutex = MutexOptions::new().flavour(flavour).build(0);
        travels(mutex, 1, Mutex::lock, |mutex| drop(mutex.lock()));
    }
    let shared = MutexOptions::new().scope(Scope::Shared).build(0);
    travels(shared, 0, Mutex::lock, |mutex| drop(mutex.lock()));
    let fair = FairMutex::new(0);
    travels(fair, 1, FairMutex::lock, |mutex| drop(mutex.lock()));
}

#[test]
fn a_rwlock_is_unlocked_by_another_thread() {
    let _watchdog = watch();
    for preference in [Preference::Reader, Preference::Writer] {
        for (scope, entries) in [(Scope::Private, 1), (Scope::Shared, 0)] {
            let lock = || RwLockOptions::new().preference(preference).scope(scope).build(0);
            travels(lock(), entries, RwLock::read, |lock| drop(lock.write()));
            travels(lock(), entries, RwLock::write, |lock| drop(lock.read()));
            travels(lock(), entries, RwLock::write, |lock| drop(lock.write()));
            travels(lock(), entries, RwLock::upgradable_read, |lock| drop(lock.write()));
            // Upgraded where it arrives.
            let upgraded = |lock: &'static RwLock<i32>| {
                let guard = lock.upgradable_read();
                std::thread::scope(|scope| {
                    let upgrade = || RwLockUpgradableReadGuard::upgrade(guard);
                    scope.spawn(upgrade).join().unwrap()
                })
            };
            travels(lock(), entries, upgraded, |lock| drop(lock.read()));
        }
    }
}

/// A condition variable waits with the guard that another thread locked, and returns it.
#[test]
fn a_wait_with_another_thread_s_guard() {
    let _watchdog = watch();
    static MUTEX: Mutex<bool> = Mutex::new(false);
    static CONDVAR: Condvar = Condvar::new();
    let mut guard = MUTEX.lock();
    let waiter = std::thread::spawn(move || {
        CONDVAR.wait_while(&mut guard, |ready| !*ready);
        guard
    });
    // It can be locked once the wait has released it.
    *MUTEX.lock() = true;
    CONDVAR.notify_one();
    assert!(*waiter.join().unwrap());
    assert!(!MUTEX.is_locked());
}

/// Read guards, taken through the word and as visible readers, are dropped by whichever thread
/// receives them. When all are gone nothing holds the lock.
#[test]
fn readers_exchange_their_guards_beside_writers() {
    let _watchdog = watch();
    type Guard = RwLockReadGuard<'static, AtomicU32>;
    static LOCK: RwLock<AtomicU32> = RwLock::new(AtomicU32::new(0));
    static STOP: AtomicBool = AtomicBool::new(false);
    let (senders, mut receivers): (Vec<SyncSender<Guard>>, Vec<Receiver<Guard>>) =
        (0..4).map(|_| sync_channel(2)).unzip();
    let threads: Vec<_> = (0..4_usize)
        .map(|number| {
            let received = receivers.remove(0);
            let next = senders[(number + 1) % 4].clone();
            std::thread::spawn(move || {
                while !STOP.load(SeqCst) {
                    let guards = [(); 3].map(|()| LOCK.read());
                    assert_eq!(guards[0].load(SeqCst) % 2, 0, "a writer is here");
                    // One for the next thread, if it has room; the others, and what has come, are
                    // dropped here.
                    let [first, second, third] = guards;
                    drop(second);
                    drop(next.try_send(first));
                    received.try_iter().for_each(drop);
                    drop(third);
                }
                drop(next);
                received
            })
        })
        .collect();
    drop(senders);
    let end = Instant::now() + Duration::from_millis(1500);
    let mut writes = 0;
    while Instant::now() < end {
        if let Some(value) = LOCK.try_write_for(Duration::from_millis(20)) {
            value.fetch_add(1, SeqCst);
            value.fetch_add(1, SeqCst);
            writes += 1;
        }
        std::thread::sleep(Duration::from_millis(3));
    }
    STOP.store(true, SeqCst);
    let left: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    drop(left);
    assert!(!LOCK.is_locked());
    assert_eq!(LOCK.try_write().unwrap().load(SeqCst), 2 * writes);
}
