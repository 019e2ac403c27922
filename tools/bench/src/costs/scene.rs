//! The objects that the operations act on, and the other threads: they sleep, hold locks, or wake
//! the watched thread.
//!
//! A sleeper that must stay in place gets a signal whose handler does not return. It remains
//! queued, and the waker does all the work of a wake-up, but the sleeper makes no progress, as if
//! it had been preempted.
//!
//! All of this runs in a forked child of a process that may have many threads, so threads are
//! started only through the C library: std takes a lock of its own at the start and end of each
//! thread, and another thread of the parent may have held it.

use crate::cpus::{allowed_cpus, run_on};
use crate::crew;
use crate::locks::glibc;
use crate::locks::pthread::{self, DropIn};
use rustix::mm::{MapFlags, ProtFlags};
use std::ops::{Deref, RangeInclusive};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};
use waitword::lock_api::RawRwLock as _;
use waitword::{
    AutoEvent, Barrier, Event, Kind, Latch, Once, PosixFlavour, PosixMutexOptions, RawCondvar,
    RawPosixMutex, RawRobustMutex, RawRwLock, RobustKind, RobustProtocol, Scope, Semaphore,
};

/// The child's exit status if a thread that should sleep does not.
pub(super) const AWAKE: i32 = 78;

macro_rules! scene {
    ($($name:ident: $type:ty = $value:expr;)*) => {
        /// Everything that our own operations act on. Each operation finds it untouched, in its
        /// process's copy.
        pub(super) struct Scene {
            $(pub(super) $name: Apart<$type>,)*
        }

        pub(super) static IT: Scene = Scene {
            $($name: Apart($value),)*
        };
    };
}

scene! {
    word: AtomicU32 = AtomicU32::new(0);
    other_word: AtomicU32 = AtomicU32::new(0);
    adaptive: RawPosixMutex = RawPosixMutex::new();
    throughput: RawPosixMutex = of(PosixFlavour::Throughput).build_raw();
    wait_wake: RawPosixMutex = of(PosixFlavour::WaitWake).build_raw();
    inheriting: RawPosixMutex = of(PosixFlavour::PriorityInheriting).build_raw();
    recursive: RawPosixMutex = PosixMutexOptions::new().kind(Kind::Recursive).build_raw();
    checking: RawPosixMutex = PosixMutexOptions::new().kind(Kind::ErrorChecking).build_raw();
    shared: RawPosixMutex = PosixMutexOptions::new().scope(Scope::Shared).build_raw();
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

/// A value in cache lines of its own.
#[derive(Default)]
#[repr(align(64))]
pub(super) struct Apart<T>(pub(super) T);

impl<T> Deref for Apart<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

const fn of(flavour: PosixFlavour) -> PosixMutexOptions {
    PosixMutexOptions::new().flavour(flavour)
}

/// The address of the lock in the chapters that compare locks. It is the same in every run, so that
/// lookups by address take the same path. Nothing else is ever mapped there: programs lie at
/// 0x55.., libraries at 0x7f...
const STAGE: usize = 0x1000_0000_0000;
const STAGE_BYTES: usize = 4096;

/// Puts a lock on the stage.
pub(super) fn put<T>(lock: T) {
    const { assert!(size_of::<T>() <= STAGE_BYTES) };
    // SAFETY: `set` has mapped the page, and nothing else uses it; a page is aligned for any lock.
    unsafe { std::ptr::with_exposed_provenance_mut::<T>(STAGE).write(lock) };
}

/// The lock on the stage.
///
/// # Safety
/// [`put`] has put a value of this type there.
#[inline(always)]
pub(super) unsafe fn on_stage<T>() -> &'static T {
    // SAFETY: guaranteed by the caller; the value is never removed.
    unsafe { &*std::ptr::with_exposed_provenance::<T>(STAGE) }
}

/// The addresses of the scene and of the stage.
pub(super) fn places() -> [RangeInclusive<u64>; 2] {
    let start = (&raw const IT).addr() as u64;
    [start..=start + size_of::<Scene>() as u64 - 1, STAGE as u64..=(STAGE + STAGE_BYTES - 1) as u64]
}

/// Thread ID of the watched thread.
static SUBJECT: AtomicI32 = AtomicI32::new(0);
/// The CPU of the other threads.
static ELSEWHERE: AtomicUsize = AtomicUsize::new(0);

/// Sets the scene for the calling thread, which will be watched.
pub(super) fn set() {
    /// With this many buckets, two keys share one in one of 40,000 runs, whatever their addresses.
    const BUCKETS: usize = 1 << 18;
    let cpus = allowed_cpus();
    ELSEWHERE.store(cpus[1], SeqCst);
    run_on(&cpus[..1]);
    SUBJECT.store(thread_number(), SeqCst);
    // SAFETY: this process has one thread. The drop-in reads these at its first lock, which has not
    // happened yet.
    unsafe {
        libc::setenv(c"WAITWORD_SPIN_NS".as_ptr(), c"0".as_ptr(), 1);
        for name in [c"WAITWORD", c"WAITWORD_MUTEX", c"WAITWORD_SUMMARY"] {
            libc::unsetenv(name.as_ptr());
        }
    }
    // SAFETY: maps an unused address; the call fails if the address is in use.
    let stage = unsafe {
        rustix::mm::mmap_anonymous(
            std::ptr::with_exposed_provenance_mut(STAGE),
            STAGE_BYTES,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE,
        )
    };
    assert_eq!(stage.expect("memory for the stage").expose_provenance(), STAGE);
    AS_SHIPPED.get_or_init(waitword::spin::budget);
    waitword::spin::set_budget(Duration::ZERO);
    waitword::table::reserve(BUCKETS).expect("memory for the table");
    // The first use of the fork generation maps a page for it.
    Once::new().call_once(|| {});
    if pthread::is_loaded() {
        glibc::Once::<DropIn>::done();
    }
    // The C library omits atomic instructions in a process with one thread.
    elsewhere(pause);
}

/// How long our waiters spin by default.
static AS_SHIPPED: OnceLock<Duration> = OnceLock::new();

/// From now on, our waiters spin as shipped.
pub(super) fn spin_as_shipped() {
    let budget = AS_SHIPPED.get().expect("set before any operation");
    waitword::spin::set_budget(*budget);
}

/// Sleeps forever.
fn pause() {
    loop {
        // SAFETY: the call only waits for signals.
        unsafe { libc::pause() };
    }
}

/// The kernel's ID of the calling thread.
fn thread_number() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Starts a thread on the other CPU.
pub(super) fn elsewhere(work: impl FnOnce() + Send + 'static) {
    type Work = Box<dyn FnOnce() + Send>;
    extern "C" fn run(work: *mut libc::c_void) -> *mut libc::c_void {
        // SAFETY: boxed below, for this thread alone.
        let work = unsafe { Box::from_raw(work.cast::<Work>()) };
        run_on(&[ELSEWHERE.load(SeqCst)]);
        work();
        std::ptr::null_mut()
    }
    let work: Work = Box::new(work);
    let work = Box::into_raw(Box::new(work)).cast();
    // SAFETY: pthread_create overwrites the zeros; `run` takes ownership of the box.
    let result = unsafe {
        let mut thread = std::mem::zeroed();
        libc::pthread_create(&raw mut thread, std::ptr::null(), run, work)
    };
    assert_eq!(result, 0, "cannot start a thread");
}

/// Waits until `condition` holds. If it does not hold for a very long time, a thread that should
/// sleep does not, and the process exits.
pub(super) fn until(condition: impl Fn() -> bool) {
    const PATIENCE: Duration = Duration::from_secs(20);
    let begin = Instant::now();
    while !condition() {
        if begin.elapsed() > PATIENCE {
            // SAFETY: `_exit` runs no cleanup of the copied process.
            unsafe { libc::_exit(AWAKE) };
        }
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// Whether a thread of this process is queued and asleep in a futex call. It takes two files to
/// tell:
///
/// * `syscall` contains the number of the call that a thread sleeps in, once the thread is off its
///   CPU. State `S` in `stat` does not mean that the thread has queued: the kernel sets it earlier.
/// * `stat` contains state `S` only for a thread that has not been woken. A thread whose wake-up is
///   on its way to another CPU still looks asleep in the other file.
fn sleeps(thread: i32) -> bool {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/self/task/{thread}/{file}"));
    let (Ok(call), Ok(stat)) = (read("syscall"), read("stat")) else {
        return false;
    };
    let number = call.split(' ').next().and_then(|word| word.parse().ok());
    number == Some(libc::SYS_futex) && crew::state(&stat) == Some('S')
}

type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);

/// How many sleepers are held.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// Holds the interrupted thread if it was sleeping in a futex call.
extern "C" fn hold(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes the interrupted thread's registers.
    let registers = unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let result = registers[libc::REG_RAX as usize];
    let code =
        std::ptr::with_exposed_provenance::<[u8; 2]>(registers[libc::REG_RIP as usize] as usize);
    // Hold the thread only if it was sleeping. Then the signal has either just ended the sleep, or
    // the kernel will restart the sleep after the handler, as it does for the wait for a
    // priority-inheriting mutex.
    let has_ended = result == i64::from(-libc::EINTR);
    // SAFETY: the thread was about to execute the code there.
    let restarts = || result == libc::SYS_futex && unsafe { code.read() } == SYSCALL;
    if has_ended || restarts() {
        HELD.fetch_add(1, SeqCst);
        pause();
    }
}

/// The `syscall` instruction.
const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// Makes threads do `work` on the other CPU until all of them sleep in it, and holds them there:
/// neither a wake-up nor a timeout of their own lets them continue. They start together, because
/// some locks depend on how long other threads have waited before.
pub(super) fn asleep(count: usize, work: fn()) {
    install(libc::SIGUSR1, hold);
    let held_before = HELD.load(SeqCst);
    let numbers: &[AtomicI32] = (0..count).map(|_| AtomicI32::new(0)).collect::<Vec<_>>().leak();
    let gate: &AtomicBool = Box::leak(Box::default());
    for number in numbers {
        elsewhere(move || {
            number.store(thread_number(), SeqCst);
            while !gate.load(SeqCst) {
                std::thread::yield_now();
            }
            work();
        });
        until(|| number.load(SeqCst) != 0);
    }
    gate.store(true, SeqCst);
    until(|| numbers.iter().all(|number| sleeps(number.load(SeqCst))));
    until(|| {
        for number in numbers {
            // SAFETY: signals a thread of this process that does not end.
            unsafe {
                let number = number.load(SeqCst);
                libc::syscall(libc::SYS_tgkill, std::process::id(), number, libc::SIGUSR1)
            };
        }
        HELD.load(SeqCst) == held_before + count
    });
}

fn install(signal: i32, handler: Handler) {
    // SAFETY: `action` is a complete `sigaction`; with SA_SIGINFO the kernel calls the handler with
    // this signature.
    let result = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut())
    };
    assert_eq!(result, 0, "cannot install a handler for signal {signal}");
}

/// Waits until the watched thread sleeps in a futex call.
pub(super) fn until_asleep() {
    until(|| sleeps(SUBJECT.load(SeqCst)));
}

/// Makes another thread do `work` once the watched thread sleeps in a futex call.
pub(super) fn once_asleep(work: fn()) {
    elsewhere(move || {
        until_asleep();
        work();
    });
}

/// Our locks ask for the thread's priority every 10 ms at most. Waits so long that the next lock
/// asks.
pub(super) fn long_ago() {
    std::thread::sleep(Duration::from_millis(20));
}

/// Makes readers on two CPUs collide until the lock turns on its reader bias.
///
/// They hold the lock only for an instant, so two loops of the same length could avoid each other
/// for minutes.
pub(super) fn make_biased(lock: &'static RawRwLock) {
    static DONE: AtomicBool = AtomicBool::new(false);
    static GONE: AtomicBool = AtomicBool::new(false);
    let read_for_a_while = || {
        for _ in 0..100 {
            lock.lock_shared();
            // SAFETY: locked just above.
            unsafe { lock.unlock_shared() };
        }
    };
    elsewhere(move || {
        while !DONE.load(SeqCst) {
            read_for_a_while();
        }
        GONE.store(true, SeqCst);
    });
    while !format!("{lock:?}").contains("BIASED") {
        read_for_a_while();
    }
    DONE.store(true, SeqCst);
    until(|| GONE.load(SeqCst));
}
