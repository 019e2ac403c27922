//! `event`: one thread sets an event that n threads sleep on.
//!
//! **Work.** n threads wait for an event and are observed to be asleep; one thread sets it. Each
//! time with a new event.
//!
//! **Reproduces** no particular public benchmark: it is a start signal, a shutdown, a fulfilled
//! future. In `cond-perf`, the waiters of the broadcast need the mutex for their own work; here
//! they need only the news.
//!
//! **Figures**, each the median of several events. *set call*: microseconds from before the call
//! until it returns. *all run*: until the last of the woken threads has run, so a call that returns
//! early and leaves the work to other threads gains nothing here. *switches*: context switches of
//! the process, voluntary and not, per woken thread; with a mutex, a thread may wake only to find
//! it taken. Each *condvar* contender (the C library's, Rust's, parking_lot's and the rest) is a
//! flag, a mutex and a broadcast.

use crate::crew::Crew;
use crate::harness::{Case, Contender, Context, Failure, Measured, Metric, Workload};
use crate::locks::event::{BenchEvent, Flag, every_event};
use crate::locks::{BenchCondvar, condvars, every_condvar};
use crate::settings::Settings;
use crate::stats::median;
use crate::usage::Usage;
use crate::workload::herd::Herd;
use crate::workload::timing::nanoseconds;
use crate::workload::wake::ALL_RUN;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

/// The workload, as selected by name.
pub const WORKLOAD: Workload = Workload {
    name: "event",
    about: "n threads sleep until an event is set: the call, and until all run",
    patch: None,
    milliseconds: 10,
    cases,
};

const METRICS: &[Metric] =
    &[Metric::less("set call", "µs"), ALL_RUN, Metric::less("switches", "/woken")];

const SLEEPERS: [usize; 2] = [16, 64];
const SLEEPERS_FULL: [usize; 5] = [1, 16, 64, 256, 1000];
const EVENTS: usize = 5;
const EVENTS_FULL: usize = 30;

fn cases(settings: &Settings) -> Vec<Case> {
    let sleepers = settings.threads_or(&SLEEPERS, &SLEEPERS_FULL);
    let events = if settings.full { EVENTS_FULL } else { EVENTS };
    let case = |&sleepers| case(sleepers, events);
    sleepers.iter().map(case).collect()
}

fn case(sleepers: usize, events: usize) -> Case {
    fn nothing<E>() {}
    let contenders = condvars() + every_event!(nothing()).len();
    Case::new(format!("n = {sleepers}"), METRICS, contenders, move |context| {
        let crew = Rc::new(Crew::new(sleepers, context)?);
        let mut all = every_condvar!(flag(&crew, events));
        all.extend(every_event!(contender(&crew, events)));
        Ok(all)
    })
}

fn flag<C: BenchCondvar>(crew: &Rc<Crew>, events: usize) -> Contender {
    contender::<Flag<C>>(crew, events)
}

pub(super) fn contender<E: BenchEvent>(crew: &Rc<Crew>, events: usize) -> Contender {
    let crew = crew.clone();
    Contender::named(E::name(), move |context: &Context| measure::<E>(&crew, events, context))
}

fn measure<E: BenchEvent>(
    crew: &Crew,
    events: usize,
    context: &Context,
) -> Result<Measured, Failure> {
    let size = crew.size();
    let (mut calls, mut all_run, mut switches) = (Vec::new(), Vec::new(), Vec::new());
    let mut usage = Usage::default();
    for _ in 0..events {
        let event = Arc::new(E::new());
        let theirs = event.clone();
        let herd = Herd::asleep_by(crew, move |_| theirs.wait(), context)?;
        let before = Usage::now();
        let start = Instant::now();
        event.set();
        let returned = Instant::now();
        let last_ran = herd.wait_until_all_ran();
        let used = Usage::now() - before;
        calls.push(nanoseconds(start, returned) / 1e3);
        all_run.push(nanoseconds(start, last_ran) / 1e3);
        switches.push(used.switches() as f64 / size as f64);
        usage += used;
        // An event does not report how many threads it woke.
        herd.finish(size, context)?;
    }
    Ok(Measured {
        values: vec![median(&calls), median(&all_run), median(&switches)],
        operations: (size * events) as u64,
        usage,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::testing::{context, measured, with_threads};

    #[test]
    fn every_contender_wakes_all() {
        let _guard = waitword_testkit::watch();
        for sleepers in [1, 20] {
            let report = measured(case(sleepers, 3), &context());
            for variant in &report.variants {
                assert_eq!(variant.operations, 3 * sleepers as u64);
                assert!(variant.metrics[1].summary.median > 0.0, "{variant:?}");
            }
            let mut names: Vec<&str> = report.variants.iter().map(|one| &*one.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), report.variants.len(), "{names:?}");
        }
    }

    #[test]
    fn a_late_thread_does_not_wait() {
        fn is_set<E: BenchEvent>() {
            let event = E::new();
            event.set();
            event.wait();
        }
        let _guard = waitword_testkit::watch();
        every_event!(is_set());
        is_set::<Flag<crate::locks::glibc::Condvar>>();
    }

    #[test]
    fn the_user_decides_how_many_cells_there_are() {
        let chosen = with_threads(&[5]);
        assert_eq!(cases(&Settings::default()).len(), SLEEPERS.len());
        assert_eq!(cases(&chosen)[0].name, "n = 5");
    }
}
