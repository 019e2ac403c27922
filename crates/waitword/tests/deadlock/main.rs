//! The deadlock detection: each kind of deadlock is found once and named, and nothing else is
//! reported.
//!
//! Each test is a process of its own. Its deadlocked threads end with it.

mod cycles;
mod ended;
mod innocent;
mod report;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;
use waitword::Mutex;
use waitword::deadlock::{DeadlockedThread, check_deadlock};
use waitword_testkit::in_fresh_process;

/// An allocator that uses a lock of this crate, once `HEAP_LOCKS` is set: every allocation in a
/// hook takes that lock, with its hooks.
struct Heap(Mutex<()>);

#[global_allocator]
static HEAP: Heap = Heap(Mutex::new(()));
static HEAP_LOCKS: AtomicBool = AtomicBool::new(false);

impl Heap {
    fn alone<R>(&self, work: impl FnOnce() -> R) -> R {
        let _alone = HEAP_LOCKS.load(SeqCst).then(|| self.0.lock());
        work()
    }
}

// SAFETY: the system's allocator.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: forwards this function's own contract.
        self.alone(|| unsafe { System.alloc(layout) })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: forwards this function's own contract.
        self.alone(|| unsafe { System.dealloc(block, layout) });
    }
}

/// Runs a test in its own process, which ends soon, whatever happens in it.
#[track_caller]
fn alone(check: impl FnOnce()) {
    in_fresh_process(|| {
        // SAFETY: starts the timer of a signal that ends the process.
        unsafe { libc::alarm(100) };
        HEAP_LOCKS.store(true, SeqCst);
        check();
    });
}

/// A value for the rest of the process.
fn leaked<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

type Part = Box<dyn FnOnce(&Barrier) + Send>;

/// A thread with this name that takes its first lock, meets the other threads at the barrier, and
/// waits for its second lock.
fn part(name: &str, run: impl FnOnce(&Barrier) + Send + 'static) -> (String, Part) {
    (name.to_owned(), Box::new(run))
}

/// Starts these threads, which deadlock, each waiting for the next. Waits until exactly that is
/// reported.
#[track_caller]
fn deadlock<const N: usize>(parts: [(String, Part); N]) -> Vec<DeadlockedThread> {
    assert!(check_deadlock().is_empty());
    let barrier = leaked(Barrier::new(N));
    let names = parts.map(|(name, run)| {
        let thread = thread::Builder::new().name(name.clone());
        thread.spawn(move || run(barrier)).unwrap();
        name
    });
    let mut found = until_reported();
    let first = found.iter().position(|thread| thread.thread_name() == Some(&names[0]));
    found.rotate_left(first.expect("the first thread is part of it"));
    for (index, thread) in found.iter().enumerate() {
        assert_eq!(thread.thread_name(), Some(&*names[index]), "{found:#?}");
        let next = names[(index + 1) % N].as_str();
        assert_eq!(thread.holder_name(), Some(next), "{found:#?}");
        assert!(!thread.holder_has_ended());
    }
    assert_eq!(found.len(), N);
    // It is reported only once.
    assert!(check_deadlock().is_empty());
    found
}

/// Waits for the only deadlock.
#[track_caller]
fn until_reported() -> Vec<DeadlockedThread> {
    loop {
        let mut found = check_deadlock();
        if let Some(deadlock) = found.pop() {
            assert!(found.is_empty(), "{found:#?} and {deadlock:#?}");
            return deadlock;
        }
        thread::sleep(Duration::from_millis(1));
    }
}
