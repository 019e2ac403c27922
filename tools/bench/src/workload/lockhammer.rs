//! `lockhammer`: what a lock adds to the work that it guards.
//!
//! **Work.** t threads, thread i on CPU i mod n, repeat for a fixed time: lock; hold it for h
//! nanoseconds of busy work; unlock; busy work for a gap of g nanoseconds. The busy work is
//! calibrated pause instructions.
//!
//! **Reproduces** the shape of Arm's lockhammer: hold and gap are given in time instead of
//! instructions, so that two machines do the same. (It does a number of sections per thread; here
//! it runs for a time, so that a slow thread does not run alone at the end.)
//!
//! **Figures.**
//!
//! | metric | meaning |
//! |---|---|
//! | section | the run's time divided by the sections of all threads |
//! | over the ideal | the lock's part of that: the section less the time that the work needs |
//! | CPU | the threads' CPU time per section: its work, and all spinning and sleeping |
//! | spread | standard deviation of the threads' counts, in % of their mean: 0 if all are equal |
//!
//! The ideal: with n CPUs, and t threads of which one at a time holds the lock, a section takes at
//! least max(h, (h + g) / min(t, n)). This uses the calibrated busy work, which is a whole number
//! of pauses.

use crate::cpus::allowed_cpus;
use crate::crew::Crew;
use crate::harness::{Case, Contender, Context, Measured, Metric, Workload};
use crate::locks::{BenchMutex, every_mutex, mutexes};
use crate::pause;
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
    name: "lockhammer",
    about: "t threads hold one mutex for h ns and stay away for g ns: overhead over the ideal, \
            spread",
    patch: None,
    milliseconds: 310,
    cases,
};

const METRICS: &[Metric] = &[
    Metric::less("section", "ns"),
    // The first metric minus a constant.
    Metric::neither("over the ideal", "ns"),
    Metric::less("CPU", "ns/op"),
    Metric::less("spread", "%"),
];

/// How long the lock is held and left alone, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Load {
    pub(super) hold: f64,
    pub(super) gap: f64,
}

const fn load(hold: f64, gap: f64) -> Load {
    Load { hold, gap }
}

/// The hardest hammering, and the load that two CPUs can just sustain.
const HARD: Load = load(0.0, 0.0);
const EVEN: Load = load(200.0, 200.0);
/// The first two are also used with the user's own thread counts.
const LOADS_FULL: [Load; 5] =
    [HARD, EVEN, load(200.0, 2000.0), load(1000.0, 0.0), load(1000.0, 10_000.0)];
const USUAL: [(usize, Load); 3] = [(2, HARD), (2, EVEN), (16, EVEN)];

fn cases(settings: &Settings) -> Vec<Case> {
    crowd::cells(settings, &USUAL, &LOADS_FULL, case)
}

fn case(threads: usize, load: Load) -> Case {
    let Load { hold, gap } = load;
    let name = format!("t = {threads}, hold {hold} ns, gap {gap} ns");
    Case::new(name, METRICS, mutexes(), move |context| {
        let crew = Rc::new(Crew::new(threads, context)?);
        let window = context.settings.window;
        Ok(every_mutex!(contender(&crew, load, window)))
    })
}

pub(super) fn contender<M: BenchMutex>(crew: &Rc<Crew>, load: Load, time: Duration) -> Contender {
    let guarded = Arc::new(Guarded::<M>::new());
    let work = Work {
        inside: pause::for_nanoseconds(load.hold),
        outside: pause::for_nanoseconds(load.gap),
        naps: 0,
    };
    proof::proved_by(crew, M::NAME, proof::mutex::<M>, move |crew: &Crew, context: &Context| {
        let outcome = crowd::run(crew, &guarded, work, Until::Time(time), false, context)?;
        Ok(figures(&outcome, work, allowed_cpus().len()))
    })
}

fn figures(outcome: &Outcome, work: Work, cpus: usize) -> Measured {
    let counts = outcome.threads.iter().map(|thread| thread.sections as f64);
    let counts: Vec<f64> = counts.collect();
    let sections = counts.iter().sum::<f64>().max(1.0);
    let mut usage = Usage::default();
    for thread in &outcome.threads {
        usage += thread.usage;
    }
    let section = outcome.took / sections;
    Measured {
        values: vec![
            section,
            section - ideal(work, pause::nanoseconds(), counts.len().min(cpus)),
            usage.cpu_seconds * 1e9 / sections,
            Spread::of(&counts).percent(),
        ],
        operations: sections as u64,
        usage,
    }
}

/// Nanoseconds per section if the lock cost nothing: a pause takes `pause`, and `at_once` threads
/// run in parallel.
fn ideal(work: Work, pause: f64, at_once: usize) -> f64 {
    let hold = f64::from(work.inside) * pause;
    let gap = f64::from(work.outside) * pause;
    hold.max((hold + gap) / at_once as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::crowd::{Served, run};
    use crate::workload::testing::{context, is_positive, measured};

    #[test]
    fn the_ideal_is_what_the_holders_need_or_what_the_cpus_can_do() {
        let work = |inside, outside| Work { inside, outside, naps: 0 };
        // One after the other; or all at once, limited by the CPUs.
        assert_eq!(ideal(work(10, 0), 2.0, 4), 20.0);
        assert_eq!(ideal(work(10, 90), 2.0, 4), 50.0);
        assert_eq!(ideal(work(10, 90), 2.0, 1), 200.0);
    }

    #[test]
    fn what_is_over_the_ideal_and_how_far_threads_are_apart() {
        let _guard = waitword_testkit::watch();
        let context = Context::new(Settings::default(), Arc::default());
        let crew = Crew::new(2, &context).unwrap();
        let guarded = Arc::new(Guarded::<crate::locks::stdlib::Mutex>::new());
        let work = Work { inside: 1, outside: 0, naps: 0 };
        let mut outcome = run(&crew, &guarded, work, Until::Sections(5), false, &context).unwrap();
        let served = |sections| Served { sections, ..outcome.threads[0] };
        outcome.threads = vec![served(10), served(30)];
        outcome.took = 4e6;
        let [section, over, _, spread] = figures(&outcome, work, 1).values[..] else {
            unreachable!("four metrics")
        };
        assert_eq!((section, spread), (1e5, 50.0));
        assert_eq!(over, 1e5 - pause::nanoseconds());
    }

    #[test]
    fn every_contender_is_measured() {
        let _guard = waitword_testkit::watch();
        let context = context();
        is_positive(&measured(case(3, EVEN), &context));
    }

    #[test]
    fn the_user_decides_how_many_cells_there_are() {
        let count = |settings: Settings| cases(&settings).len();
        let (threads, full) = (vec![3, 5], true);
        assert_eq!(count(Settings::default()), USUAL.len());
        let chosen = Settings { threads: threads.clone(), ..Settings::default() };
        assert_eq!(count(chosen), 2 * 2);
        let all = Settings { full, ..Settings::default() };
        assert_eq!(count(all), crowd::ALL_THREADS.len() * LOADS_FULL.len());
        let both = Settings { threads, full, ..Settings::default() };
        assert_eq!(count(both), 2 * LOADS_FULL.len());
    }
}
