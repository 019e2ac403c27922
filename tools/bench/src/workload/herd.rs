//! Threads that sleep on one word, on one word each or in any other way, are observed asleep, and
//! are woken exactly once: shared by the wake, requeue, scale and event workloads.

use crate::crew::{Crew, wait_to_be_woken};
use crate::harness::{Context, Failure, check};
use crate::ops::{Futexes, Kernel};
use crate::workload::words::Words;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Instant;

/// The waker waits here for the last woken thread: in the kernel's global table, apart from the
/// measured waits.
const DONE: Kernel<false> = Kernel;

/// State shared by a sleeping crew and its waker.
struct Shared {
    size: usize,
    arrived: AtomicUsize,
    woken: AtomicUsize,
    /// Nanoseconds from `base` to the moment when the last woken thread ran.
    last_ran: AtomicU64,
    base: Instant,
    done: AtomicU32,
}

/// A sleeping crew.
pub(super) struct Herd<'a> {
    crew: &'a Crew,
    shared: Arc<Shared>,
}

impl<'a> Herd<'a> {
    /// Puts all of `crew` to sleep, thread i on word i modulo `distinct`. Returns when every thread
    /// is asleep and, if `futex` has a table that can be queried, queued in it.
    pub(super) fn asleep<F: Futexes>(
        crew: &'a Crew,
        futex: F,
        words: &Arc<Words<F::Word>>,
        distinct: usize,
        context: &Context,
    ) -> Result<Self, Failure> {
        let size = crew.size();
        let strangers = futex.queued().unwrap_or(0);
        let words = words.clone();
        let sleep = move |number: usize| wait_to_be_woken(futex, &words[number % distinct], 0);
        let herd = Self::in_bed(crew, sleep, context)?;
        let all_queued = || futex.queued().is_none_or(|queued| queued == strangers + size);
        crew.until(context, || all_queued() || herd.woken() > 0)?;
        herd.check_asleep()
    }

    /// The same with any way to `sleep`, which each thread of `crew` calls once, until it is woken.
    /// The threads are observed asleep, but one may still be on its way into a queue and sleep
    /// there.
    pub(super) fn asleep_by(
        crew: &'a Crew,
        sleep: impl Fn(usize) + Send + Sync + 'static,
        context: &Context,
    ) -> Result<Self, Failure> {
        Self::in_bed(crew, sleep, context)?.check_asleep()
    }

    /// All threads have been observed asleep; some may have woken up since.
    fn in_bed(
        crew: &'a Crew,
        sleep: impl Fn(usize) + Send + Sync + 'static,
        context: &Context,
    ) -> Result<Self, Failure> {
        let size = crew.size();
        let shared = Arc::new(Shared {
            size,
            arrived: AtomicUsize::new(0),
            woken: AtomicUsize::new(0),
            last_ran: AtomicU64::new(0),
            base: Instant::now(),
            done: AtomicU32::new(0),
        });
        let theirs = shared.clone();
        crew.start(move |number| {
            theirs.arrived.fetch_add(1, SeqCst);
            sleep(number);
            theirs.ran();
        });
        crew.until(context, || shared.arrived.load(SeqCst) == size)?;
        crew.until_all_sleep(size, context)?;
        Ok(Self { crew, shared })
    }

    fn check_asleep(self) -> Result<Self, Failure> {
        check(self.woken() == 0, || "a thread ran that was not woken".to_owned())?;
        Ok(self)
    }

    /// Threads that have run since they slept.
    pub(super) fn woken(&self) -> usize {
        self.shared.woken.load(SeqCst)
    }

    /// Sleeps until all have run, and returns when the last one did. Does nothing else meanwhile,
    /// so that its own CPU time is not counted with theirs.
    pub(super) fn wait_until_all_ran(&self) -> Instant {
        while self.shared.done.load(SeqCst) == 0 {
            DONE.wait(&self.shared.done, 0);
        }
        let since = std::time::Duration::from_nanos(self.shared.last_ran.load(SeqCst));
        self.shared.base + since
    }

    /// Like [`Herd::wait_until_all_ran`], but fails if the wakes' sum shows that not all can run.
    pub(super) fn when_all_ran(&self, counted: usize) -> Result<Instant, Failure> {
        self.check_sum(counted)?;
        Ok(self.wait_until_all_ran())
    }

    fn check_sum(&self, counted: usize) -> Result<(), Failure> {
        let size = self.shared.size;
        check(counted == size, || format!("the wakes of {size} sleepers reported {counted} woken"))
    }

    /// To be called after the wakes; `counted` is the sum of their return values.
    pub(super) fn finish(self, counted: usize, context: &Context) -> Result<(), Failure> {
        self.check_sum(counted)?;
        let size = self.shared.size;
        self.crew.finish(context)?;
        let woken = self.woken();
        check(woken == size, || format!("{woken} of {size} ran"))
    }
}

impl Shared {
    fn ran(&self) {
        if self.woken.fetch_add(1, SeqCst) + 1 == self.size {
            let since = self.base.elapsed().as_nanos() as u64;
            self.last_ran.store(since, SeqCst);
            self.done.store(1, SeqCst);
            DONE.wake(&self.done, 1);
        }
    }
}

/// How often a herd of this size is put to sleep and woken for one measurement.
pub(super) fn repetitions(size: usize) -> usize {
    (2048 / size.max(1)).clamp(8, 32)
}
