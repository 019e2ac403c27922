//! Another process writes whatever it likes over the shared objects that this process waits on, at
//! any moment (SECURITY.md).
//!
//! Such a process can make a waiter wait or wake. It must not make the victim crash, hang beyond
//! its deadlines, or lose anything of its private locks. The victim is a separate process. It has
//! threads that lock, wait and wake on shared objects of every type, each wait with a deadline, and
//! threads that use a private mutex and condvar, whose counts must be exact. This process is the
//! hostile one: it writes numbers, random and malicious, and ends when the victim does.
//!
//! SECURITY.md excepts robust mutexes, so they are not tested here: they follow links in shared
//! memory, as glibc's do.
//!
//! In a build with debug assertions the library reports misuse by a panic, and what a hostile
//! process does to a lock looks like misuse. So run `cargo test --release -p waitword --test
//! hostile`.

use fastrand::Rng;
use std::mem::offset_of;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use waitword::{
    AutoEvent, Barrier, Condvar, Deadline, Event, Futex, Kind, Latch, Mutex, PosixFlavour,
    PosixMutexOptions, Preference, RawCondvar, RawPosixMutex, RawRwLock, Scope, Semaphore,
    thread_number,
};
use waitword_testkit::{Mapping, memory_file};

/// What the hostile process overwrites.
#[repr(C)]
struct Scribbled {
    mutexes: [RawPosixMutex; 12],
    rwlocks: [RawRwLock; 2],
    semaphore: Semaphore,
    auto_event: AutoEvent,
    event: Event,
    barrier: Barrier,
    words: (AtomicU64, AtomicU32, AtomicU8),
    latch: Latch,
    condvar: RawCondvar,
}

const TARGETS: usize = size_of::<Scribbled>() / 4;
/// Where a private condvar records its mutex, and where a condvar records that it is not private.
const MUTEX_OF_CONDVAR: usize = offset_of!(Scribbled, condvar) / 4;
const KIND_OF_CONDVAR: usize = MUTEX_OF_CONDVAR + 3;

/// What it does not overwrite.
#[repr(C)]
struct Kept {
    ready: AtomicU32,
    victim: AtomicU32,
    mutex: RawPosixMutex,
}

const LENGTH: usize = 8192;
const MEMORY: &str = "WAITWORD_HOSTILE_MEMORY";
const FOR: Duration = Duration::from_secs(2);
const THREADS: usize = 4;

impl Scribbled {
    fn new() -> Self {
        let kinds = [Kind::Normal, Kind::Recursive, Kind::ErrorChecking];
        let flavours = [
            PosixFlavour::Adaptive,
            PosixFlavour::Throughput,
            PosixFlavour::WaitWake,
            PosixFlavour::PriorityInheriting,
        ];
        Self {
            mutexes: std::array::from_fn(|number| {
                PosixMutexOptions::new()
                    .scope(Scope::Shared)
                    .kind(kinds[number % 3])
                    .flavour(flavours[number / 3])
                    .build_raw()
            }),
            rwlocks: [Preference::Reader, Preference::Writer]
                .map(|preference| RawRwLock::with(preference, Scope::Shared)),
            semaphore: Semaphore::with_scope(1, Scope::Shared),
            auto_event: AutoEvent::with_scope(false, Scope::Shared),
            event: Event::with_scope(false, Scope::Shared),
            barrier: Barrier::with_scope(2, Scope::Shared),
            words: Default::default(),
            latch: Latch::with_scope(3, Scope::Shared),
            condvar: RawCondvar::with_scope(Scope::Shared),
        }
    }
}

fn in_a_moment(random: &mut Rng) -> Deadline {
    Deadline::after(Duration::from_micros(random.u64(0..2000)))
}

/// One operation on a shared object of the victim, with any result.
fn operate(on: &Scribbled, kept: &Kept, random: &mut Rng) {
    let deadline = in_a_moment(random);
    match random.usize(0..10) {
        0..3 => {
            let mutex = &on.mutexes[random.usize(0..on.mutexes.len())];
            if random.usize(0..4) == 0 && mutex.try_lock_checked().is_ok()
                || mutex.lock_until(deadline).is_ok()
            {
                // SAFETY: we have locked it; that others may have changed it is the point of the
                // test.
                let _ = unsafe { mutex.unlock_checked() };
            }
        }
        3 | 4 => {
            let rwlock = &on.rwlocks[random.usize(0..2)];
            let got = match random.usize(0..4) {
                0 => rwlock.read(thread_number(), Some(&deadline)),
                1 => rwlock.write(thread_number(), Some(&deadline)),
                2 => rwlock.try_read(),
                _ => rwlock.try_write(thread_number()),
            };
            if got.is_ok() {
                // SAFETY: as above.
                let _ = unsafe { rwlock.unlock() };
            }
        }
        5 => {
            let _ = on.semaphore.post();
            let _ = on.semaphore.wait_until(deadline);
            on.auto_event.set();
            let _ = on.auto_event.wait_until(in_a_moment(random));
            let _ = on.auto_event.wait_until(in_a_moment(random));
        }
        6 => {
            let _ = on.event.wait_until(deadline);
            on.event.set();
            on.event.reset();
        }
        7 => {
            let _ = on.barrier.wait_until(deadline);
            let _ = on.latch.count_down(1);
            let _ = on.latch.wait_until(in_a_moment(random));
        }
        8 => {
            let (wide, word, narrow) = &on.words;
            let _ = Futex::shared(wide).wait_until(wide.load(Relaxed), deadline);
            let _ = Futex::shared(word).wait_until(word.load(Relaxed), in_a_moment(random));
            let _ = Futex::shared(narrow).wait_until(narrow.load(Relaxed), in_a_moment(random));
            let _ = Futex::shared(word).requeue(Futex::shared(wide), 1, 7);
            let _ = Futex::shared(wide).wake(7);
        }
        _ => {
            if random.usize(0..2) == 0 {
                let _ = on.condvar.notify_all();
                let _ = on.condvar.notify_one();
            } else if kept.mutex.lock_until(deadline).is_ok() {
                // SAFETY: held.
                unsafe {
                    let _ = on.condvar.wait(&kept.mutex, Some(&in_a_moment(random)));
                    let _ = kept.mutex.unlock_checked();
                }
            }
        }
    }
}

/// The victim's private lock: two threads take turns, so that each turn is a wait and a wake.
#[derive(Default)]
struct Private {
    turns: Mutex<u64>,
    changed: Condvar,
}

impl Private {
    /// Takes every second turn until it is `over`. Returns how many. A thread that ends lets the
    /// other one end.
    fn take_turns(&self, mine: u64, over: &AtomicBool) -> u64 {
        let mut taken = 0;
        let mut turns = self.turns.lock();
        while !over.load(Relaxed) {
            if *turns % 2 == mine {
                *turns += 1;
                taken += 1;
                self.changed.notify_all();
            } else {
                self.changed.wait_for(&mut turns, Duration::from_millis(100));
            }
        }
        taken
    }
}

fn victim(memory: &Mapping) {
    // SAFETY: the hostile process has made both, and writes only what any of their words may hold.
    let (scribbled, kept) = unsafe { (memory.get::<Scribbled>(0), memory.get::<Kept>(4096)) };
    let _watchdog = waitword_testkit::watch();
    let over = AtomicBool::new(false);
    let private = Private::default();
    std::thread::scope(|threads| {
        let players = [0, 1].map(|mine| {
            let (private, over) = (&private, &over);
            threads.spawn(move || private.take_turns(mine, over))
        });
        for thread in 1..=THREADS as u64 {
            let over = &over;
            threads.spawn(move || {
                let mut random = Rng::with_seed(thread);
                while !over.load(Relaxed) {
                    operate(scribbled, kept, &mut random);
                }
            });
        }
        kept.victim.store(thread_number(), Relaxed);
        kept.ready.store(1, Relaxed);
        std::thread::sleep(FOR);
        over.store(true, Relaxed);
        let taken: u64 = players.map(|player| player.join().unwrap()).iter().sum();
        assert_eq!(taken, *private.turns.lock(), "private counts are not exact");
        assert!(taken > 100, "private threads did not get on: {taken} turns");
    });
    // No waiter was left in the private table, whatever the other process wrote.
    let left = waitword::table::snapshot(&mut []);
    assert_eq!((left.waiters, left.locked_buckets), (0, 0));
}

/// Writes one number at one place.
fn scribble(targets: &[AtomicU32], victim: u32, random: &mut Rng) {
    let target = &targets[match random.usize(0..16) {
        0 => MUTEX_OF_CONDVAR + random.usize(0..2),
        1 => KIND_OF_CONDVAR,
        _ => random.usize(0..targets.len()),
    }];
    let seen = target.load(Relaxed);
    let value = match random.usize(0..12) {
        0 => 0,
        1 => u32::MAX,
        2 => i32::MIN as u32,
        3 => i32::MAX as u32,
        // The IDs of the victim's threads, with and without the kernel's bits.
        4 => victim + random.usize(0..THREADS + 3) as u32,
        5 => (victim + random.usize(0..THREADS + 3) as u32) | 0xc000_0000,
        6 => seen.wrapping_add(1),
        7 => seen.wrapping_sub(1),
        8..11 => seen ^ (1 << random.usize(0..32)),
        _ => random.u32(..),
    };
    target.store(value, Relaxed);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "with --release only, see above")]
fn a_hostile_process_breaks_nothing_but_what_it_shares() {
    if let Ok(path) = std::env::var(MEMORY) {
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC;
        let file = rustix::fs::open(path.as_str(), flags, rustix::fs::Mode::empty());
        return victim(&Mapping::of_file(file.unwrap(), LENGTH));
    }
    let file = memory_file(LENGTH);
    let memory = Mapping::of_file(&file, LENGTH);
    // SAFETY: mapped, aligned, and not yet known to any other process.
    unsafe { memory.at::<Scribbled>(0).write(Scribbled::new()) };
    let options = PosixMutexOptions::new().scope(Scope::Shared);
    // SAFETY: as above; the rest of it is zeros, as it must be.
    unsafe { (&raw mut (*memory.at::<Kept>(4096)).mutex).write(options.build_raw()) };
    // SAFETY: all of this consists of words.
    let (kept, targets) = unsafe {
        let start = memory.at::<AtomicU32>(0);
        let targets = std::slice::from_raw_parts(start, TARGETS);
        (memory.get::<Kept>(4096), targets)
    };
    let descriptor = rustix::fd::AsRawFd::as_raw_fd(&file);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_hostile_process_breaks_nothing_but_what_it_shares"])
        .env(MEMORY, format!("/proc/{}/fd/{descriptor}", std::process::id()))
        .env("WATCHDOG_SECONDS", "60")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    // Different each time: the result depends on timing anyway.
    let seed = (u64::from(std::process::id()) << 32) | 0x4f6c_dd1d;
    let mut random = Rng::with_seed(seed);
    let mut written = 0;
    let status = loop {
        if kept.ready.load(Relaxed) == 1 {
            let burst = 1 + random.usize(0..64);
            (0..burst).for_each(|_| scribble(targets, kept.victim.load(Relaxed), &mut random));
            written += burst;
            // In between, the victim may make progress.
            std::thread::sleep(Duration::from_micros(random.u64(0..200)));
        } else {
            std::thread::sleep(Duration::from_millis(1));
        }
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(began.elapsed() < Duration::from_secs(120), "the victim hangs");
    };
    eprintln!("{written} numbers were written over its objects");
    assert!(status.success(), "the victim: {status}");
}
