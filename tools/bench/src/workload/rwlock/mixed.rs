//! Every thread reads, and seldom writes, for a time: continuously, or with some work in between as
//! in programs. Then a second run times every lock call; it is separate because the timing takes
//! longer than the call.
//!
//! Not for a number of operations: a lock on which threads form a convoy can become some hundred
//! times as slow from one moment to the next, and a number that fits one state would take minutes
//! in the other.

use super::guarded::{Guarded, check_writes};
use crate::crew::Crew;
use crate::harness::{Case, Contender, Context, Failure, Measured, Metric};
use crate::locks::{BenchRwLock, every_rwlock, rwlocks};
use crate::pause;
use crate::settings::Settings;
use crate::ticks;
use crate::usage::Usage;
use crate::workload::proof;
use crate::workload::race::{Place, Took, race};
use crate::workload::timing::nanoseconds;
use hdrhistogram::Histogram;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const METRICS: &[Metric] = &[
    Metric::less("time", "ns/op"),
    // The inverse of the first metric.
    Metric::neither("all threads", "ops/s"),
    Metric::more("fairness", ""),
    Metric::less("wait p99.9", "ns"),
    Metric::less("wait max", "ns"),
];

/// The work of the threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::workload) struct Load {
    /// One write in this many operations; 0: none.
    pub(in crate::workload) period: u64,
    /// Nanoseconds of work between two operations.
    pub(in crate::workload) gap: f64,
}

/// One write in this many operations; 0: none.
const PERIODS: [u64; 2] = [0, 10];
const PERIODS_FULL: [u64; 5] = [0, 1000, 100, 10, 2];
const THREADS: [usize; 4] = [1, 2, 4, 16];
const THREADS_FULL: [usize; 5] = [1, 2, 4, 8, 16];
/// The thread counts that are also measured with work in between, and how much work.
const APART: [usize; 2] = [2, 4];
const APART_PERIOD: u64 = 10;
const APART_GAP: f64 = 1000.0;

pub(super) fn cases(settings: &Settings) -> Vec<Case> {
    let of_user = settings.has_threads();
    let threads: &[usize] = match settings.full {
        _ if of_user => &settings.threads,
        true => &THREADS_FULL,
        false => &THREADS,
    };
    let periods: &[u64] = if settings.full { &PERIODS_FULL } else { &PERIODS };
    let mut cases = Vec::new();
    for &threads in threads {
        let time = time(threads, settings.window);
        for &period in periods {
            cases.push(case(threads, Load { period, gap: 0.0 }, time));
        }
        if APART.contains(&threads) || of_user {
            let load = Load { period: APART_PERIOD, gap: APART_GAP };
            cases.push(case(threads, load, time));
        }
    }
    cases
}

/// With more threads than CPUs, long enough for each thread to lose its CPU (after some 3 ms)
/// several times, sometimes with the lock held; otherwise never more than two threads would contend
/// at a time.
fn time(threads: usize, window: Duration) -> Duration {
    match threads {
        0..=2 => window / 6,
        3..=4 => window / 3,
        _ => window,
    }
}

pub(super) fn case(threads: usize, load: Load, time: Duration) -> Case {
    let Load { period, gap } = load;
    let apart = match gap {
        0.0 => String::new(),
        _ => format!("{gap} ns apart, "),
    };
    let name = match period {
        0 => format!("t = {threads}, {apart}no writes"),
        _ => format!("t = {threads}, {apart}one write in {period} operations"),
    };
    Case::new(name, METRICS, rwlocks(), move |context| {
        let crew = Rc::new(Crew::new(threads, context)?);
        Ok(every_rwlock!(contender(&crew, load, time)))
    })
}

pub(in crate::workload) fn contender<L: BenchRwLock>(
    crew: &Rc<Crew>,
    load: Load,
    time: Duration,
) -> Contender {
    let guarded = Arc::new(Guarded::<L>::new());
    proof::proved_by(crew, L::NAME, proof::rwlock::<L>, move |crew, context| {
        let outcome = run::<L, false>(crew, &guarded, load, time, context)?;
        let (operations, nanoseconds) = (outcome.done.operations, outcome.nanoseconds);
        let all = operations as f64;
        let waits = run::<L, true>(crew, &guarded, load, time, context)?.done.waits;
        let tick = ticks::nanoseconds_per_tick();
        Ok(Measured {
            values: vec![
                nanoseconds / all,
                all / (nanoseconds / 1e9),
                jain(&outcome.done.counts),
                waits.value_at_quantile(0.999) as f64 * tick,
                waits.max() as f64 * tick,
            ],
            operations,
            usage: outcome.usage,
        })
    })
}

/// The operations of all threads, and the time that they took.
pub(super) struct Outcome {
    pub(super) done: Done,
    nanoseconds: f64,
    usage: Usage,
}

struct Shared<L> {
    guarded: Arc<Guarded<L>>,
    over: AtomicBool,
    done: Mutex<Done>,
}

pub(super) fn run<L: BenchRwLock, const TIMED: bool>(
    crew: &Crew,
    guarded: &Arc<Guarded<L>>,
    load: Load,
    time: Duration,
    context: &Context,
) -> Result<Outcome, Failure> {
    let shared = Arc::new(Shared {
        guarded: guarded.clone(),
        over: AtomicBool::new(false),
        done: Mutex::new(Done::new()),
    });
    let before = guarded.writes();
    let (theirs, threads) = (shared.clone(), crew.size() as u64);
    let operate = move |number: usize| {
        // Staggered, so that the threads do not all write at the same time.
        let first = 1 + number as u64 * load.period / threads;
        let done = theirs.operation_after_operation::<TIMED>(load, first);
        let mut all = theirs.done.lock().unwrap_or_else(PoisonError::into_inner);
        all.add(&done);
    };
    let mut ran = 0.0;
    let for_a_time = || {
        let start = Instant::now();
        std::thread::sleep(time);
        shared.over.store(true, SeqCst);
        ran = nanoseconds(start, Instant::now());
    };
    let Took { usage, .. } = race(crew, Place::Spread, context, |_| (), operate, for_a_time)?;
    let mut done = shared.done.lock().unwrap_or_else(PoisonError::into_inner);
    let done = std::mem::replace(&mut *done, Done::new());
    check_writes(guarded, before, done.writes, done.torn)?;
    Ok(Outcome { done, nanoseconds: ran, usage })
}

/// The work of one thread, or of all.
#[derive(Clone, Debug)]
pub(super) struct Done {
    pub(super) operations: u64,
    pub(super) writes: u64,
    /// Read sections that saw a half-done write.
    torn: u64,
    /// Operations of each thread.
    counts: Vec<f64>,
    /// Ticks that each lock call took, if the calls were timed.
    waits: Histogram<u32>,
}

impl Done {
    fn new() -> Self {
        Self { operations: 0, writes: 0, torn: 0, counts: Vec::new(), waits: ticks::histogram() }
    }

    fn add(&mut self, one: &Self) {
        self.operations += one.operations;
        self.writes += one.writes;
        self.torn += one.torn;
        self.counts.push(one.operations as f64);
        self.waits.add(&one.waits).expect("equal bounds");
    }
}

/// Jain's index: 1 if all are equal, 1/n if one did everything.
fn jain(counts: &[f64]) -> f64 {
    let sum: f64 = counts.iter().sum();
    let squares: f64 = counts.iter().map(|count| count * count).sum();
    sum * sum / (counts.len() as f64 * squares)
}

impl<L: BenchRwLock> Shared<L> {
    /// The measured loop, the same for every contender. Operation number `first` and then one in
    /// every `period` are writes; with a period of 0, none. At least one operation.
    #[inline(never)]
    fn operation_after_operation<const TIMED: bool>(&self, load: Load, first: u64) -> Done {
        let (guarded, mut done) = (&*self.guarded, Done::new());
        let Load { period, gap } = load;
        let between = pause::for_nanoseconds(gap);
        let mut until_write = if period == 0 { u64::MAX } else { first };
        loop {
            until_write -= 1;
            let from = if TIMED { ticks::now() } else { 0 };
            let to;
            if until_write == 0 {
                until_write = period;
                guarded.lock.write_lock();
                to = if TIMED { ticks::now() } else { 0 };
                guarded.write();
                // SAFETY: locked above; inside an `Arc`, it does not move.
                unsafe { guarded.lock.write_unlock() };
                done.writes += 1;
            } else {
                guarded.lock.read_lock();
                to = if TIMED { ticks::now() } else { 0 };
                done.torn += u64::from(guarded.read());
                // SAFETY: locked above; it does not move; this thread holds no other.
                unsafe { guarded.lock.read_unlock() };
            }
            done.operations += 1;
            if TIMED {
                done.waits.saturating_record(to.saturating_sub(from));
            }
            pause::pause(between);
            // Relaxed: no data is published through the flag.
            if self.over.load(Relaxed) {
                return done;
            }
        }
    }
}
