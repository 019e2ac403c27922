//! Deadlock detection: finds threads that wait for each other in a cycle, and reports them and
//! their locks. Cargo feature `deadlock_detection`.
//!
//! It has parking_lot's interface, [`check_deadlock`], and a background check, [`watch`]:
//!
//! ```no_run
//! use std::time::Duration;
//! use waitword::Mutex;
//! use waitword::deadlock;
//!
//! static LEFT: Mutex<()> = Mutex::new(());
//! static RIGHT: Mutex<()> = Mutex::new(());
//!
//! deadlock::watch(Duration::from_secs(10), deadlock::print);
//!
//! let other = std::thread::spawn(|| {
//!     let _right = RIGHT.lock();
//!     let _left = LEFT.lock();
//! });
//! let _left = LEFT.lock();
//! let _right = RIGHT.lock();
//! # drop((_left, _right));
//! # other.join().unwrap();
//! ```
//!
//! If both threads acquire their first lock before one acquires its second, this prints within ten
//! seconds (the long lines are wrapped here):
//!
//! ```text
//! deadlock: 2 threads wait for each other
//!   thread 'main' (4711) waits at src/main.rs:15:20 for the mutex 0x55d0c8a4b014,
//!     which unnamed thread (4712) has locked at src/main.rs:11:24
//!   unnamed thread (4712) waits at src/main.rs:12:22 for the mutex 0x55d0c8a4b010,
//!     which thread 'main' (4711) has locked at src/main.rs:14:18
//! ```
//!
//! With `RUST_BACKTRACE=1`, each line is followed by the thread's backtrace.
//!
//! # What is found
//!
//! * Cycles of any length, through any of [`Mutex`](crate::Mutex), [`RwLock`](crate::RwLock),
//!   [`ReentrantMutex`](crate::ReentrantMutex), [`CheckedMutex`](crate::CheckedMutex) and
//!   [`PiMutex`](crate::PiMutex), in all flavours. A thread that locks a mutex that it already
//!   holds is a cycle of one.
//! * Threads that wait on a condition variable whose mutex is held by a thread that waits for them.
//!   Signalled or not, they need the mutex to return.
//! * Threads that wait for a lock whose holder has ended after leaking its guard.
//!
//! Each deadlock is reported once. There are no false positives: a reported thread cannot continue,
//! whatever other threads do, unless `unsafe` code releases a lock that another thread holds.
//!
//! # What is not found
//!
//! * Cycles with a wait that has a deadline: it ends by itself.
//! * Cycles that the locks detect themselves and refuse with
//!   [`LockError::Deadlock`](crate::LockError::Deadlock).
//! * A thread that waits behind another waiting thread, where only the lock's order keeps it out.
//!   The main case is a thread that reads a writer-preferring [`RwLock`](crate::RwLock) again while
//!   a writer waits ([`Preference::Writer`](crate::Preference)).
//! * Threads that wait behind a deadlock but are not part of it.
//! * Locks without a holder (semaphores, barriers, events, latches), [`Once`](crate::Once), and
//!   [`RobustMutex`](crate::RobustMutex), whose holder may be in another process. For
//!   process-shared locks, holders in other processes.
//! * Locks acquired through [`RawPosixMutex`](crate::RawPosixMutex), or through
//!   [`RawRwLock`](crate::RawRwLock)'s own methods instead of `lock_api`'s traits. Do not mix the
//!   two on one lock.
//! * Locks beyond the first 1024 that a thread holds at a time.
//!
//! # Costs
//!
//! Without the feature: none. With it, each lock and unlock also writes to a record of the calling
//! thread: loads and stores, no atomic read-modify-write, and a look at all locks that the thread
//! holds. A record takes 28 KiB of address space, and memory for the part that is used. A check
//! reads all records and stops no thread.
//!
//! With backtraces enabled, each lock that must wait captures one, which is slow and uses the heap.
//! If the global allocator is built on these locks, no backtraces are captured. Without backtraces,
//! the hooks use the heap only before a thread's first lock and as the thread ends.
//!
//! In a forked child, the detection takes all threads to hold no locks at first. The watching
//! thread does not exist in the child.

mod graph;
mod hooks;
mod kind;
mod record;
mod report;
#[cfg(test)]
mod tests;

pub(crate) use hooks::{Taking, give_back, weaken};
pub(crate) use kind::Way;

pub use kind::LockKind;
pub use report::DeadlockedThread;

use graph::{Graph, Link};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long a deadlock must last before it is reported.
const PAUSE: Duration = Duration::from_millis(10);

/// Finds deadlocks that have not been reported yet. Each is a list of threads that wait for each
/// other: each waits for a lock that the next one holds, and the last for a lock of the first. A
/// list of one is a thread that waits for itself or for a thread that has
/// [ended](DeadlockedThread::holder_has_ended).
///
/// Does not stop other threads. If it finds a deadlock, it looks again after 10 ms.
pub fn check_deadlock() -> Vec<Vec<DeadlockedThread>> {
    /// One check at a time, so that each deadlock is reported once. (A mutex of the standard
    /// library is not watched itself.)
    static CHECK: Mutex<()> = Mutex::new(());
    let _alone = CHECK.lock().unwrap_or_else(PoisonError::into_inner);
    let graph = Graph::read();
    let found = graph.deadlocks();
    if found.is_empty() {
        return Vec::new();
    }
    std::thread::sleep(PAUSE);
    let reports = found.iter().filter_map(|deadlock| report(deadlock));
    reports.collect()
}

/// The report of this deadlock, if it persists.
fn report(deadlock: &[Link<'_>]) -> Option<Vec<DeadlockedThread>> {
    if !deadlock.iter().all(Link::stands) {
        return None;
    }
    let threads = deadlock.iter().map(DeadlockedThread::of);
    let report = threads.collect::<Option<Vec<_>>>()?;
    for Link { waiting, .. } in deadlock {
        let reported = &waiting.record.reported;
        // Relaxed: only checks use it, and they run one at a time.
        reported.store(waiting.sequence, core::sync::atomic::Ordering::Relaxed);
    }
    Some(report)
}

/// Starts a thread that [checks](check_deadlock) at this interval for as long as the process lives,
/// and calls `report` with each deadlock that it finds. Pass [`print`] or a function of your own,
/// which should not wait for locks that the program's other threads hold.
///
/// ```
/// use std::time::Duration;
/// use waitword::deadlock;
///
/// deadlock::watch(Duration::from_secs(10), |deadlock| {
///     deadlock::print(deadlock);
///     std::process::abort();
/// });
/// ```
///
/// # Panics
/// If the thread cannot be created.
pub fn watch(interval: Duration, mut report: impl FnMut(&[DeadlockedThread]) + Send + 'static) {
    let check = move || {
        loop {
            std::thread::sleep(interval);
            for deadlock in check_deadlock() {
                report(&deadlock);
            }
        }
    };
    std::thread::Builder::new()
        .name("deadlock-watch".to_owned())
        .spawn(check)
        .expect("no thread for the deadlock detection");
}

/// Writes a deadlock to the standard error stream, with backtraces where they exist.
pub fn print(deadlock: &[DeadlockedThread]) {
    let mut text = match deadlock {
        [thread] if thread.holder_has_ended() => {
            String::from("deadlock: a thread waits for a thread that has ended\n")
        }
        [_] => String::from("deadlock: a thread waits for itself\n"),
        _ => format!("deadlock: {} threads wait for each other\n", deadlock.len()),
    };
    for thread in deadlock {
        text += &format!("  {thread:#}\n");
    }
    eprint!("{text}");
}
