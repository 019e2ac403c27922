//! Many threads that repeatedly do a job together, and that are *seen* asleep.
//!
//! Between jobs the crew sleeps at a gate. The gate is the kernel's futex, process-shared: its
//! sleepers are queued in the kernel's global table, where they disturb no futex under test.
//! Threads are kept from job to job, since starting and ending a thread costs more than waking one.
//!
//! A thread counts as asleep when the kernel reports it so (state S in `/proc/self/task/TID/stat`).
//! The workload itself checks that the thread sleeps in the right place: it counts arrivals, and
//! asks our table if there is one.

use crate::harness::{Context, Failure};
use crate::ops::{Futexes, Kernel, Waited};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

/// Enough for a waiter and its signal frames. Ten thousand stacks take 640 MiB of address space
/// only.
const STACK_BYTES: usize = 64 * 1024;

const GATE: Kernel<false> = Kernel;

type Job = Arc<dyn Fn(usize) + Send + Sync>;

struct Shared {
    /// Incremented with each job.
    gate: AtomicU32,
    /// `None` tells the threads to exit.
    job: RwLock<Option<Job>>,
    /// Threads that have not finished the job yet.
    busy: AtomicUsize,
    tids: Vec<AtomicU32>,
    /// Message of a thread that panicked.
    failure: Mutex<Option<String>>,
}

/// Some threads, numbered from 0.
pub struct Crew {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Crew {
    /// Starts `size` threads and waits until all sleep at the gate.
    ///
    /// # Errors
    /// The system does not allow that many threads.
    pub fn new(size: usize, context: &Context) -> Result<Self, Failure> {
        Self::with_stacks(size, STACK_BYTES, context)
    }

    /// As [`Crew::new`], with stacks of this size. The system may make them somewhat larger.
    ///
    /// # Errors
    /// As [`Crew::new`].
    pub fn with_stacks(size: usize, bytes: usize, context: &Context) -> Result<Self, Failure> {
        let shared = Arc::new(Shared {
            gate: AtomicU32::new(0),
            job: RwLock::new(None),
            busy: AtomicUsize::new(size),
            tids: (0..size).map(|_| AtomicU32::new(0)).collect(),
            failure: Mutex::new(None),
        });
        let mut crew = Self { shared, threads: Vec::with_capacity(size) };
        for number in 0..size {
            let shared = crew.shared.clone();
            let thread = std::thread::Builder::new()
                .name(format!("crew {number}"))
                .stack_size(bytes)
                .spawn(move || member(&shared, number))
                .map_err(|error| {
                    let message = format!("started {number} of {size} threads: {error}");
                    Failure::new(message)
                })?;
            crew.threads.push(thread);
        }
        crew.finish(context)?;
        Ok(crew)
    }

    /// Number of threads.
    pub fn size(&self) -> usize {
        self.threads.len()
    }

    /// Makes every thread do `job`, which gets the thread's number. Does not wait.
    pub fn start(&self, job: impl Fn(usize) + Send + Sync + 'static) {
        self.open(Some(Arc::new(job)));
    }

    fn open(&self, job: Option<Job>) {
        let shared = &*self.shared;
        *shared.job.write().unwrap_or_else(PoisonError::into_inner) = job;
        shared.busy.store(self.size(), SeqCst);
        shared.gate.fetch_add(1, SeqCst);
        GATE.wake(&shared.gate, usize::MAX);
    }

    /// Waits until all threads have finished the job and sleep at the gate.
    ///
    /// # Errors
    /// A thread panicked, or the user wants to stop.
    pub fn finish(&self, context: &Context) -> Result<(), Failure> {
        self.until(context, || self.shared.busy.load(SeqCst) == 0)?;
        self.until_all_sleep(self.size(), context)
    }

    /// Waits until `condition` holds, polling it.
    ///
    /// # Errors
    /// A thread panicked. A request to stop is ignored here: a job that was started must end.
    pub fn until(&self, context: &Context, condition: impl Fn() -> bool) -> Result<(), Failure> {
        let mut pause = Duration::from_micros(20);
        while !condition() {
            let failure = self.shared.failure.lock();
            if let Some(message) = &*failure.unwrap_or_else(PoisonError::into_inner) {
                return Err(Failure::new(message));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(2));
        }
        context.progressed();
        Ok(())
    }

    /// Waits until the threads below `count` are asleep according to the kernel.
    ///
    /// # Errors
    /// As [`Crew::until`].
    pub fn until_all_sleep(&self, count: usize, context: &Context) -> Result<(), Failure> {
        self.until_all_sleep_or(count, context, || false)
    }

    /// As [`Crew::until_all_sleep`], but returns as soon as `enough` is true.
    ///
    /// # Errors
    /// As [`Crew::until`].
    pub fn until_all_sleep_or(
        &self,
        count: usize,
        context: &Context,
        enough: impl Fn() -> bool,
    ) -> Result<(), Failure> {
        for number in 0..count {
            let path = self.path_of(number, "stat");
            self.until(context, || is_asleep(&path) || enough())?;
        }
        Ok(())
    }

    /// CPU time of this thread so far; `None` if the kernel does not provide it.
    pub fn ran_for(&self, number: usize) -> Option<Duration> {
        let text = std::fs::read_to_string(self.path_of(number, "schedstat")).ok()?;
        let nanoseconds = text.split_whitespace().next()?.parse().ok()?;
        Some(Duration::from_nanos(nanoseconds))
    }

    fn path_of(&self, number: usize, file: &str) -> String {
        let tid = self.shared.tids[number].load(SeqCst);
        format!("/proc/self/task/{tid}/{file}")
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        let failed = self.shared.failure.lock();
        if failed.unwrap_or_else(PoisonError::into_inner).is_some()
            || self.shared.busy.load(SeqCst) != 0
        {
            // Some may sleep on a word that will never be woken. Leave them; the run is over.
            return;
        }
        self.open(None);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn member(shared: &Shared, number: usize) {
    block_signals();
    shared.tids[number].store(rustix::thread::gettid().as_raw_nonzero().get() as u32, SeqCst);
    let mut generation = 0;
    loop {
        shared.busy.fetch_sub(1, SeqCst);
        while shared.gate.load(SeqCst) == generation {
            GATE.wait(&shared.gate, generation.into());
        }
        generation += 1;
        let job = shared.job.read().unwrap_or_else(PoisonError::into_inner);
        let Some(job) = job.clone() else { return };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| job(number))) {
            let message = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            let failure = shared.failure.lock();
            *failure.unwrap_or_else(PoisonError::into_inner) =
                Some(message.unwrap_or_else(|| "a thread panicked".to_owned()));
            // Do not report the end of the job: the crew is not used again.
            return;
        }
    }
}

/// Ctrl-C is for the main thread; it must not interrupt a waiter.
fn block_signals() {
    // SAFETY: both are plain data that the calls fill in; the mask is the calling thread's own.
    unsafe {
        let mut signals: libc::sigset_t = core::mem::zeroed();
        libc::sigemptyset(&mut signals);
        libc::sigaddset(&mut signals, libc::SIGINT);
        libc::sigaddset(&mut signals, libc::SIGTERM);
        libc::pthread_sigmask(libc::SIG_BLOCK, &signals, core::ptr::null_mut());
    }
}

fn is_asleep(stat_path: &str) -> bool {
    std::fs::read_to_string(stat_path).is_ok_and(|stat| state(&stat) == Some('S'))
}

/// The state in a line of `/proc/PID/stat`. The name before it is in brackets and may itself
/// contain brackets.
pub(crate) fn state(stat: &str) -> Option<char> {
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Sleeps until woken, exactly once: for a waiter that needs one wake and must get only one.
///
/// # Panics
/// If the word does not hold `expected`. Such workloads never change the word.
#[inline(always)]
pub fn wait_to_be_woken<F: Futexes>(futex: F, word: &F::Word, expected: u64) {
    loop {
        match futex.wait(word, expected) {
            Waited::Woken => return,
            Waited::Interrupted => {}
            Waited::Mismatch => panic!("a wait found another value in a word that never changes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    fn context() -> Context {
        Context::new(Settings::default(), Arc::default())
    }

    #[test]
    fn every_member_does_every_job_once() {
        let _guard = waitword_testkit::watch();
        let context = context();
        let crew = Crew::new(7, &context).unwrap();
        let done: Arc<Vec<AtomicUsize>> = Arc::new((0..7).map(|_| AtomicUsize::new(0)).collect());
        for _ in 0..20 {
            let done = done.clone();
            crew.start(move |number| {
                done[number].fetch_add(1, SeqCst);
            });
            crew.finish(&context).unwrap();
        }
        assert!(done.iter().all(|count| count.load(SeqCst) == 20));
    }

    #[test]
    fn a_thread_has_run_if_it_runs_and_not_while_it_sleeps() {
        let _guard = waitword_testkit::watch();
        let context = context();
        let crew = Crew::new(2, &context).unwrap();
        if crew.ran_for(0).is_none() {
            // This kernel has no CONFIG_SCHED_INFO.
            return;
        }
        let ran = || [0, 1].map(|number| crew.ran_for(number).unwrap());
        let before = ran();
        let over = Arc::new(AtomicU32::new(0));
        let theirs = over.clone();
        crew.start(move |number| {
            while number == 0 && theirs.load(SeqCst) == 0 {
                core::hint::spin_loop();
            }
        });
        let enough = Duration::from_millis(20);
        crew.until(&context, || ran()[0] - before[0] > enough).unwrap();
        over.store(1, SeqCst);
        crew.finish(&context).unwrap();
        assert!(ran()[1] - before[1] < enough, "{before:?}, {:?}", ran());
    }

    #[test]
    fn a_panic_in_a_thread_is_a_failure() {
        let _guard = waitword_testkit::watch();
        let context = context();
        let crew = Crew::new(3, &context).unwrap();
        crew.start(|number| assert_ne!(number, 1, "number one does not like it"));
        let failure = crew.finish(&context).unwrap_err();
        assert!(failure.to_string().contains("does not like it"));
    }

    #[test]
    fn the_state_is_found_behind_any_name() {
        assert_eq!(state("12 (crew 3) S 1 1"), Some('S'));
        assert_eq!(state("12 (odd) name) R 1"), Some('R'));
        assert_eq!(state(""), None);
    }
}
