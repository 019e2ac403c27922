//! Threads that execute orders, one step at a time, so that a run on many threads has one outcome.
//!
//! ```text
//!   IDLE ──order──► ORDERED ──picked up──► STARTED ──done──► DONE ──collected──► IDLE
//!                                          (asleep in a futex call: waiting)
//! ```
//!
//! A crew is *settled* when every thread is idle or waits. A thread that a wake has dequeued is
//! neither. So everything that an operation does is visible once the crew has settled after it.

use crate::answer::Answer;
use crate::sleep::SleepProbe;
use crate::thread::{install, signal, thread_number};
use crate::watchdog::{Watchdog, watch, who_waits};
use std::ops::Range;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};
use waitword::table::{self, Waiter};

const IDLE: u32 = 0;
const ORDERED: u32 = 1;
const STARTED: u32 = 2;
const DONE: u32 = 3;
const DISMISSED: u32 = 4;

/// Interrupts a wait.
const SIGNAL: i32 = libc::SIGUSR2;

/// The state at a moment at which no thread of a crew ran.
pub struct Rest {
    /// The threads that came back, and their answers.
    pub came_back: Vec<(usize, Answer)>,
    /// How often the sleeping threads have gone to sleep. It is the same at two such moments if no
    /// thread has run between.
    pub sleeps: u64,
}

type Job = Box<dyn FnOnce() -> Answer + Send>;

/// Between the crew and one of its threads.
struct Desk {
    state: AtomicU32,
    job: Mutex<Option<Job>>,
    answer: Mutex<Option<Answer>>,
}

struct Worker {
    desk: Arc<Desk>,
    thread: Thread,
    /// `pthread_self()`.
    handle: usize,
    /// The kernel's ID.
    id: i32,
    probe: SleepProbe,
    /// How many entries the job has in our table while it waits; 0 for a wait in the kernel.
    entries: usize,
    joined: Option<JoinHandle<()>>,
}

/// See the module documentation.
pub struct Crew {
    workers: Vec<Worker>,
    watchdog: Watchdog,
}

impl Crew {
    /// Starts this many threads. A watchdog watches over the test, which makes progress whenever
    /// a thread gets an order.
    #[track_caller]
    pub fn new(size: usize) -> Self {
        extern "C" fn nothing(_: i32) {}
        // Without SA_RESTART: it ends any wait.
        install(SIGNAL, nothing, 0);
        Self { workers: (0..size).map(|_| Worker::start()).collect(), watchdog: watch() }
    }

    /// The numbers of the threads without a job, ascending.
    pub fn idle(&self) -> Vec<usize> {
        self.in_state(|state| state == IDLE)
    }

    /// The numbers of the threads that have a job, ascending: once settled, those that wait.
    pub fn busy(&self) -> Vec<usize> {
        self.in_state(|state| state != IDLE)
    }

    /// The kernel's ID of a thread.
    pub fn id(&self, worker: usize) -> i32 {
        self.workers[worker].id
    }

    fn in_state(&self, is: impl Fn(u32) -> bool) -> Vec<usize> {
        (0..self.workers.len()).filter(|&number| is(self.workers[number].state())).collect()
    }

    /// Makes an idle thread do `job`, which while it waits has `entries` entries in our table or,
    /// with 0, waits in the kernel.
    pub fn order(
        &mut self,
        worker: usize,
        entries: usize,
        job: impl FnOnce() -> Answer + Send + 'static,
    ) {
        self.watchdog.pat();
        let worker = &mut self.workers[worker];
        assert_eq!(worker.state(), IDLE);
        worker.entries = entries;
        *worker.desk.job.lock().unwrap() = Some(Box::new(job));
        worker.desk.state.store(ORDERED, Ordering::Release);
        worker.thread.unpark();
    }

    /// Makes each of these threads do `job` on `shared`.
    pub fn order_each<T: Send + Sync + 'static>(
        &mut self,
        workers: Range<usize>,
        entries: usize,
        shared: &Arc<T>,
        job: impl Fn(&T) -> Answer + Clone + Send + 'static,
    ) {
        for worker in workers {
            let (shared, job) = (shared.clone(), job.clone());
            self.order(worker, entries, move || job(&shared));
        }
    }

    /// The same, one after another: each waits before the next one begins.
    #[track_caller]
    pub fn line_up<T: Send + Sync + 'static>(
        &mut self,
        workers: Range<usize>,
        entries: usize,
        shared: &Arc<T>,
        job: impl Fn(&T) -> Answer + Clone + Send + 'static,
    ) {
        for worker in workers {
            self.order_each(worker..worker + 1, entries, shared, job.clone());
            assert_eq!(self.settle(), []);
        }
    }

    /// Waits until this many threads have come back.
    pub fn until_back(&self, count: usize) {
        let mut back = 0;
        while back < count {
            back += self.settle().len();
        }
    }

    /// Waits until every thread is idle or waits. Returns the threads that came back, and their
    /// answers.
    pub fn settle(&self) -> Vec<(usize, Answer)> {
        let mut waiters = vec![Waiter::default(); 1024];
        self.until("settled", || {
            let uses_table = |worker: &Worker| worker.state() == STARTED && worker.entries > 0;
            let found = if self.workers.iter().any(uses_table) {
                table::snapshot(&mut waiters).waiters
            } else {
                0
            };
            assert!(found <= waiters.len(), "too many waiters for the list");
            let waiters = &waiters[..found];
            self.workers.iter().all(|worker| worker.is_settled(waiters))
        });
        self.collect()
    }

    /// Waits until this thread has come back, and then until all have settled.
    pub fn settle_with(&self, worker: usize) -> Vec<(usize, Answer)> {
        self.until("done", || self.workers[worker].state() == DONE);
        self.settle()
    }

    /// The threads that came back, if there was a moment at which every thread was idle or asleep,
    /// in a table or in the kernel.
    ///
    /// For jobs that wake each other: between two rounds of checks in which no thread ran, there is
    /// such a moment.
    pub fn at_rest(&self) -> Option<Rest> {
        let sleeps = self.sleeps()?;
        (self.sleeps()? == sleeps)
            .then(|| Rest { came_back: self.collect(), sleeps: sleeps.into_iter().flatten().sum() })
    }

    /// How often each has gone to sleep; `None` for threads without a job. Returns nothing if one
    /// of them runs.
    fn sleeps(&self) -> Option<Vec<Option<u64>>> {
        let of_one = |worker: &Worker| match worker.state() {
            IDLE | DONE => Some(None),
            STARTED => worker.probe.sleeps_in_futex_call().map(Some),
            _ => None,
        };
        self.workers.iter().map(of_one).collect()
    }

    /// Ends the wait of a thread by a signal whose handler does nothing.
    pub fn interrupt(&self, worker: usize) {
        signal(self.workers[worker].id, SIGNAL);
    }

    /// Interrupts all remaining waiters, so that the crew can be used again.
    pub fn release(&self) {
        for worker in self.busy() {
            self.until("released", || {
                self.interrupt(worker);
                std::thread::sleep(Duration::from_micros(100));
                self.workers[worker].state() == DONE
            });
        }
        self.collect();
    }

    fn collect(&self) -> Vec<(usize, Answer)> {
        let mut came_back = Vec::new();
        for (number, worker) in self.workers.iter().enumerate() {
            if worker.state() == DONE {
                let answer = worker.desk.answer.lock().unwrap().take();
                came_back.push((number, answer.expect("done without an answer")));
                worker.desk.state.store(IDLE, Ordering::Release);
            }
        }
        came_back
    }

    fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        const PATIENCE: Duration = Duration::from_secs(60);
        let begin = Instant::now();
        while !holds() {
            if begin.elapsed() > PATIENCE {
                panic!("the crew never {what}.\n{}", who_waits());
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            // A thread that never comes back is left behind: the test has failed, and reports it.
            if worker.state() == IDLE {
                worker.desk.state.store(DISMISSED, Ordering::Release);
                worker.thread.unpark();
                let _ = worker.joined.take().expect("joined once").join();
            }
        }
    }
}

impl Worker {
    fn start() -> Self {
        let desk = Arc::new(Desk {
            state: AtomicU32::new(IDLE),
            job: Mutex::new(None),
            answer: Mutex::new(None),
        });
        let (hello, greeted) = channel();
        let joined = std::thread::spawn({
            let desk = desk.clone();
            move || {
                // SAFETY: reads the thread pointer.
                let handle = unsafe { libc::pthread_self() } as usize;
                let _ = hello.send((handle, thread_number(), SleepProbe::of_this_thread()));
                desk.work();
            }
        });
        let (handle, id, probe) = greeted.recv().expect("a thread of the crew died");
        Self {
            desk,
            thread: joined.thread().clone(),
            handle,
            id,
            probe,
            entries: 0,
            joined: Some(joined),
        }
    }

    fn state(&self) -> u32 {
        self.desk.state.load(Ordering::Acquire)
    }

    fn is_settled(&self, waiters: &[Waiter]) -> bool {
        match self.state() {
            IDLE | DONE => true,
            STARTED => {
                let mine = waiters.iter().filter(|waiter| waiter.thread == self.handle);
                mine.count() == self.entries && self.probe.in_futex_call()
            }
            _ => false,
        }
    }
}

impl Desk {
    fn work(&self) {
        loop {
            match self.state.load(Ordering::Acquire) {
                ORDERED => {
                    let job = self.job.lock().unwrap().take().expect("ordered what?");
                    // From here until DONE, a futex call that the thread sleeps in is the job's.
                    self.state.store(STARTED, Ordering::Release);
                    let answer = job();
                    // No other thread holds this lock while the state is STARTED.
                    *self.answer.lock().unwrap() = Some(answer);
                    self.state.store(DONE, Ordering::Release);
                }
                DISMISSED => return,
                _ => std::thread::park(),
            }
        }
    }
}
