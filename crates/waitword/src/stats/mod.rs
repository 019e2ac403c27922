//! Counters of what locks had to do: contended acquisitions, sleeps, wakes, requeues and hand-offs.
//!
//! Off until [`enable`] is called. Only events off the uncontended paths are counted, where a lock
//! waits, sleeps, or wakes or moves a waiter. So an uncontended lock or unlock runs the same code
//! whether counting is on or off, and is *not* counted. A program that wants this number too counts
//! it from outside ([`add_locks`]), as the pthread drop-in does.
//!
//! ```
//! waitword::stats::enable();
//! let before = waitword::stats::snapshot();
//! // ... work ...
//! let during = waitword::stats::snapshot().since(&before);
//! println!("{} sleeps, {} requeues", during.sleeps, during.requeues);
//! ```
//!
//! # Cost
//!
//! Off: one relaxed load, on paths that spin or make system calls anyway. On: one atomic addition
//! in a cache line of the CPU's own (`shards.rs`).
//!
//! # fork
//!
//! After any kind of fork the child starts at zero, because the kernel wipes the counters there
//! (`MADV_WIPEONFORK`). Where the kernel refuses to wipe, the child continues from its parent's
//! numbers.

mod event;
mod shards;

pub use event::Snapshot;

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
pub(crate) use event::Event;
use shards::shards;

static ON: AtomicBool = AtomicBool::new(false);

/// Starts counting. Does not block, and may be called at any time, even while locks are in use.
pub fn enable() {
    shards();
    ON.store(true, Relaxed);
}

/// Stops counting. The counters keep their values.
pub fn disable() {
    ON.store(false, Relaxed);
}

/// Whether counting is on.
#[inline]
pub fn is_enabled() -> bool {
    ON.load(Relaxed)
}

/// The counts so far. Other threads keep running meanwhile, so numbers that belong together may
/// differ by events in progress.
pub fn snapshot() -> Snapshot {
    Snapshot::read(|event| shards().sum(event))
}

/// Counts acquisitions that took no slow path. For code that sits between a program and its locks
/// and sees them; this library does not call it. Does not block; async-signal-safe.
#[doc(hidden)]
#[inline]
pub fn add_locks(count: u64) {
    if ON.load(Relaxed) {
        shards().add(Event::Locks, count);
    }
}

/// Counts one event.
#[inline(always)]
pub(crate) fn count(event: Event) {
    count_many(event, 1);
}

/// Counts `count` events.
#[inline(always)]
pub(crate) fn count_many(event: Event, count: usize) {
    // Relaxed: orders nothing else, and changes only once.
    if ON.load(Relaxed) {
        add(event, count);
    }
}

#[cold]
#[inline(never)]
fn add(event: Event, count: usize) {
    if count != 0 {
        shards().add(event, count as u64);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{Condvar, Mutex};
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::time::{Duration, Instant};
    use waitword_testkit::{Way, in_child};

    /// The counters belong to the whole process, and other tests run at the same time, so only
    /// lower bounds are checked.
    fn until(what: &str, done: impl Fn() -> bool) {
        let began = Instant::now();
        while !done() {
            assert!(began.elapsed() < Duration::from_secs(60), "{what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_broadcast_with_the_mutex_held_moves_all_and_wakes_none() {
        const WAITERS: usize = 6;
        enable();
        let (mutex, condvar) = (Mutex::new(false), Condvar::new());
        let waiting = AtomicUsize::new(0);
        let before = snapshot();
        std::thread::scope(|scope| {
            for _ in 0..WAITERS {
                scope.spawn(|| {
                    let mut done = mutex.lock();
                    waiting.fetch_add(1, SeqCst);
                    condvar.wait_while(&mut done, |done| !*done);
                });
            }
            until("all wait", || waiting.load(SeqCst) == WAITERS && mutex.try_lock().is_some());
            let mut done = mutex.lock();
            *done = true;
            assert_eq!(condvar.notify_all(), WAITERS);
        });
        let counted = snapshot().since(&before);
        let waiters = WAITERS as u64;
        assert!(counted.requeues >= waiters, "{counted:?}");
        assert!(counted.herds_avoided >= 1, "{counted:?}");
        assert!(counted.herd_waiters >= waiters, "{counted:?}");
        assert!(counted.wakes >= waiters, "{counted:?}");
    }

    #[test]
    fn a_thread_that_finds_a_mutex_held_is_counted_once_and_sleeps() {
        enable();
        let before = snapshot();
        let mutex = Mutex::new(());
        std::thread::scope(|scope| {
            let held = mutex.lock();
            let waiter = scope.spawn(|| drop(mutex.lock()));
            until("it sleeps", || {
                let counted = snapshot().since(&before);
                counted.contended >= 1 && counted.sleeps >= 1
            });
            drop(held);
            waiter.join().unwrap();
        });
    }

    #[test]
    fn a_child_begins_with_zeros() {
        enable();
        add_locks(5);
        assert!(snapshot().locks >= 5);
        in_child(Way::Fork, || {
            add_locks(2);
            snapshot().locks == 2 && is_enabled()
        });
    }
}
