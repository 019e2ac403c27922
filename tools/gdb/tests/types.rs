//! A program with every public type of the library in a known state, for gdb to print. The names of
//! the variables in `main` are those that `types.gdb` prints; scripts/gdb compares the types with
//! docs/public-api.

#![allow(unused, reason = "gdb reads the variables")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use waitword::*;

static WORD: AtomicU64 = AtomicU64::new(64);
static QUEUE: Mutex<u32> = Mutex::new(2);
static FILLED: Condvar = Condvar::new();
static BOOK: RwLock<u32> = RwLock::new(3);
static SEATS: Semaphore = Semaphore::new(2);
static STURDY: RobustMutex<u32> = RobustMutex::new(7);
static SETTINGS: OnceLock<u32> = OnceLock::new();
static LAZY: LazyLock<u32> = LazyLock::new(|| 11);

/// gdb stops here.
#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn known_state() {
    std::hint::black_box(());
}

/// Begins a thread, and returns when it sleeps in a futex call.
fn begin(name: &str, run: impl FnOnce() + Send + 'static) {
    static STARTED: AtomicU32 = AtomicU32::new(0);
    STARTED.store(0, Ordering::Relaxed);
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(|| {
            STARTED.store(thread_number(), Ordering::Relaxed);
            run();
        })
        .expect("a thread can be started");
    let (mut seen, mut looks) = (0, 0);
    while seen < 10 {
        thread::sleep(Duration::from_millis(1));
        let started = STARTED.load(Ordering::Relaxed);
        let call = std::fs::read_to_string(format!("/proc/self/task/{started}/syscall"));
        let is_futex = |call: String| matches!(call.split(' ').next(), Some("202" | "449" | "455"));
        let sleeps = call.is_ok_and(is_futex);
        seen = if sleeps { seen + 1 } else { 0 };
        looks += 1;
        assert!(looks < 20_000, "thread {name} does not sleep");
    }
}

fn main() {
    SETTINGS.get_or_init(|| 9);
    assert_eq!(*LAZY, 11);
    // Locks.
    let mutex = Mutex::new(1u32);
    let fair_mutex = FairMutex::new(2u32);
    let reentrant_mutex = ReentrantMutex::new(3u32);
    let checked_mutex = CheckedMutex::new(4u32);
    let pi_mutex = PiMutex::new(5u32);
    let rwlock = RwLock::new(6u32);
    let robust_mutex = RobustMutex::new(7u32);
    let condvar = Condvar::new();
    let checked_condvar = CheckedCondvar::new();
    let pi_condvar = PiCondvar::new();
    let once = Once::new();
    let once_lock: OnceLock<u32> = OnceLock::new();
    let lazy_lock: LazyLock<u32> = LazyLock::new(|| 8);
    let semaphore = Semaphore::new(9);
    let barrier = Barrier::new(10);
    let event = Event::new();
    let auto_event = AutoEvent::new();
    let latch = Latch::new(11);
    // Raw locks.
    let raw_mutex = RawMutex::new();
    let raw_fair_mutex = RawFairMutex::default();
    let raw_posix_mutex = RawPosixMutex::new();
    let raw_checked_mutex = <RawCheckedMutex as RawFallibleMutex>::INIT;
    let raw_pi_mutex = <RawPiMutex as RawFallibleMutex>::INIT;
    let raw_robust_mutex = RawRobustMutex::new(RobustKind::Recursive, RobustProtocol::None);
    let raw_rwlock = RawRwLock::new();
    let raw_condvar = RawCondvar::new();
    let raw_thread_id = RawThreadId;
    event.set();
    // Guards.
    let guarded = (Mutex::new(21u32), FairMutex::new(22u32), ReentrantMutex::new(23u32));
    let mutex_guard = guarded.0.lock();
    let fair_mutex_guard = guarded.1.lock();
    let reentrant_guard = guarded.2.lock();
    let mapped = (Mutex::new(24u32), FairMutex::new(25u32), ReentrantMutex::new(26u32));
    let mapped_mutex_guard = MutexGuard::map(mapped.0.lock(), |data| data);
    let mapped_fair_guard = FairMutexGuard::map(mapped.1.lock(), |data| data);
    let mapped_reentrant_guard = ReentrantMutexGuard::map(mapped.2.lock(), |data| data);
    let shelves = [31u32, 32, 33, 34, 35].map(RwLock::new);
    let read_guard = shelves[0].read();
    let write_guard = shelves[1].write();
    let upgradable_guard = shelves[2].upgradable_read();
    let mapped_read_guard = RwLockReadGuard::map(shelves[3].read(), |data| data);
    let mapped_write_guard = RwLockWriteGuard::map(shelves[4].write(), |data| data);
    let checked = (CheckedMutex::new(41u32), PiMutex::new(42u32));
    let checked_guard = checked.0.lock().expect("not held by this thread");
    let pi_guard = checked.1.lock().expect("not held by this thread");
    let arcs = [51u32, 52, 53].map(|data| Arc::new(RwLock::new(data)));
    let arc_mutex_guard = Arc::new(Mutex::new(50u32)).lock_arc();
    let arc_read_guard = arcs[0].read_arc();
    let arc_write_guard = arcs[1].write_arc();
    let arc_upgradable_guard = arcs[2].upgradable_read_arc();
    let arc_reentrant_guard = Arc::new(ReentrantMutex::new(54u32)).lock_arc();
    let permit = SEATS.acquire_many(2);
    // Futexes.
    let futex = Futex::private(&WORD);
    let byte = AtomicU8::new(8);
    let futex_of_byte = Futex::private(&byte);
    let numa_word = NumaWord::<AtomicU32>::default();
    let mask = Mask::<u32>::new(6).expect("not 0");
    let wait_options = WaitOptions::<u64>::new();
    let wake_op = WakeOp::<u32>::new(Op::Set, 0).when(Cmp::Gt, 1);
    let expecting = futex.expecting(64);
    let deadline = Deadline::at(Clock::Monotonic, Duration::new(12, 34));
    let errno = raw::Errno::BUSY;
    let timespec = raw::Timespec { tv_sec: 1, tv_nsec: 2 };
    let waitv = raw::Waitv { val: 3, uaddr: 0x1000, flags: 0x82, reserved: 0 };
    // Settings, answers and errors.
    let mutex_options = MutexOptions::new();
    let posix_mutex_options = PosixMutexOptions::new();
    let rwlock_options = RwLockOptions::new();
    let flavour = Flavour::Throughput;
    let posix_flavour = PosixFlavour::PriorityInheriting;
    let kind = Kind::Recursive;
    let robust_kind = RobustKind::ErrorChecking;
    let robust_protocol = RobustProtocol::Inherit;
    let robust_locked = RobustLocked::OwnerDied;
    let preference = Preference::Writer;
    let scope = Scope::Shared;
    let clock = Clock::Realtime;
    let (op, cmp) = (Op::AndNot, Cmp::Le);
    let once_state = OnceState::Poisoned;
    let errors = (
        Error::TimedOut,
        CountError::Overflow,
        LockError::Deadlock,
        RobustError::NotRecoverable,
        RwLockError::TimedOut,
    );
    let barrier_result = Barrier::new(1).wait();
    let wait_result = FILLED.wait_for(&mut Mutex::new(0u32).lock(), Duration::ZERO);
    let support = probe::Support::Yes;
    let kernel = probe::kernel();
    let rseq = probe::rseq();
    let extension = time_slice::extend();
    let snapshot = table::Snapshot::default();
    let waiter = table::Waiter::default();
    let counts = stats::snapshot();

    begin("holder", || {
        let _queue = QUEUE.lock();
        let _book = BOOK.write();
        let _ = STURDY.with(|_data| Futex::private(&WORD).wait(64));
    });
    begin("B", || drop(QUEUE.lock()));
    begin("C", || drop(BOOK.read()));
    begin("D", || STURDY.with(|_| ()).expect("it never gets it"));
    begin("E", || SEATS.wait());
    let nothing = Mutex::new(0u32);
    let nothing: &'static Mutex<u32> = Box::leak(Box::new(nothing));
    begin("F", || FILLED.wait(&mut nothing.lock()));
    let accessed = RobustMutex::new(61u32);
    accessed.with(|robust_access| inside(&robust_access)).expect("no thread holds it");
}

/// The frame with a type that exists only inside a closure.
#[inline(never)]
fn inside(robust_access: &RobustAccess<'_, u32>) {
    known_state();
    std::hint::black_box(robust_access);
}
