//! The protocols under loom: every interleaving (up to a bound on preemptions), and the stale
//! values that the C11 memory model lets a relaxed load return.
//!
//! The models run the crate's own table, buckets, queues, parkers and policies. They replace only
//! the atomics (`atomic/model.rs`) and the files of `sys` that have a twin named `_model.rs`: the
//! kernel's futex, the clocks, the scheduler, the CPUs, memory and the environment; and the list of
//! robust mutexes, the rwlock's timers and its thread-local. The policies are the shipped ones: a
//! thread may stay awake, for one nanosecond. `cfg!(loom)` marks a few shortcuts.
//! Tables are smaller (`smaller_in_models`), since each execution makes them again. A lost wake-up
//! shows as a deadlock, which loom reports; a chain touched without its lock shows as a race on its
//! cell.
//!
//! Run: `RUSTFLAGS="--cfg loom" cargo test --release -p waitword --lib model`
//!
//! The same models run under shuttle, which chooses schedules at random, with any number of context
//! switches, and treats all atomics as sequentially consistent. `stress` has scenes that are too
//! large for loom. Run: `scripts/shuttle`

mod barrier;
mod condvar;
mod event;
mod fair_mutex;
#[cfg(shuttle)]
mod stress;
// About weak memory only, which shuttle does not model.
#[cfg(not(shuttle))]
mod fences;
mod growth;
mod interrupt;
mod mutex;
mod once;
mod parkers;
mod pi;
mod requeue;
mod robust;
mod rwlock;
mod rwlock_biased;
mod semaphore;
mod timeout;
mod wait_wake;
mod wake_op;

use crate::checker::check;
use crate::checker::sync::Arc;
use crate::checker::sync::atomic::{AtomicU32, Ordering};
use crate::checker::thread;
use crate::error::Error;
use crate::private::{Awaited, Key, Place, WaiterTable};
use crate::{Clock, Deadline};

/// Starts a thread that shares `common` with the others.
fn spawn<T: 'static, R: 'static>(
    common: &Arc<T>,
    work: impl FnOnce(&T) -> R + 'static,
) -> thread::JoinHandle<R> {
    let common = common.clone();
    thread::spawn(move || work(&common))
}

/// In a model every deadline has passed.
fn passed() -> Deadline {
    Deadline::at(Clock::Monotonic, core::time::Duration::ZERO)
}

/// Waits until all these threads have ended, and returns their results.
fn join<R: 'static>(threads: impl IntoIterator<Item = thread::JoinHandle<R>>) -> Vec<R> {
    let results = threads.into_iter().map(|thread| thread.join().unwrap());
    results.collect()
}

fn waiter_table() -> Arc<WaiterTable> {
    Arc::new(WaiterTable::new(None))
}

/// A thread that works on a word.
fn spawn_on<R: 'static>(
    waiter_table: &Arc<WaiterTable>,
    word: &Arc<TestWord>,
    work: impl FnOnce(&WaiterTable, &TestWord) -> R + 'static,
) -> thread::JoinHandle<R> {
    let (waiter_table, word) = (waiter_table.clone(), word.clone());
    thread::spawn(move || work(&waiter_table, &word))
}

/// A word with an address of its own: word 0, 1, 2, ... of a four-bucket table.
struct TestWord {
    key: Key,
    value: AtomicU32,
}

impl TestWord {
    fn new(number: usize) -> Arc<Self> {
        Arc::new(Self {
            key: Key { address: 0x1000 + 4 * number, place: Place::Anywhere },
            value: AtomicU32::new(0),
        })
    }

    fn holds(&self, expected: u32) -> bool {
        self.value.load(Ordering::Relaxed) == expected
    }

    fn set(&self, value: u32) {
        self.value.store(value, Ordering::Relaxed);
    }

    /// Sleeps while the word holds 0.
    fn wait(&self, waiter_table: &WaiterTable) -> Result<(), Error> {
        crate::futex::private::wait(
            waiter_table,
            self.key,
            Awaited::Word32,
            || self.holds(0),
            u64::MAX,
            None,
        )
    }

    /// The same with a deadline. In a model every deadline has passed.
    fn wait_briefly(&self, waiter_table: &WaiterTable) -> Result<(), Error> {
        let deadline = passed();
        let holds = || self.holds(0);
        crate::futex::private::wait(
            waiter_table,
            self.key,
            Awaited::Word32,
            holds,
            u64::MAX,
            Some(&deadline),
        )
    }

    fn wake(&self, waiter_table: &WaiterTable, count: usize) -> usize {
        crate::futex::private::wake(waiter_table, self.key, count, u64::MAX)
    }
}
