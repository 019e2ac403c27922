//! shuttle's names, adapted to loom's where the two differ, and how a model is checked with it.
//!
//! Each model runs with two kinds of schedules. In half of them, a random thread makes each step.
//! In the other half, it is the thread with the highest of random priorities, which change at a few
//! random steps (PCT: Burckhardt and others, ASPLOS 2010). One seed determines everything:
//!
//! ```text
//!   WAITWORD_SHUTTLE_SEED          1 unless set
//!   WAITWORD_SHUTTLE_ITERATIONS    schedules of each kind; unless set, the model's own number
//! ```
//!
//! A model that fails prints the values of the two that make it fail again.

pub(crate) use shuttle::{hint, lazy_static, thread_local};

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use sync::atomic::AtomicPtr;

pub(crate) mod sync {
    pub(crate) use shuttle::sync::{Arc, Condvar, Mutex, MutexGuard, atomic};
}

pub(crate) mod thread {
    //! Threads whose work and result need not be `Send`, as in loom: they all run on one OS thread.

    pub(crate) use shuttle::thread::yield_now;

    struct OnOneThread<T>(T);

    impl<T> OnOneThread<T> {
        fn into_inner(self) -> T {
            self.0
        }
    }

    // SAFETY: shuttle runs all threads of a model on the one operating-system thread that runs the
    // model, so nothing is ever sent between threads.
    unsafe impl<T> Send for OnOneThread<T> {}

    pub(crate) struct JoinHandle<R>(shuttle::thread::JoinHandle<OnOneThread<R>>);

    impl<R: 'static> JoinHandle<R> {
        pub(crate) fn join(self) -> std::thread::Result<R> {
            self.0.join().map(OnOneThread::into_inner)
        }
    }

    pub(crate) fn spawn<R: 'static>(work: impl FnOnce() -> R + 'static) -> JoinHandle<R> {
        let work = OnOneThread(work);
        JoinHandle(shuttle::thread::spawn(move || OnOneThread(work.into_inner()())))
    }
}

pub(crate) mod cell {
    //! A cell that panics when a thread accesses it while another thread is changing it.

    use core::cell::Cell;
    use core::time::Duration;

    #[derive(Debug)]
    pub(crate) struct UnsafeCell<T> {
        readers: Cell<usize>,
        has_writer: Cell<bool>,
        data: core::cell::UnsafeCell<T>,
    }

    impl<T> UnsafeCell<T> {
        pub(crate) fn new(data: T) -> Self {
            Self {
                readers: Cell::new(0),
                has_writer: Cell::new(false),
                data: core::cell::UnsafeCell::new(data),
            }
        }

        pub(crate) fn with<R>(&self, look: impl FnOnce(*const T) -> R) -> R {
            assert!(!self.has_writer.get(), "a read beside a write");
            self.readers.update(|readers| readers + 1);
            let result = look(self.data.get());
            self.readers.update(|readers| readers - 1);
            result
        }

        pub(crate) fn with_mut<R>(&self, change: impl FnOnce(*mut T) -> R) -> R {
            assert!(!self.has_writer.get(), "a write beside a write");
            assert_eq!(self.readers.get(), 0, "a write beside a read");
            self.has_writer.set(true);
            // A scheduling point, at which other threads may access the cell.
            shuttle::thread::sleep(Duration::ZERO);
            let result = change(self.data.get());
            self.has_writer.set(false);
            result
        }
    }
}

/// The number of schedules of each kind for a model that loom explores as well.
const FOR_SMALL_MODELS: usize = 100;

/// Runs a loom model, with as many priority changes as loom allows it preemptions.
pub(crate) fn check(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    check_schedules(FOR_SMALL_MODELS, preemptions, model);
}

/// [`check`] for models that loom explores without a bound.
pub(crate) fn model(model: impl Fn() + Send + Sync + 'static) {
    check(3, model);
}

/// Runs a model with the given number of schedules of each kind.
pub(crate) fn check_schedules(
    schedules: usize,
    changes: usize,
    model: impl Fn() + Send + Sync + 'static,
) {
    let seed = number("WAITWORD_SHUTTLE_SEED").unwrap_or(1);
    let schedules = number("WAITWORD_SHUTTLE_ITERATIONS").map_or(schedules, |set| set as usize);
    let model = Arc::new(model);
    let random = RandomScheduler::new_from_seed(seed, schedules);
    run("random", seed, random, model.clone());
    let priorities = PctScheduler::new_from_seed(seed, changes + 1, schedules);
    run("priorities", seed, priorities, model);
}

fn run(
    kind: &'static str,
    seed: u64,
    scheduler: impl Scheduler + 'static,
    model: Arc<impl Fn() + Send + Sync + 'static>,
) {
    let mut config = Config::new();
    config.stack_size = 1 << 18;
    config.max_steps = MaxSteps::FailAfter(100_000);
    config.failure_persistence = FailurePersistence::None;
    config.silence_warnings = true;
    let progress = Progress { kind, seed, begun: Arc::new(AtomicUsize::new(0)) };
    let begun = progress.begun.clone();
    Runner::new(scheduler, config).run(move || {
        begun.fetch_add(1, Relaxed);
        model();
    });
}

/// Prints how to reproduce the failure when a schedule fails.
struct Progress {
    kind: &'static str,
    seed: u64,
    begun: Arc<AtomicUsize>,
}

impl Drop for Progress {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (kind, seed, begun) = (self.kind, self.seed, self.begun.load(Relaxed));
            let name = std::thread::current().name().unwrap_or_default().to_owned();
            eprintln!(
                "schedule {begun} ({kind}) fails. Again: WAITWORD_SHUTTLE_SEED={seed} \
                 WAITWORD_SHUTTLE_ITERATIONS={begun} scripts/shuttle {name}"
            );
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is not a number: {text}")))
}

/// The pointer's value when the model is over.
pub(crate) fn last_value<T>(pointer: &mut AtomicPtr<T>) -> *mut T {
    // SAFETY: `raw_load` reads without a scheduling point. The pointer is borrowed exclusively, so
    // no other thread of the model can change it.
    unsafe { pointer.raw_load() }
}
