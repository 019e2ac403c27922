//! `barrier`: n threads wait for each other, round after round.
//!
//! **Work.** Thread i, on CPU i mod n, repeats: record its arrival; wait at the barrier; check that
//! its neighbour has arrived. Nothing in between.
//!
//! **Reproduces** no particular public benchmark: it is the loop of any program that works in
//! steps.
//!
//! **Figures**, each the median of three batches of some milliseconds. *round*: microseconds from
//! the end of one round to the end of the next. *switches*: context switches of the process,
//! voluntary and not, per thread and round. With more threads than CPUs, every thread but the last
//! sleeps once, which gives a little less than 1. *CPU*: microseconds of the process per round.
//!
//! The check costs each thread one cache line of another thread, the same for all contenders. In
//! each round, exactly one thread must be reported as the leader.

use crate::crew::Crew;
use crate::harness::{Case, Contender, Context, Failure, Measured, Metric, Workload, check};
use crate::locks::barrier::{BenchBarrier, every_barrier};
use crate::settings::Settings;
use crate::stats::median;
use crate::usage::Usage;
use crate::workload::proof;
use crate::workload::race::{Place, Took, race};
use crate::workload::timing::calibrate;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The workload, as selected by name.
pub const WORKLOAD: Workload = Workload {
    name: "barrier",
    about: "n threads wait for each other at a barrier, round after round",
    patch: None,
    milliseconds: 22,
    cases,
};

const METRICS: &[Metric] = &[
    Metric::less("round", "µs"),
    Metric::less("switches", "/thread/round"),
    Metric::less("CPU", "µs/round"),
];

const THREADS: [usize; 3] = [2, 8, 64];
const THREADS_FULL: [usize; 6] = [2, 4, 8, 16, 64, 256];
const BATCHES: usize = 3;
const BATCH_NANOSECONDS: f64 = 6e6;
const BATCH_NANOSECONDS_FULL: f64 = 60e6;
/// Rounds of the first batch, from which the size of the others is derived.
const FIRST: u64 = 8;

fn cases(settings: &Settings) -> Vec<Case> {
    let threads = settings.threads_or(&THREADS, &THREADS_FULL);
    let batch = if settings.full { BATCH_NANOSECONDS_FULL } else { BATCH_NANOSECONDS };
    threads.iter().map(|&threads| case(threads, batch)).collect()
}

fn case(threads: usize, batch: f64) -> Case {
    fn nothing<B: BenchBarrier>() {}
    let contenders = every_barrier!(nothing()).len();
    Case::new(format!("n = {threads}"), METRICS, contenders, move |context| {
        let crew = Rc::new(Crew::new(threads, context)?);
        Ok(every_barrier!(contender(&crew, batch)))
    })
}

pub(super) fn contender<B: BenchBarrier>(crew: &Rc<Crew>, batch: f64) -> Contender {
    let step = Arc::new(Step::<B>::new(crew.size()));
    let mut rounds = None;
    proof::proved_by(crew, B::NAME, proof::barrier::<B>, move |crew: &Crew, context: &Context| {
        // Only in the first measurement; the number then stays the same.
        let rounds = match rounds {
            Some(rounds) => rounds,
            None => *rounds.insert(calibrate(batch, FIRST, context, |rounds| {
                Ok(run(crew, &step, rounds, context)?.nanoseconds)
            })?),
        };
        measure(crew, &step, rounds, context)
    })
}

fn measure<B: BenchBarrier>(
    crew: &Crew,
    step: &Arc<Step<B>>,
    rounds: u64,
    context: &Context,
) -> Result<Measured, Failure> {
    let (mut times, mut switches, mut cpu) = (Vec::new(), Vec::new(), Vec::new());
    let mut usage = Usage::default();
    for _ in 0..BATCHES {
        let took = run(crew, step, rounds, context)?;
        let each = rounds as f64;
        times.push(took.nanoseconds / each / 1e3);
        switches.push(took.usage.switches() as f64 / each / crew.size() as f64);
        cpu.push(took.usage.cpu_seconds * 1e6 / each);
        usage += took.usage;
    }
    Ok(Measured {
        values: vec![median(&times), median(&switches), median(&cpu)],
        operations: rounds * BATCHES as u64,
        usage,
    })
}

/// A barrier, and what its threads record for each other.
struct Step<B> {
    barrier: B,
    threads: Box<[Thread]>,
}

/// On its own cache lines. All accesses are relaxed: the barrier provides the ordering.
#[derive(Default)]
#[repr(align(128))]
struct Thread {
    /// Rounds in which the thread arrived.
    there: AtomicU64,
    /// Rounds in which its neighbour had not arrived.
    alone: AtomicU64,
    /// Rounds in which it was the leader.
    led: AtomicU64,
}

fn add_one(count: &AtomicU64) {
    // A load and a store: each counter has one writer.
    count.store(count.load(Relaxed) + 1, Relaxed);
}

impl<B: BenchBarrier> Step<B> {
    fn new(threads: usize) -> Self {
        Self {
            barrier: B::new(threads as u32),
            threads: (0..threads).map(|_| Thread::default()).collect(),
        }
    }

    /// The measured loop, the same for every contender.
    #[inline(never)]
    fn round_after_round(&self, number: usize, rounds: u64) {
        let me = &self.threads[number];
        let neighbour = &self.threads[(number + 1) % self.threads.len()];
        for _ in 0..rounds {
            add_one(&me.there);
            if self.barrier.wait() {
                add_one(&me.led);
            }
            if neighbour.there.load(Relaxed) < me.there.load(Relaxed) {
                add_one(&me.alone);
            }
        }
    }

    fn sum(&self, count: impl Fn(&Thread) -> &AtomicU64) -> u64 {
        let threads = self.threads.iter();
        threads.map(|thread| count(thread).load(Relaxed)).sum()
    }
}

/// Runs this many rounds in all threads.
fn run<B: BenchBarrier>(
    crew: &Crew,
    step: &Arc<Step<B>>,
    rounds: u64,
    context: &Context,
) -> Result<Took, Failure> {
    let theirs = step.clone();
    let before = step.sum(|thread| &thread.led);
    let go = move |number: usize| theirs.round_after_round(number, rounds);
    let took = race(crew, Place::Spread, context, |_| (), go, || ())?;
    let led = step.sum(|thread| &thread.led) - before;
    let alone = step.sum(|thread| &thread.alone);
    check(alone == 0 && led == rounds, || {
        format!(
            "{alone} times a thread continued before its neighbour arrived; {led} leaders in \
             {rounds} rounds"
        )
    })?;
    Ok(took)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::testing::{context, is_positive, measured, names, with_threads};

    #[test]
    fn every_contender_is_measured() {
        let _guard = waitword_testkit::watch();
        for threads in [1, 2, 9] {
            is_positive(&measured(case(threads, 2e5), &context()));
        }
    }

    /// Never waits.
    struct Open;

    impl BenchBarrier for Open {
        const NAME: &'static str = "open";
        fn new(_: u32) -> Self {
            Self
        }
        fn wait(&self) -> bool {
            false
        }
    }

    #[test]
    fn a_barrier_that_is_none_is_detected() {
        let _guard = waitword_testkit::watch();
        let context = context();
        let crew = Crew::new(3, &context).unwrap();
        let step = Arc::new(Step::<Open>::new(3));
        let failure = run(&crew, &step, 1000, &context).err().unwrap().to_string();
        assert!(failure.contains("0 leaders"), "{failure}");
        assert!(!failure.starts_with("0 times"), "{failure}");
    }

    #[test]
    fn the_user_decides_how_many_cells_there_are() {
        let names = |settings: Settings| names(cases(&settings));
        assert_eq!(names(Settings::default()), ["n = 2", "n = 8", "n = 64"]);
        let chosen = with_threads(&[5]);
        assert_eq!(names(chosen), ["n = 5"]);
    }
}
