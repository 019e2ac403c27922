//! `cond-perf`: one thread wakes n threads by a broadcast, round after round.
//!
//! **Work.** n workers hold a mutex except inside the wait. The last of them to arrive in a round
//! sets a flag under a second mutex and signals the caller. The caller waits for the flag, locks
//! and immediately unlocks the workers' mutex, and broadcasts. In the other variant (*mutex kept*,
//! the original's `-k`) it holds the mutex while it broadcasts, so every woken worker blocks on it.
//! The scheduler places all threads.
//!
//! **Reproduces** `cond-perf -r 100 -n 200` and `cond-perf -r 1000 -n 100` of Ingo Molnar's mail of
//! 2003 (requeue). The original has no predicate and relies on the absence of spurious wake-ups;
//! here a worker waits for a round number that is changed under the mutex. The rounds are fewer;
//! with `--full` they are those of the mail. For n = 200 the mail reports, on one, two and four 700
//! MHz CPUs: 0.120 s, 0.211 s and 237 s (with requeue: 0.124, 0.156, 0.040).
//!
//! **Figures.** *round*: microseconds from the moment when all workers wait to the moment when all,
//! woken by a broadcast, wait again. *switches*: context switches of the process, voluntary and
//! not, per woken worker. The minimum is 1, the worker going back to sleep (and a little for the
//! caller, which sleeps once a round); more means that workers were woken only to find the mutex
//! taken. *CPU*: microseconds of the process per woken worker. The columns that every report has
//! (`/op`) are per woken worker as well.
//!
//! The caller broadcasts when all workers wait, and all of them wait for the same round. So no
//! worker of an earlier round is left inside the wait, whose wake-up a later waiter could take
//! (glibc bug 25847, see `workload::game`).

use crate::crew::Crew;
use crate::harness::{Case, Contender, Context, Failure, Measured, Metric, Workload, check};
use crate::locks::{BenchCondvar, BenchMutex, condvars, every_condvar};
use crate::settings::Settings;
use crate::usage::Usage;
use crate::workload::proof;
use crate::workload::timing::nanoseconds;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The workload, as selected by name.
pub const WORKLOAD: Workload = Workload {
    name: "cond-perf",
    about: "a broadcast wakes n workers, which take the mutex one by one and wait again",
    patch: Some(crate::patch::Patch::Requeue),
    milliseconds: 108,
    cases,
};

const METRICS: &[Metric] = &[
    Metric::less("round", "µs"),
    Metric::less("switches", "/woken"),
    Metric::less("CPU", "µs/woken"),
];

const WORKERS: [usize; 1] = [200];
const WORKERS_FULL: [usize; 6] = [2, 8, 32, 100, 200, 1000];
/// Workers times rounds.
const WOKEN: usize = 5000;
const MOST_ROUNDS: usize = 1000;
const LEAST_ROUNDS: usize = 5;

fn cases(settings: &Settings) -> Vec<Case> {
    let workers = settings.threads_or(&WORKERS, &WORKERS_FULL);
    let both = |&workers: &usize| {
        let rounds = rounds(workers, settings.full);
        [false, true].map(|keep| case(workers, rounds, keep))
    };
    workers.iter().flat_map(both).collect()
}

fn rounds(workers: usize, full: bool) -> usize {
    match (workers, full) {
        // The mail's numbers.
        (200, true) => 100,
        (100, true) => 1000,
        _ => (WOKEN / workers).clamp(LEAST_ROUNDS, MOST_ROUNDS),
    }
}

fn case(workers: usize, rounds: usize, keep: bool) -> Case {
    let how = if keep { "mutex kept" } else { "mutex free" };
    let name = format!("n = {workers}, {rounds} rounds, {how}");
    Case::new(name, METRICS, condvars(), move |context| {
        // One thread is the caller.
        let crew = Rc::new(Crew::new(workers + 1, context)?);
        Ok(every_condvar!(contender(&crew, rounds, keep)))
    })
}

pub(super) fn contender<C: BenchCondvar>(crew: &Rc<Crew>, rounds: usize, keep: bool) -> Contender {
    proof::proved_by(crew, C::NAME, proof::condvar::<C>, move |crew, context| {
        measure::<C>(crew, rounds, keep, context)
    })
}

/// From the first moment when all workers wait to the last.
#[derive(Clone, Copy, Debug)]
struct Took {
    nanoseconds: f64,
    usage: Usage,
}

/// Each value that the mutexes guard is sequentially consistent and, except for `arrivals`, changed
/// in one atomic step, although the mutexes would suffice. If a mutex does not exclude, `arrivals`
/// reveals it, and no thread hangs.
struct Shared<C: BenchCondvar> {
    workers: usize,
    /// Measured broadcasts. One more lets the workers end.
    rounds: u64,
    keep: bool,
    /// Held by the workers except inside the wait.
    mutex: C::Mutex,
    go: C,
    /// Under `mutex`: broadcasts so far.
    round: AtomicU64,
    /// Under `mutex`: workers that wait for the next broadcast.
    arrived: AtomicUsize,
    /// Under `mutex`: arrivals in all rounds. Read and written in two steps, so that two workers at
    /// once lose an increment.
    arrivals: AtomicU64,
    callers_mutex: C::Mutex,
    all_here: C,
    /// Under `callers_mutex`.
    ready: AtomicBool,
    took: Mutex<Option<Took>>,
}

fn measure<C: BenchCondvar>(
    crew: &Crew,
    rounds: usize,
    keep: bool,
    context: &Context,
) -> Result<Measured, Failure> {
    let workers = crew.size() - 1;
    let shared = Arc::new(Shared::<C> {
        workers,
        rounds: rounds as u64,
        keep,
        mutex: C::Mutex::new(),
        go: C::new(),
        round: AtomicU64::new(0),
        arrived: AtomicUsize::new(0),
        arrivals: AtomicU64::new(0),
        callers_mutex: C::Mutex::new(),
        all_here: C::new(),
        ready: AtomicBool::new(false),
        took: Mutex::new(None),
    });
    let theirs = shared.clone();
    crew.start(move |number| match number {
        0 => {
            let took = theirs.call();
            *theirs.took.lock().unwrap_or_else(PoisonError::into_inner) = Some(took);
        }
        _ => theirs.work(),
    });
    crew.finish(context)?;
    let (arrivals, wanted) = (shared.arrivals.load(SeqCst), (workers * (rounds + 1)) as u64);
    check(arrivals == wanted, || {
        format!("two workers held the mutex at once: {wanted} arrivals, {arrivals} counted")
    })?;
    let took = *shared.took.lock().unwrap_or_else(PoisonError::into_inner);
    let took = took.ok_or_else(|| Failure::new("the caller did not finish"))?;
    let woken = (workers * rounds) as f64;
    Ok(Measured {
        values: vec![
            took.nanoseconds / rounds as f64 / 1e3,
            took.usage.switches() as f64 / woken,
            took.usage.cpu_seconds * 1e6 / woken,
        ],
        operations: (workers * rounds) as u64,
        usage: took.usage,
    })
}

impl<C: BenchCondvar> Shared<C> {
    #[inline(never)]
    fn work(&self) {
        let mutex = &self.mutex;
        mutex.lock();
        for round in 0..=self.rounds {
            let so_far = self.arrivals.load(SeqCst);
            if self.arrived.fetch_add(1, SeqCst) + 1 == self.workers {
                self.callers_mutex.lock();
                self.ready.store(true, SeqCst);
                self.all_here.signal();
                // SAFETY: locked above; inside an `Arc`, it does not move.
                unsafe { self.callers_mutex.unlock() };
            }
            self.arrivals.store(so_far + 1, SeqCst);
            while self.round.load(SeqCst) == round {
                // SAFETY: locked above, and again each time this returns; it does not move.
                unsafe { self.go.wait(mutex) };
            }
        }
        // SAFETY: locked above, and again by each wait.
        unsafe { mutex.unlock() };
    }

    #[inline(never)]
    fn call(&self) -> Took {
        self.wait_for_all();
        let (usage, start) = (Usage::now(), Instant::now());
        for _ in 0..self.rounds {
            self.next_round();
            self.wait_for_all();
        }
        let took =
            Took { nanoseconds: nanoseconds(start, Instant::now()), usage: Usage::now() - usage };
        self.next_round();
        took
    }

    fn wait_for_all(&self) {
        self.callers_mutex.lock();
        while !self.ready.load(SeqCst) {
            // SAFETY: locked above, and again each time this returns; it does not move.
            unsafe { self.all_here.wait(&self.callers_mutex) };
        }
        self.ready.store(false, SeqCst);
        // SAFETY: as above.
        unsafe { self.callers_mutex.unlock() };
    }

    fn next_round(&self) {
        let mutex = &self.mutex;
        mutex.lock();
        self.arrived.store(0, SeqCst);
        self.round.fetch_add(1, SeqCst);
        if self.keep {
            self.go.broadcast();
        }
        // SAFETY: locked above; it does not move.
        unsafe { mutex.unlock() };
        if !self.keep {
            self.go.broadcast();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::guarded::open::Open;
    use crate::workload::testing::{context, full, measured, names, with_threads};

    #[test]
    fn every_contender_wakes_all_in_every_round() {
        let _guard = waitword_testkit::watch();
        for keep in [false, true] {
            let report = measured(case(9, 30, keep), &context());
            for variant in &report.variants {
                assert_eq!(variant.operations, 9 * 30);
                let [round, switches, cpu] = &variant.metrics[..] else {
                    unreachable!("three metrics")
                };
                assert!(round.summary.median > 0.0, "{variant:?}");
                // Each worker slept once in each round, whatever else it did.
                assert!(switches.summary.median >= 0.9, "{variant:?}");
                assert!(cpu.summary.median > 0.0, "{variant:?}");
            }
        }
    }

    /// Never waits, its mutex does not exclude, and its signal takes a long time.
    struct Nothing;

    // SAFETY: as for `Open`.
    unsafe impl BenchCondvar for Nothing {
        type Mutex = Open;
        fn new() -> Self {
            Self
        }
        unsafe fn wait(&self, _: &Open) {
            std::thread::yield_now();
        }
        fn signal(&self) {
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
        fn broadcast(&self) {}
    }

    #[test]
    fn a_mutex_that_is_none_is_detected() {
        let _guard = waitword_testkit::watch();
        let context = context();
        let crew = Crew::new(5, &context).unwrap();
        let found = |_| match measure::<Nothing>(&crew, 30, true, &context) {
            Err(failure) => failure.to_string().contains("at once"),
            Ok(_) => false,
        };
        assert!((0..20).any(found));
    }

    #[test]
    fn the_full_cases_are_those_of_the_mail() {
        let names = |settings: Settings| names(cases(&settings));
        let usual = names(Settings::default());
        assert_eq!(usual.len(), 2 * WORKERS.len());
        let full = names(full());
        assert_eq!(full.len(), 2 * WORKERS_FULL.len());
        for mail in ["n = 200, 100 rounds, ", "n = 100, 1000 rounds, "] {
            assert!(full.iter().any(|name| name.starts_with(mail)), "{full:?}");
        }
        let chosen = names(with_threads(&[3, 70_000]));
        assert_eq!(chosen.len(), 4);
        assert!(chosen[2].starts_with("n = 70000, 5 rounds"), "{chosen:?}");
    }
}
