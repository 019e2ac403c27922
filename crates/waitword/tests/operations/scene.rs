//! What the rows act on, and the other threads, which sleep, hold locks, or wake the one that is watched.
//!
//! A sleeper that is to stay where it is gets a signal whose handler does not return. It stands in its queue as before, and
//! whoever wakes it does all that a wake-up takes; only it does not get on, as if its CPU had been taken from it.

use crate::common::process::BareThread;
use crate::common::{install, signal, thread_number, until};
use crate::support::sleep::SleepProbe;
use rustix::thread::CpuSet;
use std::ops::{Deref, RangeInclusive};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use waitword::lock_api::RawRwLock as _;
use waitword::{
    AutoEvent, Barrier, Deadline, Event, Flavour, Kind, Latch, MutexOptions, Once, RawCondvar,
    RawMutex, RawRobustMutex, RawRwLock, RobustKind, RobustProtocol, Scope, Semaphore,
};

macro_rules! scene {
    ($($name:ident: $type:ty = $value:expr;)*) => {
        /// All that the rows act on. Every row finds it untouched, in its process's copy.
        pub(crate) struct Scene {
            $(pub(crate) $name: Apart<$type>,)*
        }

        pub(crate) static IT: Scene = Scene {
            $($name: Apart($value),)*
        };
    };
}

scene! {
    word: AtomicU32 = AtomicU32::new(0);
    other_word: AtomicU32 = AtomicU32::new(0);
    adaptive: RawMutex = RawMutex::new();
    throughput: RawMutex = of(Flavour::Throughput).build_raw();
    wait_wake: RawMutex = of(Flavour::WaitWake).build_raw();
    inheriting: RawMutex = of(Flavour::PriorityInheriting).build_raw();
    recursive: RawMutex = MutexOptions::new().kind(Kind::Recursive).build_raw();
    checking: RawMutex = MutexOptions::new().kind(Kind::ErrorChecking).build_raw();
    shared: RawMutex = MutexOptions::new().scope(Scope::Shared).build_raw();
    robust: RawRobustMutex = RawRobustMutex::new(RobustKind::Normal, RobustProtocol::None);
    condvar: RawCondvar = RawCondvar::new();
    rwlock: RawRwLock = RawRwLock::new();
    semaphore: Semaphore = Semaphore::new(0);
    event: Event = Event::new();
    auto_event: AutoEvent = AutoEvent::new();
    latch: Latch = Latch::new(1);
    barrier: Barrier = Barrier::new(4);
    once: Once = Once::new();
}

/// In cache lines of its own.
#[repr(align(64))]
pub(crate) struct Apart<T>(T);

impl<T> Deref for Apart<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

const fn of(flavour: Flavour) -> MutexOptions {
    MutexOptions::new().flavour(flavour)
}

/// Where all that lies.
pub(crate) fn place() -> RangeInclusive<u64> {
    let start = (&raw const IT).addr() as u64;
    start..=start + size_of::<Scene>() as u64 - 1
}

/// The CPUs that we may run on.
pub(crate) fn cpus() -> Vec<usize> {
    let allowed = rustix::thread::sched_getaffinity(None).expect("our CPUs");
    (0..CpuSet::MAX_CPU)
        .filter(|&cpu| allowed.is_set(cpu))
        .collect()
}

fn run_on(cpu: usize) {
    let mut one = CpuSet::new();
    one.set(cpu);
    rustix::thread::sched_setaffinity(None, &one).expect("a CPU of ours");
}

/// Where the other threads run.
static ELSEWHERE: AtomicUsize = AtomicUsize::new(0);

/// Sets the scene for the calling thread, the one to be watched.
pub(crate) fn set() {
    /// So many that two keys have the same one in one run of 40,000, whatever their addresses are.
    const BUCKETS: usize = 1 << 18;
    let cpus = cpus();
    ELSEWHERE.store(cpus[1], SeqCst);
    run_on(cpus[0]);
    waitword::spin::set_budget(Duration::ZERO);
    waitword::table::reserve(BUCKETS).expect("memory for the table");
    // Whoever asks first for the generation of forks maps a page for it.
    Once::new().call_once(|| {});
}

/// Starts a thread elsewhere.
pub(crate) fn elsewhere(work: impl FnOnce() + Send + 'static) {
    BareThread::start(move || {
        run_on(ELSEWHERE.load(SeqCst));
        work();
        0
    });
}

type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);

/// Has threads do `work` elsewhere, one after another, until all of them sleep in it, and are held there: nothing brings
/// them in, neither a wake-up nor an alarm of their own.
pub(crate) fn asleep(count: usize, work: fn()) {
    static HELD: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn hold(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
        // SAFETY: the kernel passes the interrupted thread's registers.
        let registers = unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
        // Only who sleeps: then it is the sleep that the signal has just ended.
        if registers[libc::REG_RAX as usize] == i64::from(-libc::EINTR) {
            HELD.fetch_add(1, SeqCst);
            loop {
                // SAFETY: waits for signals.
                unsafe { libc::pause() };
            }
        }
    }
    // SAFETY: with SA_SIGINFO the kernel calls it so.
    let handler = unsafe { std::mem::transmute::<Handler, extern "C" fn(i32)>(hold) };
    install(libc::SIGUSR1, handler, libc::SA_SIGINFO);
    let held_before = HELD.load(SeqCst);
    let threads: Vec<Arc<OnceLock<(i32, SleepProbe)>>> =
        (0..count).map(|_| Arc::default()).collect();
    for thread in &threads {
        let this = thread.clone();
        elsewhere(move || {
            let _ = this.set((thread_number(), SleepProbe::of_this_thread()));
            work();
        });
        until(|| thread.get().is_some_and(|(_, probe)| probe.in_futex_call()));
    }
    until(|| {
        for (number, _) in threads.iter().filter_map(|thread| thread.get()) {
            signal(*number, libc::SIGUSR1);
        }
        HELD.load(SeqCst) == held_before + count
    });
}

/// Has `work` done elsewhere once the calling thread sleeps in a futex call.
pub(crate) fn once_asleep(work: fn()) {
    // Not for the first time: then it would measure how long a pause takes, and the like.
    let held = RawMutex::new();
    held.lock();
    let _ = held.lock_until(Deadline::after(Duration::from_millis(1)));
    // It asks for its priority at most every 10 ms: this time it does.
    std::thread::sleep(Duration::from_millis(20));
    let probe = SleepProbe::of_this_thread();
    elsewhere(move || {
        until(|| probe.in_futex_call());
        work();
    });
}

/// Has readers on two CPUs overlap until the lock lets them hold it by slots.
pub(crate) fn make_fast(lock: &'static RawRwLock) {
    static DONE: AtomicBool = AtomicBool::new(false);
    static GONE: AtomicBool = AtomicBool::new(false);
    let read_for_a_while = || {
        for _ in 0..100 {
            lock.lock_shared();
            (0..20).for_each(|_| std::hint::spin_loop());
            // SAFETY: just locked.
            unsafe { lock.unlock_shared() };
        }
    };
    elsewhere(move || {
        while !DONE.load(SeqCst) {
            read_for_a_while();
        }
        GONE.store(true, SeqCst);
    });
    while !format!("{lock:?}").contains("FAST") {
        read_for_a_while();
    }
    DONE.store(true, SeqCst);
    until(|| GONE.load(SeqCst));
}
