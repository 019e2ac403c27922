//! Every thread reads, and seldom writes, for a time.
//!
//! Not for a number of operations: a lock on which threads form a convoy can be some hundred times as slow from one
//! moment to the next, and a number that fits the one would take minutes with the other.

use super::{Guarded, check_writes};
use crate::crew::Crew;
use crate::harness::{Case, Contender, Context, Failure, Measured, Metric};
use crate::locks::{BenchRwLock, every_rwlock};
use crate::run::Settings;
use crate::usage::Usage;
use crate::workload::race::{Place, Took, race};
use crate::workload::{nanoseconds, proof};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const METRICS: &[Metric] = &[
    Metric::less("time", "ns/op"),
    // The same the other way round.
    Metric::neither("all threads", "ops/s"),
];

/// One write in so many operations; 0: none.
const PERIODS: [u64; 2] = [0, 10];
const PERIODS_FULL: [u64; 5] = [0, 1000, 100, 10, 2];
const THREADS: [usize; 4] = [1, 2, 4, 16];
const THREADS_FULL: [usize; 5] = [1, 2, 4, 8, 16];

pub(super) fn cases(settings: &Settings) -> Vec<Case> {
    let of_user = settings.threads != Settings::default().threads;
    let threads: &[usize] = match settings.full {
        _ if of_user => &settings.threads,
        true => &THREADS_FULL,
        false => &THREADS,
    };
    let periods: &[u64] = if settings.full {
        &PERIODS_FULL
    } else {
        &PERIODS
    };
    let mut cases = Vec::new();
    for &threads in threads {
        for &period in periods {
            cases.push(case(threads, period, time(threads, settings.window)));
        }
    }
    cases
}

/// With more threads than CPUs, long enough for each to lose its CPU (after some 3 ms) several times, now and then
/// with the lock held: else there are never more than two at a time.
fn time(threads: usize, window: Duration) -> Duration {
    match threads {
        0..=2 => window / 6,
        3..=4 => window / 3,
        _ => window,
    }
}

pub(super) fn case(threads: usize, period: u64, time: Duration) -> Case {
    let name = match period {
        0 => format!("t = {threads}, no writes"),
        _ => format!("t = {threads}, one write in {period} operations"),
    };
    let contenders = every_rwlock!(nothing()).len();
    Case::new(name, METRICS, contenders, move |context| {
        let crew = Rc::new(Crew::new(threads, context)?);
        Ok(every_rwlock!(contender(&crew, period, time)))
    })
}

fn nothing<L: BenchRwLock>() {}

pub(in crate::workload) fn contender<L: BenchRwLock>(
    crew: &Rc<Crew>,
    period: u64,
    time: Duration,
) -> Contender {
    let (crew, guarded) = (crew.clone(), Arc::new(Guarded::<L>::new()));
    let provers = crew.clone();
    let proof = move |context: &Context| proof::rwlock::<L>(&provers, context);
    proof::proved(L::NAME, proof, move |context| {
        let outcome = run(&crew, &guarded, period, time, context)?;
        let (operations, nanoseconds) = (outcome.done.operations, outcome.nanoseconds);
        let all = operations as f64;
        Ok(Measured {
            values: vec![nanoseconds / all, all / (nanoseconds / 1e9)],
            operations,
            usage: outcome.usage,
        })
    })
}

/// What all threads have done, in which time.
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

pub(super) fn run<L: BenchRwLock>(
    crew: &Crew,
    guarded: &Arc<Guarded<L>>,
    period: u64,
    time: Duration,
    context: &Context,
) -> Result<Outcome, Failure> {
    let shared = Arc::new(Shared {
        guarded: guarded.clone(),
        over: AtomicBool::new(false),
        done: Mutex::default(),
    });
    let before = guarded.writes();
    let (theirs, threads) = (shared.clone(), crew.size() as u64);
    let operate = move |number: usize| {
        // Not all write at the same time.
        let first = 1 + number as u64 * period / threads;
        let done = theirs.operation_after_operation(period, first);
        let mut all = theirs.done.lock().unwrap_or_else(PoisonError::into_inner);
        all.operations += done.operations;
        all.writes += done.writes;
        all.torn += done.torn;
    };
    let mut ran = 0.0;
    let for_a_time = || {
        let start = Instant::now();
        std::thread::sleep(time);
        shared.over.store(true, SeqCst);
        ran = nanoseconds(start, Instant::now());
    };
    let Took { usage, .. } = race(crew, Place::Spread, context, |_| (), operate, for_a_time)?;
    let done = *shared.done.lock().unwrap_or_else(PoisonError::into_inner);
    check_writes(guarded, before, done.writes, done.torn)?;
    Ok(Outcome {
        done,
        nanoseconds: ran,
        usage,
    })
}

/// What one thread has done, or all.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    pub(super) operations: u64,
    pub(super) writes: u64,
    /// Readers who saw a write that was half done.
    torn: u64,
}

impl<L: BenchRwLock> Shared<L> {
    /// What is measured: the same for every contender. The operation of number `first` and then one in `period` are
    /// writes; with a period of 0, none. At least one operation.
    #[inline(never)]
    fn operation_after_operation(&self, period: u64, first: u64) -> Done {
        let (guarded, mut done) = (&*self.guarded, Done::default());
        let mut until_write = if period == 0 { u64::MAX } else { first };
        loop {
            until_write -= 1;
            if until_write == 0 {
                until_write = period;
                guarded.lock.write_lock();
                guarded.write();
                // SAFETY: locked above; in an `Arc`, it does not move.
                unsafe { guarded.lock.write_unlock() };
                done.writes += 1;
            } else {
                guarded.lock.read_lock();
                done.torn += u64::from(guarded.read());
                // SAFETY: locked above; it does not move; this thread has no other.
                unsafe { guarded.lock.read_unlock() };
            }
            done.operations += 1;
            // Relaxed: nothing is read that the flag would have to come before.
            if self.over.load(Relaxed) {
                return done;
            }
        }
    }
}
