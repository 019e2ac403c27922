//! A run: executes the requested workloads one after the other, and collects one report.

use crate::harness::{Case, Context, Failure, run_case};
use crate::machine::Machine;
use crate::origin::Origin;
use crate::report::{MissingPeer, Report, SCHEMA, WorkloadReport};
use crate::watchdog::Watchdog;
use crate::workload::Patch;
use crate::{bars, locks, workload};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Published figures come from measurements of at least this length.
pub const WINDOW: Duration = Duration::from_millis(300);

/// The user's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How often every variant is measured.
    pub rounds: usize,
    /// Numbers of waiting threads in the workloads that have many; one case each.
    pub threads: Vec<usize>,
    /// Of each 1024 sections under a lock, this many sleep for 1 µs with the lock held, in the
    /// workloads where many threads want one lock.
    pub naps: u32,
    /// Also run the cases that take long or very many threads.
    pub full: bool,
    /// Only programs whose names contain one of these; if empty, all programs.
    pub programs: Vec<String>,
    /// Only peers whose names contain one of these, together with ours and their baselines; if
    /// `None`, all peers.
    pub peers: Option<Vec<String>>,
    /// Also measure an identical twin of every variant.
    pub twice: bool,
    /// Seed for the order of the contenders in each round.
    pub seed: u64,
    /// Length of a timed measurement in the workloads on locks. It must cover many rounds of the
    /// scheduler; with 16 threads on two CPUs, one such round takes some 30 ms.
    pub window: Duration,
    /// Also count rounds during which other processes used the machine. Never publish such figures.
    pub keep_disturbed: bool,
}

impl Settings {
    /// Whether the program with this name was requested.
    pub fn wants_program(&self, name: &str) -> bool {
        self.programs.is_empty() || self.programs.iter().any(|part| has(name, part))
    }

    /// Whether the variant with this name is to be measured for its own sake. Ours always are.
    pub fn wants_variant(&self, name: &str) -> bool {
        let Some(peers) = &self.peers else {
            return true;
        };
        locks::is_ours(name) || peers.iter().any(|part| has(name, part))
    }
}

/// Whether `part` occurs in `name`, ignoring case. This is how users select names.
pub fn has(name: &str, part: &str) -> bool {
    name.to_lowercase().contains(&part.to_lowercase())
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            rounds: 7,
            threads: vec![2, 16, 64, 512],
            naps: 0,
            full: false,
            programs: Vec::new(),
            peers: None,
            twice: false,
            seed: 0,
            window: if cfg!(test) {
                Duration::from_millis(10)
            } else {
                WINDOW
            },
            // The tests of this crate and of those above check whether work is done, while other
            // work runs.
            keep_disturbed: cfg!(test),
        }
    }
}

/// A kind of work, with its cases.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Name on the command line.
    pub name: &'static str,
    /// One-sentence description.
    pub about: &'static str,
    /// The patch whose table it reproduces, if any.
    pub patch: Option<Patch>,
    /// Approximate length of one variant's measurement.
    pub milliseconds: u32,
    /// Its cases.
    pub cases: fn(&Settings) -> Vec<Case>,
}

/// All workloads, in the order in which they run.
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
        workload::semaphore::WORKLOAD,
        workload::queue::WORKLOAD,
        workload::barrier::WORKLOAD,
        workload::event::WORKLOAD,
        workload::lockhammer::WORKLOAD,
        workload::rates::WORKLOAD,
        workload::mutex::WORKLOAD,
        workload::shifting::WORKLOAD,
        workload::rwlock::WORKLOAD,
        workload::hand_over::WORKLOAD,
        workload::cond_perf::WORKLOAD,
        workload::pp::WORKLOAD,
        workload::programs::WORKLOAD,
    ]
}

impl Workload {
    /// Whether it runs if no workload is requested by name: those that the mails of the five
    /// patches measured, or with `full` all.
    pub fn is_usual(&self, full: bool) -> bool {
        const OF_THE_MAILS: [&str; 6] = [
            workload::calls::WORKLOAD.name,
            workload::mutex::WORKLOAD.name,
            workload::rwlock::WORKLOAD.name,
            workload::hand_over::WORKLOAD.name,
            workload::cond_perf::WORKLOAD.name,
            workload::pp::WORKLOAD.name,
        ];
        full || OF_THE_MAILS.contains(&self.name)
    }
}

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
        bars: if settings.twice {
            Vec::new()
        } else {
            bars::judge(&reports)
        },
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
    let failure = match Watchdog::start(workload.name, context) {
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
        Self {
            done: 0.0,
            all: chosen.iter().map(weights).sum(),
        }
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

    struct Nobody;

    impl Observer for Nobody {
        fn case(&mut self, _: &str, _: &str) {}
        fn progress(&mut self, _: f64) {}
        fn workload(&mut self, _: &WorkloadReport) {}
    }

    #[test]
    fn a_case_that_fails_or_cannot_be_does_not_stop_the_next_one() {
        fn cases(_: &Settings) -> Vec<Case> {
            let good = |name: &str| {
                Case::new(name, &[], 1, |_| {
                    Ok(vec![Contender::named("somebody", |_| {
                        Ok(Measured {
                            values: Vec::new(),
                            operations: 1,
                            usage: Usage::default(),
                        })
                    })])
                })
            };
            let missing = Case::new("missing", &[], 1, |_| {
                Err(Failure::Missing("nothing to be had".to_owned()))
            });
            let bad = Case::new("bad", &[], 1, |_| {
                Ok(vec![Contender::named("somebody", |_| {
                    check(false, || "it hangs".to_owned())?;
                    unreachable!()
                })])
            });
            vec![missing, bad, good("good")]
        }
        let workload = Workload {
            name: "some",
            about: "some",
            patch: None,
            milliseconds: 1,
            cases,
        };
        let context = Context::new(Settings::default(), Arc::default());
        let report = run(&[workload], &context, &mut Nobody);
        assert!(!report.complete);
        let report = &report.workloads[0];
        assert_eq!(report.missing, ["nothing to be had"]);
        assert_eq!(report.error.as_deref(), Some("bad: somebody: it hangs"));
        let names: Vec<_> = report.cases.iter().map(|case| &case.name).collect();
        assert_eq!(names, ["good"]);
    }

    #[test]
    fn programs_are_asked_for_by_a_part_of_their_names() {
        let settings = |parts: &[&str]| Settings {
            programs: parts.iter().map(|part| (*part).to_owned()).collect(),
            ..Settings::default()
        };
        assert!(settings(&[]).wants_program("xz"));
        assert!(settings(&["redis", "XZ"]).wants_program("xz, 4 threads"));
        assert!(!settings(&["redis"]).wants_program("xz"));
    }

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
