//! Threads that only read and threads that only write, for a time: how long each class waits for
//! the other.

use super::guarded::{Guarded, check_writes};
use crate::crew::Crew;
use crate::harness::{Case, Contender, Context, Failure, Measured, Metric};
use crate::locks::{BenchRwLock, every_rwlock, rwlocks};
use crate::settings::Settings;
use crate::ticks;
use crate::workload::proof;
use crate::workload::race::{Place, Took, race};
use crate::workload::timing::nanoseconds;
use hdrhistogram::Histogram;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const METRICS: &[Metric] = &[
    Metric::more("reads", "ops/s"),
    Metric::more("writes", "ops/s"),
    Metric::less("CPU", "ns/op"),
    Metric::less("read p50", "ns"),
    Metric::less("read p99", "ns"),
    Metric::less("read p99.9", "ns"),
    Metric::less("read max", "ns"),
    Metric::less("write p50", "ns"),
    Metric::less("write p99", "ns"),
    Metric::less("write p99.9", "ns"),
    Metric::less("write max", "ns"),
    Metric::less("slept", "/op"),
];

/// How often to check whether every thread has had a CPU.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// The number of threads in each class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::workload) struct Classes {
    pub(in crate::workload) readers: usize,
    pub(in crate::workload) writers: usize,
}

/// Readers' share: 90 %.
const SHARES: [Classes; 1] = [classes(9, 1)];
/// 50, 90 and 99 %.
const SHARES_FULL: [Classes; 3] = [classes(5, 5), classes(9, 1), classes(99, 1)];

const fn classes(readers: usize, writers: usize) -> Classes {
    Classes { readers, writers }
}

pub(super) fn cases(settings: &Settings) -> Vec<Case> {
    let case = |classes| case(classes, settings.window);
    let shares = if settings.full { &SHARES_FULL[..] } else { &SHARES[..] };
    shares.iter().copied().map(case).collect()
}

pub(super) fn case(classes: Classes, time: Duration) -> Case {
    let Classes { readers, writers } = classes;
    let share = 100 * readers / (readers + writers);
    let plural = if writers == 1 { "" } else { "s" };
    let name = format!("{readers} readers, {writers} writer{plural} ({share} % read)");
    Case::new(name, METRICS, rwlocks(), move |context| {
        let crew = Rc::new(Crew::new(readers + writers, context)?);
        Ok(every_rwlock!(contender(&crew, classes, time)))
    })
}

pub(in crate::workload) fn contender<L: BenchRwLock>(
    crew: &Rc<Crew>,
    classes: Classes,
    time: Duration,
) -> Contender {
    let guarded = Arc::new(Guarded::<L>::new());
    proof::proved_by(crew, L::NAME, proof::rwlock::<L>, move |crew, context| {
        measure(crew, &guarded, classes, time, context)
    })
}

/// The result of a class.
struct Class {
    /// Ticks that each lock call took.
    waits: Histogram<u32>,
    /// Read sections that saw a half-done write.
    torn: u64,
}

impl Class {
    fn new() -> Self {
        Self { waits: ticks::histogram(), torn: 0 }
    }

    fn add(&mut self, one: &Self) {
        self.waits.add(&one.waits).expect("equal bounds");
        self.torn += one.torn;
    }

    /// Nanoseconds: median, 99th and 99.9th percentile, maximum.
    fn waits(&self) -> [f64; 4] {
        let tick = ticks::nanoseconds_per_tick();
        let quantile = |quantile| self.waits.value_at_quantile(quantile) as f64 * tick;
        [quantile(0.5), quantile(0.99), quantile(0.999), self.waits.max() as f64 * tick]
    }
}

struct Shared<L> {
    guarded: Arc<Guarded<L>>,
    /// Threads that have reached their first lock call.
    begun: AtomicUsize,
    over: AtomicBool,
    /// Readers and writers.
    classes: Mutex<[Class; 2]>,
}

const READERS: usize = 0;
const WRITERS: usize = 1;

pub(super) fn measure<L: BenchRwLock>(
    crew: &Crew,
    guarded: &Arc<Guarded<L>>,
    classes: Classes,
    time: Duration,
    context: &Context,
) -> Result<Measured, Failure> {
    let shared = Arc::new(Shared {
        guarded: guarded.clone(),
        begun: AtomicUsize::new(0),
        over: AtomicBool::new(false),
        classes: Mutex::new([Class::new(), Class::new()]),
    });
    let before = guarded.writes();
    let theirs = shared.clone();
    let operate = move |number: usize| {
        let class = if number < classes.readers { READERS } else { WRITERS };
        let done = theirs.operate(class);
        let mut all = theirs.classes.lock().unwrap_or_else(PoisonError::into_inner);
        all[class].add(&done);
    };
    let mut ran = 0.0;
    let Took { usage, .. } = race(
        crew,
        Place::Spread,
        context,
        |_| (),
        operate,
        || {
            let start = Instant::now();
            std::thread::sleep(time);
            // A thread that has not had a CPU yet would have no wait, and look as if it had not
            // waited at all.
            while shared.begun.load(SeqCst) < crew.size() {
                std::thread::sleep(LOOK_AGAIN);
            }
            shared.over.store(true, SeqCst);
            // Not until the last thread has ended: it may have to wait for a CPU before it sees
            // that time is up.
            ran = nanoseconds(start, Instant::now());
        },
    )?;
    let done = shared.classes.lock().unwrap_or_else(PoisonError::into_inner);
    let [reads, writes] = done.each_ref().map(|class| class.waits.len());
    check_writes(guarded, before, writes, done[READERS].torn)?;
    let (seconds, all) = (ran / 1e9, (reads + writes).max(1) as f64);
    let mut values =
        vec![reads as f64 / seconds, writes as f64 / seconds, usage.cpu_seconds * 1e9 / all];
    values.extend(done[READERS].waits());
    values.extend(done[WRITERS].waits());
    values.push(usage.voluntary_switches as f64 / all);
    Ok(Measured { values, operations: reads + writes, usage })
}

impl<L: BenchRwLock> Shared<L> {
    fn operate(&self, class: usize) -> Class {
        match class {
            READERS => self.operation_after_operation::<true>(),
            _ => self.operation_after_operation::<false>(),
        }
    }

    /// The measured loop, the same for every contender. At least one operation.
    #[inline(never)]
    fn operation_after_operation<const READS: bool>(&self) -> Class {
        let (mut done, guarded) = (Class::new(), &*self.guarded);
        self.begun.fetch_add(1, SeqCst);
        loop {
            let from = ticks::now();
            let to;
            if READS {
                guarded.lock.read_lock();
                to = ticks::now();
                done.torn += u64::from(guarded.read());
                // SAFETY: locked above; inside an `Arc`, it does not move; this thread holds no
                // other.
                unsafe { guarded.lock.read_unlock() };
            } else {
                guarded.lock.write_lock();
                to = ticks::now();
                guarded.write();
                // SAFETY: locked above; it does not move.
                unsafe { guarded.lock.write_unlock() };
            }
            done.waits.saturating_record(to.saturating_sub(from));
            // Relaxed: no data is published through the flag.
            if self.over.load(Relaxed) {
                return done;
            }
        }
    }
}
