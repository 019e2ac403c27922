//! Locks and fork: a child has a copy of every mutex and condvar, with the marks of threads that do
//! not exist in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use waitword::{
    Deadline, Kind, LockError, PosixFlavour, PosixMutexOptions, RawCondvar, RawPosixMutex, table,
};
use waitword_testkit::{BareThread, Mapping, Way, in_child, until, watch};

/// The child's complaint, as its exit status.
const NOT_FREE: i32 = 11;
const NOT_TAKEN: i32 = 12;
const NOT_EXCLUDED: i32 = 13;
const NOT_DESTROYED: i32 = 14;
const WRONG_ANSWER: i32 = 15;
const SIGNALLED: i32 = 16;

const FLAVOURS: [PosixFlavour; 3] =
    [PosixFlavour::Adaptive, PosixFlavour::Throughput, PosixFlavour::WaitWake];

fn mutex(flavour: PosixFlavour) -> RawPosixMutex {
    PosixMutexOptions::new().flavour(flavour).build_raw()
}

fn unlock(mutex: &RawPosixMutex) {
    // SAFETY: every caller has locked it.
    unsafe { mutex.unlock() };
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_millis(2))
}

/// Threads that take a mutex again and again until this is dropped, with short deadlines or
/// without.
struct Crowd {
    over: Arc<AtomicBool>,
    threads: Vec<BareThread>,
}

impl Crowd {
    fn at(mutex: &'static RawPosixMutex, size: usize) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let threads = (0..size).map(|number| {
            let over = over.clone();
            BareThread::start(move || {
                for turn in number.. {
                    let had = match turn % 3 {
                        0 => mutex.lock_until(Deadline::after(Duration::from_micros(50))).is_ok(),
                        _ => {
                            mutex.lock();
                            true
                        }
                    };
                    if had {
                        (0..turn % 500).for_each(|_| std::hint::spin_loop());
                        unlock(mutex);
                    }
                    if over.load(SeqCst) {
                        break;
                    }
                }
            })
        });
        Self { threads: threads.collect(), over }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.over.store(true, SeqCst);
        for thread in self.threads.drain(..) {
            assert_eq!(thread.join(), 0);
        }
    }
}

/// In a child: threads of its own take turns at it, some with deadlines. Then it is free, and can
/// be destroyed.
fn is_as_good_as_new(mutex: &'static RawPosixMutex) -> Result<(), i32> {
    static TURNS: AtomicUsize = AtomicUsize::new(0);
    TURNS.store(0, SeqCst);
    let threads: Vec<_> = (0..3)
        .map(|_| {
            BareThread::start(move || {
                for turn in 0..100 {
                    if turn % 5 != 0 || mutex.lock_until(soon()).is_err() {
                        mutex.lock();
                    }
                    // Not in one step: a second thread inside would lose a turn.
                    let turns = TURNS.load(SeqCst);
                    if turn % 20 == 0 {
                        std::thread::yield_now();
                    }
                    TURNS.store(turns + 1, SeqCst);
                    unlock(mutex);
                }
            })
        })
        .collect();
    for thread in threads {
        if thread.join() != 0 {
            return Err(NOT_TAKEN);
        }
    }
    if TURNS.load(SeqCst) != 300 {
        return Err(NOT_EXCLUDED);
    }
    if mutex.is_locked() {
        return Err(NOT_FREE);
    }
    mutex.destroy().map_err(|_| NOT_DESTROYED)
}

fn status(result: Result<(), i32>) -> i32 {
    result.err().unwrap_or(0)
}

/// The thread that forks holds it; other threads wait, and one of them is awake. The child unlocks
/// it, and can lock it.
#[test]
fn a_child_unlocks_what_its_thread_held() {
    let _watchdog = watch();
    for flavour in FLAVOURS {
        let mutex: &'static RawPosixMutex = Box::leak(Box::new(mutex(flavour)));
        let _crowd = Crowd::at(mutex, 4);
        for round in 0..40 {
            mutex.lock();
            // In some rounds they are about to park, in others they all have.
            (0..round * 500).for_each(|_| std::hint::spin_loop());
            if round % 4 == 3 {
                std::thread::sleep(Duration::from_millis(2));
            }
            in_child(Way::Fork, || {
                if !mutex.is_locked() || mutex.try_lock() {
                    return NOT_TAKEN;
                }
                // SAFETY: the copy of a thread that holds it.
                unsafe {
                    match round % 2 {
                        0 => mutex.unlock(),
                        _ => mutex.unlock_fair(),
                    }
                }
                if mutex.is_locked() {
                    return NOT_FREE;
                }
                if round % 8 == 7 {
                    // No trace of the parent's waiters is in the way.
                    return status(mutex.destroy().map_err(|_| NOT_DESTROYED));
                }
                status(is_as_good_as_new(mutex))
            });
            unlock(mutex);
        }
    }
}

/// Forked at a random moment by a thread that does not hold it. Either another thread did, and it
/// stays held, or it is free, whatever marks it has.
#[test]
fn a_child_finds_it_held_or_free() {
    let _watchdog = watch();
    for flavour in FLAVOURS {
        let mutex: &'static RawPosixMutex = Box::leak(Box::new(mutex(flavour)));
        let _crowd = Crowd::at(mutex, 4);
        for _ in 0..60 {
            in_child(Way::Fork, || {
                if mutex.is_locked() {
                    return match (mutex.lock_until(soon()), mutex.try_lock_checked()) {
                        (Err(LockError::TimedOut), Err(LockError::Busy)) => 0,
                        _ => NOT_EXCLUDED,
                    };
                }
                if mutex.lock_until(soon()).is_err() {
                    return NOT_TAKEN;
                }
                unlock(mutex);
                status(is_as_good_as_new(mutex))
            });
        }
    }
}

/// Those for which a successor was asleep or awake, without a lock or unlock in between.
#[test]
fn a_free_mutex_is_destroyed_whatever_its_bits() {
    let _watchdog = watch();
    for flavour in FLAVOURS {
        let mutex: &'static RawPosixMutex = Box::leak(Box::new(mutex(flavour)));
        let _crowd = Crowd::at(mutex, 4);
        for _ in 0..100 {
            in_child(Way::Fork, || {
                let locked = mutex.is_locked();
                match mutex.destroy() {
                    Ok(()) if !locked => 0,
                    Err(LockError::Busy) if locked => 0,
                    _ => NOT_DESTROYED,
                }
            });
        }
    }
}

/// A child of a child of a child: the number that denotes a successor is a different one in each.
#[test]
fn grandchildren_have_successors_of_their_own() {
    let _watchdog = watch();
    fn descend(mutex: &'static RawPosixMutex, generations: u32) -> i32 {
        if generations == 0 {
            return status(is_as_good_as_new(mutex));
        }
        mutex.lock();
        // Until it is waited for, awake and asleep.
        let waiters = [(); 2].map(|()| {
            BareThread::start(move || {
                mutex.lock();
                unlock(mutex);
            })
        });
        until(|| table::snapshot(&mut []).waiters == 2);
        in_child(Way::Fork, || {
            unlock(mutex);
            descend(mutex, generations - 1)
        });
        unlock(mutex);
        i32::from(waiters.map(BareThread::join) != [0; 2])
    }
    for flavour in FLAVOURS {
        let mutex: &'static RawPosixMutex = Box::leak(Box::new(mutex(flavour)));
        in_child(Way::Fork, || descend(mutex, 3));
    }
}

/// A mutex with an owner knows that a child's thread is another thread.
#[test]
fn a_child_does_not_own_what_its_parent_s_thread_holds() {
    let _watchdog = watch();
    let kinds = [
        PosixMutexOptions::new().kind(Kind::ErrorChecking),
        PosixMutexOptions::new().kind(Kind::Recursive),
        PosixMutexOptions::new().flavour(PosixFlavour::PriorityInheriting),
    ];
    for options in kinds {
        for way in [Way::Fork, Way::RawClone] {
            let mutex = options.build_raw();
            mutex.lock();
            in_child(way, || {
                // SAFETY: the call can check.
                let unlocked = unsafe { mutex.unlock_checked() };
                match (unlocked, mutex.try_lock_checked()) {
                    (Err(LockError::NotOwner), Err(LockError::Busy)) => 0,
                    _ => WRONG_ANSWER,
                }
            });
            unlock(&mutex);
            // Any thread may take a free one.
            in_child(way, || {
                mutex.lock();
                unlock(&mutex);
            });
        }
    }
}

/// Threads wait on a condvar. The child has none of them, and uses condvar and mutex for itself.
#[test]
fn no_thread_waits_on_a_childs_condvar() {
    let _watchdog = watch();
    let sorts = [PosixFlavour::Adaptive, PosixFlavour::WaitWake, PosixFlavour::PriorityInheriting];
    for flavour in sorts {
        let condvar: &'static RawCondvar = Box::leak(Box::new(RawCondvar::new()));
        let owned: &'static RawPosixMutex = Box::leak(Box::new(mutex(flavour)));
        let over: &'static AtomicU32 = Box::leak(Box::new(AtomicU32::new(0)));
        let waiting: &'static AtomicU32 = Box::leak(Box::new(AtomicU32::new(0)));
        let waiters = [(); 3].map(|()| {
            BareThread::start(move || {
                owned.lock();
                waiting.fetch_add(1, SeqCst);
                while over.load(SeqCst) == 0 {
                    // SAFETY: the mutex is held, and there is no other.
                    unsafe { condvar.wait(owned, None) }.unwrap();
                }
                unlock(owned);
            })
        });
        // Since the mutex was held, the threads that announced their wait do wait.
        until(|| {
            owned.lock();
            let all = waiting.load(SeqCst) == 3;
            unlock(owned);
            all
        });
        for round in 0..6 {
            in_child(Way::Fork, move || {
                let nobody = match round {
                    // At once for another mutex.
                    0 => Ok(()),
                    1 if condvar.notify_one() => Err(SIGNALLED),
                    2 if condvar.notify_all() != 0 => Err(SIGNALLED),
                    3 => condvar.destroy().map_err(|_| NOT_DESTROYED),
                    4 => is_waited_on(condvar, owned),
                    _ => Ok(()),
                };
                let another: &'static RawPosixMutex =
                    Box::leak(Box::new(mutex(FLAVOURS[round % FLAVOURS.len()])));
                status(nobody.and_then(|()| is_waited_on(condvar, another)))
            });
        }
        owned.lock();
        over.store(1, SeqCst);
        assert_eq!(condvar.notify_all(), 3);
        unlock(owned);
        assert_eq!(waiters.map(BareThread::join), [0; 3]);
        // PI waiters are not counted.
        assert_eq!(condvar.destroy(), Ok(()));
    }
}

/// In a child: a wait that times out, and one that is signalled.
fn is_waited_on(condvar: &'static RawCondvar, mutex: &'static RawPosixMutex) -> Result<(), i32> {
    mutex.lock();
    // SAFETY: the mutex is held.
    if unsafe { condvar.wait(mutex, Some(&soon())) } != Err(LockError::TimedOut) {
        return Err(WRONG_ANSWER);
    }
    let signaller = BareThread::start(move || {
        mutex.lock();
        let found = condvar.notify_one();
        unlock(mutex);
        found
    });
    // SAFETY: the mutex is held.
    let waited = unsafe { condvar.wait(mutex, Some(&Deadline::after(Duration::from_secs(50)))) };
    unlock(mutex);
    match (waited, signaller.join()) {
        (Ok(()), 0) => condvar.destroy().map_err(|_| NOT_DESTROYED),
        _ => Err(WRONG_ANSWER),
    }
}

/// In the child, the mutex of the parent's waiters is gone, but the condvar is still there.
#[test]
fn a_child_s_signal_does_not_look_at_the_mutex_of_the_dead() {
    let _watchdog = watch();
    const PAGE: usize = 4096;
    static CONDVAR: RawCondvar = RawCondvar::new();
    static WAITING: AtomicU32 = AtomicU32::new(0);
    let page = Mapping::private(PAGE).leak();
    // SAFETY: a page of our own, on which zeros are a mutex.
    let mutex: &'static RawPosixMutex = unsafe { &*page.cast() };
    let waiter = BareThread::start(move || {
        mutex.lock();
        WAITING.store(1, SeqCst);
        // SAFETY: the mutex is held.
        unsafe { CONDVAR.wait(mutex, None) }.unwrap();
        unlock(mutex);
    });
    // Since the mutex was held, the thread that announced its wait does wait.
    until(|| {
        mutex.lock();
        let waits = WAITING.load(SeqCst) == 1;
        unlock(mutex);
        waits
    });
    in_child(Way::Fork, || {
        // SAFETY: in the child no thread uses it.
        unsafe { libc::munmap(std::ptr::from_ref(mutex).cast_mut().cast(), PAGE) };
        match (CONDVAR.notify_one(), CONDVAR.notify_all(), CONDVAR.destroy()) {
            (false, 0, Ok(())) => 0,
            _ => SIGNALLED,
        }
    });
    assert!(CONDVAR.notify_one());
    assert_eq!(waiter.join(), 0);
}
