//! Every lock, of every flavour, kind and scope, in a `static`. The compiler constructs each; these
//! tests check that each works.

use std::time::Duration;
use waitword::lock_api::RawMutex as _;
use waitword::*;

static PLAIN: Mutex<u8> = Mutex::new(1);
static PLAIN_OF_PARKING_LOT: Mutex<u8> = const_mutex(1);
static ADAPTIVE: Mutex<u8> = MutexOptions::new().flavour(Flavour::Adaptive).build(1);
static THROUGHPUT: Mutex<u8> = MutexOptions::new().flavour(Flavour::Throughput).build(1);
static WAIT_WAKE: Mutex<u8> = MutexOptions::new().flavour(Flavour::WaitWake).build(1);
static SHARED: Mutex<u8> = MutexOptions::new().scope(Scope::Shared).build(1);

static FAIR: FairMutex<u8> = FairMutex::new(1);
static FAIR_OF_PARKING_LOT: FairMutex<u8> = const_fair_mutex(1);

static REENTRANT: ReentrantMutex<u8> = ReentrantMutex::new(1);
static REENTRANT_OF_PARKING_LOT: ReentrantMutex<u8> = const_reentrant_mutex(1);
static REENTRANT_THROUGHPUT: ReentrantMutex<u8> = ReentrantMutex::from_raw(
    MutexOptions::new().flavour(Flavour::Throughput).build_raw(),
    RawThreadId,
    1,
);

static CHECKED: CheckedMutex<u8> = CheckedMutex::new(1);
static CHECKED_WAIT_WAKE: CheckedMutex<u8> =
    MutexOptions::new().flavour(Flavour::WaitWake).build_checked(1);
static CHECKED_SHARED: CheckedMutex<u8> = MutexOptions::new().scope(Scope::Shared).build_checked(1);
static INHERITING: PiMutex<u8> = PiMutex::new(1);
static INHERITING_SHARED: PiMutex<u8> = PiMutex::with_scope(1, Scope::Shared);
static ROBUST: RobustMutex<u8> = RobustMutex::new(1);
static ROBUST_INHERITING: RobustMutex<u8> = RobustMutex::with_protocol(1, RobustProtocol::Inherit);

static RAW: RawMutex = RawMutex::new();
static RAW_SHARED: RawMutex = MutexOptions::new().scope(Scope::Shared).build_raw();
static RAW_FAIR: RawFairMutex = RawFairMutex::INIT;
static RAW_POSIX: RawPosixMutex = RawPosixMutex::new();
static RAW_RECURSIVE: RawPosixMutex = PosixMutexOptions::new().kind(Kind::Recursive).build_raw();
static RAW_CHECKING_INHERITING: RawPosixMutex = PosixMutexOptions::new()
    .flavour(PosixFlavour::PriorityInheriting)
    .kind(Kind::ErrorChecking)
    .scope(Scope::Shared)
    .build_raw();
static RAW_ROBUST: RawRobustMutex =
    RawRobustMutex::new(RobustKind::Recursive, RobustProtocol::None);

static RWLOCK: RwLock<u8> = RwLock::new(1);
static RWLOCK_OF_PARKING_LOT: RwLock<u8> = const_rwlock(1);
static RWLOCK_WRITER: RwLock<u8> = RwLockOptions::new().preference(Preference::Writer).build(1);
static RWLOCK_SHARED: RwLock<u8> = RwLockOptions::new().scope(Scope::Shared).build(1);
static RAW_RWLOCK: RawRwLock =
    RwLockOptions::new().preference(Preference::Writer).scope(Scope::Shared).build_raw();

static CONDVAR: Condvar = Condvar::new();
static CHECKED_CONDVAR: CheckedCondvar = CheckedCondvar::new();
static PI_CONDVAR: PiCondvar = PiCondvar::new();
static RAW_CONDVAR: RawCondvar = RawCondvar::new();
static RAW_CONDVAR_SHARED: RawCondvar = RawCondvar::with_scope(Scope::Shared);

static ONCE: Once = Once::new();
static ONCE_LOCK: OnceLock<u8> = OnceLock::new();
static LAZY_LOCK: LazyLock<u8> = LazyLock::new(|| 1);
static SEMAPHORE: Semaphore = Semaphore::new(1);
static SEMAPHORE_SHARED: Semaphore = Semaphore::with_scope(1, Scope::Shared);
static BARRIER: Barrier = Barrier::new(1);
static BARRIER_SHARED: Barrier = Barrier::with_scope(1, Scope::Shared);
static EVENT: Event = Event::new();
static EVENT_SHARED: Event = Event::with_scope(true, Scope::Shared);
static AUTO_EVENT: AutoEvent = AutoEvent::new();
static AUTO_EVENT_SHARED: AutoEvent = AutoEvent::with_scope(true, Scope::Shared);
static LATCH: Latch = Latch::new(1);
static LATCH_SHARED: Latch = Latch::with_scope(1, Scope::Shared);

#[test]
fn mutexes() {
    for mutex in [&PLAIN, &PLAIN_OF_PARKING_LOT, &ADAPTIVE, &THROUGHPUT, &WAIT_WAKE, &SHARED] {
        let mut guard = mutex.lock();
        *guard += 1;
        assert!(*guard == 2 && mutex.try_lock().is_none());
    }
    for mutex in [&FAIR, &FAIR_OF_PARKING_LOT] {
        let guard = mutex.lock();
        assert!(*guard == 1 && mutex.try_lock().is_none());
    }
    for mutex in [&REENTRANT, &REENTRANT_OF_PARKING_LOT, &REENTRANT_THROUGHPUT] {
        let guard = mutex.lock();
        assert_eq!(*mutex.try_lock().unwrap(), *guard);
    }
    for mutex in [&CHECKED, &CHECKED_WAIT_WAKE, &CHECKED_SHARED] {
        let _guard = mutex.lock().unwrap();
        assert_eq!(mutex.lock().unwrap_err(), LockError::Deadlock);
    }
    for mutex in [&INHERITING, &INHERITING_SHARED] {
        let _guard = mutex.lock().unwrap();
        assert_eq!(mutex.lock().unwrap_err(), LockError::Deadlock);
    }
    for mutex in [&ROBUST, &ROBUST_INHERITING] {
        assert_eq!(mutex.with(|value| *value), Ok(1));
    }
    for mutex in [&RAW, &RAW_SHARED] {
        assert!(mutex.try_lock() && !mutex.try_lock());
    }
    assert!(RAW_FAIR.try_lock() && !RAW_FAIR.try_lock());
    assert!(RAW_POSIX.try_lock() && !RAW_POSIX.try_lock());
    assert!(RAW_RECURSIVE.try_lock() && RAW_RECURSIVE.try_lock());
    RAW_CHECKING_INHERITING.lock();
    assert_eq!(RAW_CHECKING_INHERITING.lock_checked(), Err(LockError::Deadlock));
    // SAFETY: it is a static, so it stays where it is.
    let locked = [(); 2].map(|()| unsafe { RAW_ROBUST.lock() });
    assert_eq!(locked, [Ok(RobustLocked::Clean); 2]);
    // SAFETY: locked twice just above.
    let unlocked = [(); 2].map(|()| unsafe { RAW_ROBUST.unlock() });
    assert_eq!(unlocked, [Ok(()); 2]);
}

#[test]
fn rwlocks() {
    for lock in [&RWLOCK, &RWLOCK_OF_PARKING_LOT, &RWLOCK_WRITER, &RWLOCK_SHARED] {
        let guard = lock.read();
        assert!(*guard == 1 && lock.try_read().is_some() && lock.try_write().is_none());
    }
    // SAFETY: nothing is unlocked by this reference.
    let raw = unsafe { RWLOCK_WRITER.raw() };
    assert_eq!((raw.preference(), raw.scope()), (Preference::Writer, Scope::Private));
    let (preference, scope) = (RAW_RWLOCK.preference(), RAW_RWLOCK.scope());
    assert_eq!((preference, scope), (Preference::Writer, Scope::Shared));
}

#[test]
fn condvars() {
    static GUARDED: Mutex<()> = Mutex::new(());
    static CHECKED: CheckedMutex<()> = CheckedMutex::new(());
    static INHERITING: PiMutex<()> = PiMutex::new(());
    let soon = Duration::from_millis(1);
    let mut guard = GUARDED.lock();
    assert!(CONDVAR.wait_for(&mut guard, soon).timed_out());
    let (_guard, timeout) = CHECKED_CONDVAR.wait_for(CHECKED.lock().unwrap(), soon).unwrap();
    assert!(timeout.timed_out());
    let (_guard, timeout) = PI_CONDVAR.wait_for(INHERITING.lock().unwrap(), soon).unwrap();
    assert!(timeout.timed_out());
    assert!(!CONDVAR.notify_one() && !RAW_CONDVAR.notify_one());
    assert_eq!(RAW_CONDVAR_SHARED.notify_all(), 0);
}

#[test]
fn the_smaller_ones() {
    ONCE.call_once(|| ());
    assert!(ONCE.state().done());
    assert_eq!((*ONCE_LOCK.get_or_init(|| 1), *LAZY_LOCK), (1, 1));
    assert!(SEMAPHORE.try_wait() && SEMAPHORE_SHARED.try_wait());
    assert!(BARRIER.wait().is_leader() && BARRIER_SHARED.wait().is_leader());
    assert!(!EVENT.is_set() && EVENT_SHARED.is_set());
    assert!(!AUTO_EVENT.is_set() && AUTO_EVENT_SHARED.is_set());
    LATCH.count_down(1).unwrap();
    LATCH_SHARED.count_down(1).unwrap();
    LATCH.wait();
    LATCH_SHARED.wait();
}
