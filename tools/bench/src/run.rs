//! A run: executes the requested workloads one after the other, and collects one report.

use crate::harness::{Case, Context, Failure, Workload, WorkloadReport, run_case};
use crate::machine::Machine;
use crate::origin::Origin;
use crate::report::{MissingPeer, Report, SCHEMA};
use crate::settings::Settings;
use crate::watchdog;
use crate::{bars, locks};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Observes a run.
pub trait Observer {
    /// A case begins.
    fn case(&mut self, workload: &str, case: &str);
    /// This fraction of the run is done, as far as it can be estimated.
    fn progress(&mut self, part: f64);
    /// A workload has ended or failed.
    fn workload(&mut self, report: &WorkloadReport);
}

/// Runs these workloads. A case that fails is reported with its error, and one that needs something
/// that is not installed is named; the remaining cases still run. When the user stops, the report
/// contains the results so far.
pub fn run(chosen: &[Workload], context: &Context, observer: &mut dyn Observer) -> Report {
    let settings = &context.settings;
    let began = Instant::now();
    let started = SystemTime::now().duration_since(UNIX_EPOCH);
    let mut machine = Machine::this();
    let mut progress = Progress::of(chosen, settings);
    let mut reports: Vec<WorkloadReport> = Vec::new();
    let mut complete = true;
    for workload in chosen {
        let (report, failure) = run_workload(workload, context, &mut progress, observer);
        complete &= failure.is_none();
        let is_empty =
            report.cases.is_empty() && report.missing.is_empty() && report.disturbed.is_empty();
        if !is_empty || report.error.is_some() {
            observer.workload(&report);
            reports.push(report);
        }
        if failure == Some(Failure::Stopped) {
            break;
        }
    }
    machine.look_again();
    Report {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: started.map_or(0, |since| since.as_secs()),
        seconds: began.elapsed().as_secs_f64(),
        complete,
        rounds: settings.rounds,
        seed: settings.seed,
        window_milliseconds: settings.window.as_millis() as u64,
        origin: Origin::this(),
        machine,
        missing_peers: locks::missing().iter().map(MissingPeer::from).collect(),
        // Twins have other names, and are compared only with each other.
        bars: if settings.twice { Vec::new() } else { bars::judge(&reports) },
        workloads: reports,
        any: None,
    }
}

fn run_workload(
    workload: &Workload,
    context: &Context,
    progress: &mut Progress,
    observer: &mut dyn Observer,
) -> (WorkloadReport, Option<Failure>) {
    let mut report = WorkloadReport {
        name: workload.name.to_owned(),
        about: workload.about.to_owned(),
        patch: workload.patch,
        cases: Vec::new(),
        missing: Vec::new(),
        disturbed: Vec::new(),
        error: None,
    };
    let failure = match watchdog::start(workload.name, context) {
        Err(error) => Some(Failure::new(format!("cannot start the watchdog: {error}"))),
        Ok(_watchdog) => run_cases(workload, context, progress, observer, &mut report),
    };
    if let Some(Failure::Failed(message)) = &failure {
        report.error = Some(message.clone());
    }
    (report, failure)
}

/// Runs all cases, and returns all failures together, if there are any. A case that cannot be set
/// up or fails does not stop the following ones.
fn run_cases(
    workload: &Workload,
    context: &Context,
    progress: &mut Progress,
    observer: &mut dyn Observer,
    report: &mut WorkloadReport,
) -> Option<Failure> {
    let mut failures: Vec<String> = Vec::new();
    for case in cases_of(workload, &context.settings) {
        observer.case(workload.name, &case.name);
        let weight = weight(workload, &case);
        let done = |part: f64| observer.progress(progress.with(weight * part));
        let (case, failure) = run_case(case, context, &mut { done });
        progress.done += weight;
        report.cases.extend(case);
        match failure {
            None => {}
            Some(Failure::Missing(what)) => report.missing.push(what),
            Some(Failure::Disturbed(what)) => report.disturbed.push(what),
            Some(Failure::Failed(message)) => failures.push(message),
            Some(Failure::Stopped) => return Some(Failure::Stopped),
        }
    }
    (!failures.is_empty()).then(|| Failure::Failed(failures.join("\n")))
}

/// The workload's cases; if the user wants that, with every variant twice.
fn cases_of(workload: &Workload, settings: &Settings) -> Vec<Case> {
    let cases = (workload.cases)(settings);
    if !settings.twice {
        return cases;
    }
    let again = (workload.cases)(settings);
    let both = cases.into_iter().zip(again);
    both.map(|(case, again)| case.twice(again)).collect()
}

/// How much of the run is done.
struct Progress {
    done: f64,
    all: f64,
}

impl Progress {
    fn of(chosen: &[Workload], settings: &Settings) -> Self {
        let weights = |workload: &Workload| -> f64 {
            let cases = cases_of(workload, settings);
            cases.iter().map(|case| weight(workload, case)).sum()
        };
        Self { done: 0.0, all: chosen.iter().map(weights).sum() }
    }

    /// The fraction that is done, including this additional weight.
    fn with(&self, weight: f64) -> f64 {
        (self.done + weight) / self.all
    }
}

/// Approximate time for one round, to estimate the remaining time.
fn weight(workload: &Workload, case: &Case) -> f64 {
    case.contenders as f64 * f64::from(workload.milliseconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{Contender, Measured, check};
    use crate::usage::Usage;
    use std::sync::Arc;

    struct Silent;

    impl Observer for Silent {
        fn case(&mut self, _: &str, _: &str) {}
        fn progress(&mut self, _: f64) {}
        fn workload(&mut self, _: &WorkloadReport) {}
    }

    #[test]
    fn a_case_that_fails_or_cannot_be_does_not_stop_the_next_one() {
        fn cases(_: &Settings) -> Vec<Case> {
            let good = |name: &str| {
                Case::new(name, &[], 1, |_| {
                    Ok(vec![Contender::named("some lock", |_| {
                        Ok(Measured { values: Vec::new(), operations: 1, usage: Usage::default() })
                    })])
                })
            };
            let missing = Case::new("missing", &[], 1, |_| {
                Err(Failure::Missing("nothing to be had".to_owned()))
            });
            let bad = Case::new("bad", &[], 1, |_| {
                Ok(vec![Contender::named("some lock", |_| {
                    check(false, || "it hangs".to_owned())?;
                    unreachable!()
                })])
            });
            vec![missing, bad, good("good")]
        }
        let workload =
            Workload { name: "some", about: "some", patch: None, milliseconds: 1, cases };
        let context = Context::new(Settings::default(), Arc::default());
        let report = run(&[workload], &context, &mut Silent);
        assert!(!report.complete);
        let report = &report.workloads[0];
        assert_eq!(report.missing, ["nothing to be had"]);
        assert_eq!(report.error.as_deref(), Some("bad: some lock: it hangs"));
        let names: Vec<_> = report.cases.iter().map(|case| &case.name).collect();
        assert_eq!(names, ["good"]);
    }
}
