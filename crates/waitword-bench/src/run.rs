//! A run: the workloads asked for, one after the other, into one report.

use crate::harness::{Case, Context, Failure, run_case};
use crate::machine::Machine;
use crate::report::{Report, SCHEMA, WorkloadReport};
use crate::watchdog::Watchdog;
use crate::{bars, locks, workload};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// What the user asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How often every variant is measured.
    pub rounds: usize,
    /// How many threads wait, in the workloads where many do; one case each.
    pub threads: Vec<usize>,
    /// Of each 1024 sections under a lock, so many sleep for 1 µs with the lock held, in the workloads where
    /// many threads want one lock.
    pub naps: u32,
    /// Also the cases that take long or very many threads.
    pub full: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            rounds: 5,
            threads: vec![2, 16, 64, 512],
            naps: 0,
            full: false,
        }
    }
}

/// A kind of work, with the cases that it comes in.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// What the user calls it by.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub about: &'static str,
    /// Its cases.
    pub cases: fn(&Settings) -> Vec<Case>,
}

/// All workloads, in the order in which they are run.
pub fn workloads() -> &'static [Workload] {
    &[
        workload::calls::WORKLOAD,
        workload::hash::WORKLOAD,
        workload::wake::WORKLOAD,
        workload::wake_parallel::WORKLOAD,
        workload::requeue::WORKLOAD,
        workload::ping_pong::WORKLOAD,
        workload::shared::WORKLOAD,
        workload::scale::WORKLOAD,
        workload::memory::WORKLOAD,
        workload::uncontended::WORKLOAD,
        workload::mutex::WORKLOAD,
        workload::shifting::WORKLOAD,
        workload::rwlock::WORKLOAD,
        workload::hand_over::WORKLOAD,
        workload::cond_perf::WORKLOAD,
        workload::pp::WORKLOAD,
    ]
}

/// Somebody who watches the run.
pub trait Observer {
    /// So many measurements are to come.
    fn begin(&mut self, steps: u64);
    /// This case begins.
    fn case(&mut self, workload: &str, case: &str);
    /// One measurement has been made and kept.
    fn step(&mut self);
    /// This workload has come to its end, or failed.
    fn workload(&mut self, report: &WorkloadReport);
}

/// Runs these workloads. A workload that fails is reported with its error, and the others still run; when
/// the user stops, the report holds what there is.
pub fn run(chosen: &[Workload], context: &Context, observer: &mut dyn Observer) -> Report {
    let settings = &context.settings;
    let began = Instant::now();
    let started = SystemTime::now().duration_since(UNIX_EPOCH);
    let mut machine = Machine::this();
    let steps = chosen
        .iter()
        .flat_map(|workload| (workload.cases)(settings))
        .map(|case| case.steps(settings))
        .sum();
    observer.begin(steps);

    let mut reports: Vec<WorkloadReport> = Vec::new();
    let mut complete = true;
    for workload in chosen {
        let (report, failure) = run_workload(workload, context, observer);
        complete &= failure.is_none();
        if !report.cases.is_empty() || report.error.is_some() {
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
        machine,
        missing_peers: locks::missing().to_vec(),
        bars: bars::judge(&reports),
        workloads: reports,
    }
}

fn run_workload(
    workload: &Workload,
    context: &Context,
    observer: &mut dyn Observer,
) -> (WorkloadReport, Option<Failure>) {
    let mut report = WorkloadReport {
        name: workload.name.to_owned(),
        about: workload.about.to_owned(),
        cases: Vec::new(),
        error: None,
    };
    let failure = match Watchdog::start(workload.name, context) {
        Err(error) => Some(Failure::new(format!("no thread for the watchdog: {error}"))),
        Ok(_watchdog) => run_cases(workload, context, observer, &mut report),
    };
    if let Some(Failure::Failed(message)) = &failure {
        report.error = Some(message.clone());
    }
    (report, failure)
}

fn run_cases(
    workload: &Workload,
    context: &Context,
    observer: &mut dyn Observer,
    report: &mut WorkloadReport,
) -> Option<Failure> {
    for case in (workload.cases)(&context.settings) {
        observer.case(workload.name, &case.name);
        let (case, failure) = run_case(case, context, &mut || observer.step());
        report.cases.extend(case);
        if failure.is_some() {
            return failure;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_workload_has_cases() {
        let mut names: Vec<_> = workloads().iter().map(|workload| workload.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), workloads().len());
        for workload in workloads() {
            assert!(!(workload.cases)(&Settings::default()).is_empty());
            assert!(!workload.about.is_empty());
        }
    }
}
