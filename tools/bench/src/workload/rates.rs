//! `rates`: how fast each of t threads progresses when they share a lock.
//!
//! **Work.** Thread i, on CPU i mod n, repeats for a fixed time: lock; some work; unlock; some
//! work. The work is pause instructions.
//!
//! **Reproduces** the mutex benchmark of the parking_lot crate: threads × work inside × work
//! between, with average, median and deviation of the threads' rates. (Its work is additions and
//! multiplications of a number; a pause is somewhat longer.)
//!
//! **Figures.** Of the threads' rates, in sections per second: *average* (t times that is the
//! throughput) and *median*; *more is better*. If the median is far below the average, a few
//! threads have the lock most of the time. *deviation*: the rates' standard deviation, in percent
//! of the average: 0 if all threads progress equally. How long a thread waits, and at what cost, is
//! in `mutex`.

use crate::crew::Crew;
use crate::harness::{Case, Contender, Context, Failure, Measured, Metric, Workload};
use crate::locks::{BenchMutex, every_mutex, mutexes};
use crate::settings::Settings;
use crate::usage::Usage;
use crate::workload::crowd::{self, Outcome, Until, Work};
use crate::workload::guarded::Guarded;
use crate::workload::proof;
use crate::workload::spread::Spread;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The workload, as selected by name.
pub const WORKLOAD: Workload = Workload {
    name: "rates",
    about: "t threads on one mutex, work inside and between: average, median, deviation of their \
            rates",
    patch: None,
    milliseconds: 310,
    cases,
};

const METRICS: &[Metric] = &[
    Metric::more("average", "ops/s/thread"),
    Metric::more("median", "ops/s/thread"),
    Metric::less("deviation", "%"),
];

/// Pauses inside and between.
type Pauses = (u32, u32);

const SHORT: Pauses = (1, 0);
const USUAL_LOAD: Pauses = (10, 100);
/// The first two are also used with the user's own thread counts.
const LOADS_FULL: [Pauses; 5] = [SHORT, USUAL_LOAD, (10, 0), (10, 10), (100, 100)];
const USUAL: [(usize, Pauses); 3] = [(4, SHORT), (4, USUAL_LOAD), (16, USUAL_LOAD)];

fn cases(settings: &Settings) -> Vec<Case> {
    crowd::cells(settings, &USUAL, &LOADS_FULL, case)
}

fn case(threads: usize, load: Pauses) -> Case {
    let (inside, between) = load;
    let name = format!("t = {threads}, {inside} inside, {between} between");
    Case::new(name, METRICS, mutexes(), move |context| {
        let crew = Rc::new(Crew::new(threads, context)?);
        let window = context.settings.window;
        Ok(every_mutex!(contender(&crew, load, window)))
    })
}

pub(super) fn contender<M: BenchMutex>(crew: &Rc<Crew>, load: Pauses, time: Duration) -> Contender {
    let guarded = Arc::new(Guarded::<M>::new());
    let work = Work { inside: load.0, outside: load.1, naps: 0 };
    proof::proved_by(crew, M::NAME, proof::mutex::<M>, move |crew: &Crew, context: &Context| {
        measure(crew, &guarded, work, time, context)
    })
}

fn measure<M: BenchMutex>(
    crew: &Crew,
    guarded: &Arc<Guarded<M>>,
    work: Work,
    time: Duration,
    context: &Context,
) -> Result<Measured, Failure> {
    let outcome = crowd::run(crew, guarded, work, Until::Time(time), false, context)?;
    Ok(figures(&outcome))
}

fn figures(outcome: &Outcome) -> Measured {
    let mut usage = Usage::default();
    let mut sections = 0;
    let mut rates = Vec::new();
    for thread in &outcome.threads {
        usage += thread.usage;
        sections += thread.sections;
        rates.push(thread.sections as f64 / (outcome.took / 1e9));
    }
    let spread = Spread::of(&rates);
    Measured {
        values: vec![spread.mean, spread.median, spread.percent()],
        operations: sections,
        usage,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locks::stdlib;
    use crate::workload::crowd::Served;
    use crate::workload::testing::{context, full, is_positive, measured, with_threads};

    #[test]
    fn rates_are_by_the_time_of_all() {
        let _guard = waitword_testkit::watch();
        let context = Context::new(Settings::default(), Arc::default());
        let crew = Crew::new(1, &context).unwrap();
        let guarded = Arc::new(Guarded::<stdlib::Mutex>::new());
        let work = Work { inside: 1, outside: 1, naps: 0 };
        let until = Until::Sections(7);
        let mut outcome = crowd::run(&crew, &guarded, work, until, false, &context).unwrap();
        assert_eq!(outcome.threads[0].sections, 7);
        let served = |sections| Served { sections, ..outcome.threads[0] };
        outcome.threads = vec![served(0), served(100), served(200)];
        outcome.took = 5e8;
        let measured = figures(&outcome);
        assert_eq!(measured.operations, 300);
        assert_eq!(measured.values[..2], [200.0, 200.0]);
        assert!((measured.values[2] - 100.0 * (2.0_f64 / 3.0).sqrt()).abs() < 1e-9);
    }

    #[test]
    fn every_contender_is_measured() {
        let _guard = waitword_testkit::watch();
        let context = context();
        is_positive(&measured(case(3, USUAL_LOAD), &context));
    }

    #[test]
    fn the_user_decides_how_many_cells_there_are() {
        let count = |settings: Settings| cases(&settings).len();
        assert_eq!(count(Settings::default()), USUAL.len());
        let chosen = with_threads(&[3]);
        assert_eq!(count(chosen), 2);
        let full = full();
        assert_eq!(count(full), crowd::ALL_THREADS.len() * LOADS_FULL.len());
    }
}
