//! Compares synthetic reports, and the reports of one real run whose loop does a tenth more work.

use super::*;
use crate::harness::{Case, Contender, Context, Failure, Measured, Metric, Workload};
use crate::run::{Observer, run};
use crate::settings::Settings;
use crate::usage::Usage;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

struct Silent;

impl Observer for Silent {
    fn case(&mut self, _: &str, _: &str) {}
    fn progress(&mut self, _: f64) {}
    fn workload(&mut self, _: &crate::report::WorkloadReport) {}
}

/// The variant's time, in thousandths of the baseline's.
static THOUSANDTHS: AtomicU64 = AtomicU64::new(500);
/// How slow the machine is: the factor on every time, in thousandths.
static MACHINE: AtomicU64 = AtomicU64::new(1000);

const METRICS: &[Metric] =
    &[Metric::less("time", "ns"), Metric::more("rate", "ops/s"), Metric::neither("size", "bytes")];

fn measured(time: f64) -> Result<Measured, Failure> {
    Ok(Measured { values: vec![time, 1e9 / time, time], operations: 1, usage: Usage::default() })
}

fn made(settings: &Settings) -> Vec<Case> {
    let _ = settings;
    let mut round = 0;
    // Rounds differ by a few hundredths, and the two contenders do not vary together.
    let mut noise = move || {
        round += 7;
        1.0 + f64::from(round % 5) / 100.0
    };
    let part = |of: &AtomicU64| of.load(Relaxed) as f64 / 1000.0;
    vec![Case::new("a case", METRICS, 2, move |_| {
        let mut other = noise;
        Ok(vec![
            Contender::named("glibc", move |_| measured(100.0 * part(&MACHINE) * noise())),
            Contender::named("waitword", move |_| {
                other();
                measured(100.0 * part(&MACHINE) * part(&THOUSANDTHS) * other())
            }),
        ])
    })]
}

fn report_of(cases: fn(&Settings) -> Vec<Case>, rounds: usize) -> Report {
    let workload =
        Workload { name: "planted", about: "planted", patch: None, milliseconds: 1, cases };
    let settings = Settings { rounds, ..Settings::default() };
    run(&[workload], &Context::new(settings, Arc::default()), &mut Silent)
}

fn find<'a>(comparison: &'a Comparison, variant: &str, metric: &str) -> &'a Change {
    let wanted = |change: &&Change| change.variant == variant && change.metric == metric;
    comparison.changes.iter().find(wanted).unwrap()
}

/// One test, because all cases share the one synthetic machine.
#[test]
fn a_tenth_more_is_found_whatever_the_machine_does_meanwhile() {
    let old = report_of(made, 15);
    let same = compare(&old, &report_of(made, 15));
    assert_eq!(same.changes.len(), 6);
    assert!(same.changes.iter().all(|change| change.direction() == Direction::Same), "{same:?}");

    THOUSANDTHS.store(550, Relaxed);
    MACHINE.store(1300, Relaxed);
    let now = report_of(made, 15);
    let changed = compare(&old, &now);
    let time = find(&changed, "waitword", "time");
    assert_eq!(time.direction(), Direction::Worse);
    assert!((time.factor() - 1.1).abs() < 0.03, "{time:?}");
    assert_eq!(time.baseline.as_deref(), Some("glibc"));
    assert_eq!(find(&changed, "waitword", "rate").direction(), Direction::Worse);
    assert_eq!(find(&changed, "waitword", "size").direction(), Direction::Same);
    let machine = find(&changed, "glibc", "time");
    assert_eq!((machine.baseline.as_ref(), machine.direction()), (None, Direction::Worse));
    let back = compare(&now, &old);
    assert_eq!(find(&back, "waitword", "time").direction(), Direction::Better);
    assert_eq!(find(&back, "waitword", "rate").direction(), Direction::Better);

    // Entries that only one report has are counted, and too few rounds give no verdict.
    let mut less = old.clone();
    less.workloads[0].cases[0].variants.truncate(1);
    let some = compare(&less, &now);
    assert_eq!((some.changes.len(), some.alone), (3, 3));
    let few = compare(&old, &report_of(made, 3));
    let untold = |change: &Change| match change.better {
        Better::Neither => change.direction() == Direction::Same,
        Better::Less | Better::More => change.direction() == Direction::Undecided,
    };
    assert!(few.changes.iter().all(untold), "{few:?}");
}

/// Steps of a real loop.
static STEPS: AtomicU64 = AtomicU64::new(20_000);

fn work(steps: u64) -> Result<Measured, Failure> {
    let start = std::time::Instant::now();
    let mut x = black_box(1_u64);
    for _ in 0..steps {
        x = black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
    measured(crate::workload::timing::nanoseconds(start, std::time::Instant::now()))
}

fn worked(_: &Settings) -> Vec<Case> {
    vec![Case::new("a loop", METRICS, 2, |_| {
        Ok(vec![
            Contender::named("glibc", |_| work(20_000)),
            Contender::named("waitword", |_| work(STEPS.load(Relaxed))),
        ])
    })]
}

/// This is a real measurement. On a machine that also runs other tests, it may take several
/// attempts until one is quiet enough to see the difference.
#[test]
fn a_loop_that_does_a_tenth_more_is_found() {
    let found = |_| {
        STEPS.store(20_000, Relaxed);
        let old = report_of(worked, 31);
        STEPS.store(22_000, Relaxed);
        let changed = compare(&old, &report_of(worked, 31));
        find(&changed, "waitword", "time").direction() == Direction::Worse
    };
    assert!((0..20).any(found));
}

#[test]
fn a_report_can_be_read_back_and_says_the_same() {
    let report = report_of(made, 7);
    let file = tempfile::NamedTempFile::new().unwrap();
    let read = |text: &str| {
        std::fs::write(&file, text).unwrap();
        Report::read(file.path())
    };
    let text = serde_json::to_string(&report).unwrap();
    assert_eq!(read(&text), Ok(report));

    let error = |text: &str| read(text).unwrap_err();
    assert!(error(&text[..text.len() / 2]).contains("no report in"));
    assert!(error("{}").contains("no report of this benchmark"));
    assert!(error(r#"{"schema": 1}"#).contains("version 1 of the schema"));
    assert!(error(r#"{"schema": 3}"#).contains("missing field"));
    let error = Report::read(std::path::Path::new("/no/such.json")).unwrap_err();
    assert!(error.contains("cannot read /no/such.json"), "{error}");
}
