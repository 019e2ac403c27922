//! The fence pair on this processor, in the manner of litmus7: two threads on two CPUs do their two
//! steps at nearly the same moment, very often, and the test checks what both have read.
//!
//! ```text
//!   waiter                     waker
//!   mine = 1                   theirs = 1
//!   fence                      fence
//!   r1 = theirs                r2 = mine
//!
//!   forbidden: r1 = 0 and r2 = 0 (the waiter sleeps, and no thread wakes it)
//! ```
//!
//! Without fences the forbidden outcome is seen, on x86-64 and everywhere else. So this test can
//! see it. With the fence that the library calls (its file is compiled into this test) it is never
//! seen. The same pair for checkers of memory models: `models/litmus`, `models/fences.pml`,
//! `src/model/fences.rs`.

#[allow(
    dead_code,
    unused_imports,
    unused_macros,
    unreachable_pub,
    reason = "all of the file, for one function"
)]
#[path = "../src/atomic/real.rs"]
mod atomic;

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed, Ordering::SeqCst};

/// A variable with cache lines of its own.
#[repr(align(256))]
#[derive(Default)]
struct Apart(AtomicU32);

#[derive(Default)]
struct Shared {
    mine: Apart,
    theirs: Apart,
    /// Counts the meetings of the two threads.
    met: Apart,
    read: [Apart; 2],
    /// One for each thread, which is in no cache when the thread stores to it.
    cold: [Apart; 2],
}

impl Shared {
    /// Waits for the other thread: meeting number `number` of the two. A thread that spins for long
    /// yields its CPU.
    fn meet(&self, number: u32) {
        self.met.0.fetch_add(1, SeqCst);
        let mut looks = 0_u32;
        while self.met.0.load(SeqCst) < 2 * number {
            looks += 1;
            match looks % 20_000 {
                0 => std::thread::yield_now(),
                _ => spin_loop(),
            }
        }
    }
}

/// One thread's part. Thread 0 counts the forbidden outcomes.
fn side(shared: &Shared, thread: usize, iterations: u32, fence: fn()) -> u32 {
    let (own, other) = match thread {
        0 => (&shared.mine.0, &shared.theirs.0),
        _ => (&shared.theirs.0, &shared.mine.0),
    };
    let mut forbidden = 0;
    let cold = &shared.cold[thread].0;
    for iteration in 0..iterations {
        flush(cold);
        shared.meet(2 * iteration + 1);
        // The skew: from one thread being early to the other being early.
        let early = iteration / 2 % 16;
        if iteration as usize % 2 == thread {
            (0..early).for_each(|_| spin_loop());
        }
        // Memory takes this store first, which keeps the next one in the store buffer meanwhile:
        // the load has some 100 ns to overtake it.
        cold.store(iteration, Relaxed);
        own.store(1, Relaxed);
        fence();
        let read = other.load(Relaxed);
        shared.read[thread].0.store(read, Relaxed);
        shared.meet(2 * iteration + 2);
        // Each thread resets its own variable before the next meeting.
        own.store(0, Relaxed);
        if thread == 0 {
            forbidden += u32::from(shared.read.iter().all(|read| read.0.load(Relaxed) == 0));
        }
    }
    forbidden
}

/// Removes `word` from every cache.
fn flush(word: &AtomicU32) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: CLFLUSH is in every x86-64 processor, `word` is a valid address, and no value
    // changes.
    unsafe {
        std::arch::x86_64::_mm_clflush(word.as_ptr().cast())
    };
    #[cfg(not(target_arch = "x86_64"))]
    let _ = word;
}

/// How often the forbidden outcome occurred.
fn run(iterations: u32, cpus: [usize; 2], fence: fn()) -> u32 {
    let shared = Shared::default();
    std::thread::scope(|threads| {
        let sides = [0, 1].map(|thread| {
            let shared = &shared;
            threads.spawn(move || {
                pin(cpus[thread]);
                side(shared, thread, iterations, fence)
            })
        });
        sides.into_iter().map(|side| side.join().unwrap()).sum()
    })
}

fn pin(cpu: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    rustix::thread::sched_setaffinity(None, &set).expect("a CPU that was allowed");
}

/// Two CPUs that this process may use.
fn two_cpus() -> Option<[usize; 2]> {
    let allowed = rustix::thread::sched_getaffinity(None).ok()?;
    let mut cpus = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
    Some([cpus.next()?, cpus.next()?])
}

/// Only the compiler keeps the order.
fn no_fence() {
    std::sync::atomic::compiler_fence(SeqCst);
}

#[test]
fn the_library_s_fence_keeps_a_store_before_a_load() {
    let Some(cpus) = two_cpus() else {
        eprintln!("one CPU: nothing to be seen");
        return;
    };
    const BATCH: u32 = 20_000;
    const MOST_BATCHES: u32 = 100;
    // Without a fence: until the outcome is seen, which proves that it can be seen.
    let mut batches = 0;
    let mut seen = 0;
    while seen == 0 && batches < MOST_BATCHES {
        batches += 1;
        seen = run(BATCH, cpus, no_fence);
    }
    eprintln!("without a fence: {seen} of {} are forbidden ones", batches * BATCH);
    // The same number of batches again, and at least ten.
    for _ in 0..10.max(batches) {
        assert_eq!(run(BATCH, cpus, atomic::full_fence), 0, "a wake-up was lost");
    }
    assert!(
        seen > 0 || !cfg!(target_arch = "x86_64"),
        "this test sees nothing: not even without a fence"
    );
}
