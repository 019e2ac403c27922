//! Bars against invented reports, and the list of bars against the workloads.

use super::*;
use crate::harness::Better;
use crate::settings::Settings;
use crate::stats::Ratio;
use crate::usage::Usage;
use crate::workload::workloads;

fn report(workload: &str, case: &str, variant: &str, ratio: &[f64]) -> WorkloadReport {
    let metric = MetricReport {
        name: String::new(),
        unit: "ns".to_owned(),
        values: ratio.to_vec(),
        summary: Summary::of(ratio).unwrap(),
        better: Better::Less,
        ratio: Ratio::of(ratio, &vec![1.0; ratio.len()]),
    };
    WorkloadReport {
        missing: Vec::new(),
        disturbed: Vec::new(),
        name: workload.to_owned(),
        about: String::new(),
        patch: None,
        error: None,
        cases: vec![CaseReport {
            name: case.to_owned(),
            seconds: 0.0,
            rounds: ratio.len(),
            repeated: 0,
            disturbed: 0,
            variants: vec![VariantReport {
                name: variant.to_owned(),
                baseline: None,
                metrics: vec![metric],
                cpu: None,
                operations: 0,
                usage: Usage::default(),
            }],
        }],
    }
}

/// Seven rounds: `first` in the first one, `others` in the rest.
fn rounds(first: f64, others: f64) -> [f64; 7] {
    let mut rounds = [others; 7];
    rounds[0] = first;
    rounds
}

#[test]
fn the_whole_interval_decides_and_the_worst_cell_comes_first() {
    let case = "wait, wrong value, private, one word";
    let mut good = report("calls", case, "waitword 8", &rounds(0.02, 0.01));
    let bad = report("calls", case, "waitword 64", &rounds(0.051, 0.06));
    let open = report("calls", case, "waitword 32", &rounds(0.06, 0.01));
    let bar = |reports: &[WorkloadReport]| judge(reports).remove(0);
    assert_eq!(bar(&[good.clone()]).verdict, Verdict::Met);
    good.cases.extend(open.cases);
    assert_eq!(bar(&[good.clone()]).verdict, Verdict::Undecided);
    good.cases.extend(bad.cases);
    let judged = bar(&[good]);
    assert_eq!(judged.verdict, Verdict::NotMet);
    assert_eq!(judged.cells[0].figure.median, 0.06);
    let verdicts: Vec<Verdict> = judged.cells.iter().map(|cell| cell.verdict).collect();
    assert_eq!(verdicts[0], Verdict::NotMet);
    assert!(verdicts.contains(&Verdict::Met) && verdicts.contains(&Verdict::Undecided));
    let few = report("calls", case, "waitword 8", &[0.01; 3]);
    assert_eq!(bar(&[few]).verdict, Verdict::TooFewRounds);
    assert_eq!(counted(&[judged]), "1 not met");
}

#[test]
fn memory_must_suffice_in_every_round() {
    let judged = judge(&[report("memory", "after 16 threads", "waitword", &[0.7, 0.7, 1.4])]);
    assert_eq!(judged[0].verdict, Verdict::NotMet);
}

#[test]
fn where_more_is_better_the_least_is_the_worst() {
    let bar = Bar {
        what: "throughput",
        limit: 1.0,
        figure: Figure::AtLeast,
        workload: "mutex",
        case: &["L = 5,"],
        variants: &["waitword", "waitword, other"],
        metrics: &[],
    };
    let mut all = report("mutex", "t = 2, L = 5, D = 1", "waitword", &[1.5; 7]);
    assert_eq!(bar.judge(&[all.clone()]).verdict, Verdict::Met);
    let worse = report("mutex", "t = 64, L = 5, D = 1", "waitword, other", &[0.9; 7]);
    all.cases.extend(worse.cases);
    let judged = bar.judge(&[all]);
    assert!(judged.at_least && judged.verdict == Verdict::NotMet);
    assert_eq!(judged.cells[0].figure.median, 0.9);
    assert_eq!(judged.cells[1].verdict, Verdict::Met);
}

#[test]
fn peers_are_the_best_in_each_round_or_the_fastest_over_all() {
    let case = "t = 2, L = 5, D = 1";
    let mut all = report("mutex", case, "waitword", &[100.0, 100.0, 100.0]);
    for (peer, values) in [
        ("std", [50.0, 200.0, 90.0]),
        ("glibc", [80.0, 80.0, 80.0]),
        // Our own and historical variants; these are not peers.
        ("waitword TO", [1.0, 900.0, 900.0]),
        ("nptl-orig", [1.0, 900.0, 900.0]),
    ] {
        let peer = report("mutex", case, peer, &values).cases.remove(0);
        all.cases[0].variants.extend(peer.variants);
    }
    let mut bar = Bar {
        what: "throughput",
        limit: 0.97,
        figure: Figure::ToMostOf(&["std", "glibc"]),
        workload: "mutex",
        case: &[],
        variants: &["waitword"],
        metrics: &[],
    };
    let figure =
        |all: &WorkloadReport, bar: &Bar| bar.judge(std::slice::from_ref(all)).cells[0].figure;
    // 100 divided by 80, 200 and 90.
    let most = figure(&all, &bar);
    assert_eq!((most.min, most.max), (0.5, 1.25));
    bar.figure = Figure::ToLeastOf(&["std", "glibc"]);
    let least = figure(&all, &bar);
    assert_eq!((least.min, least.max), (1.25, 2.0));
    // Any peer counts; the metric decides which value is best.
    bar.figure = Figure::ToBest;
    assert_eq!(figure(&all, &bar), least);
    assert!(!bar.judge(std::slice::from_ref(&all)).at_least);
    for variant in &mut all.cases[0].variants {
        variant.metrics[0].better = Better::More;
    }
    assert_eq!(figure(&all, &bar), most);
    assert!(bar.judge(std::slice::from_ref(&all)).at_least);
    // std's median is 90, glibc's 80.
    bar.figure = Figure::ToFastest("");
    assert_eq!(figure(&all, &bar).median, 100.0 / 90.0);
    bar.figure = Figure::ToCase("t = 2");
    assert_eq!(figure(&all, &bar).median, 1.0);
}

#[test]
fn what_was_not_measured_is_not_met_silently() {
    let other = report("calls", "some other case", "waitword 8", &[0.0]);
    assert!(judge(&[other]).iter().all(|bar| bar.verdict == Verdict::NotMeasured));
    assert!(judge(&[]).is_empty());
}

/// A bar whose names do not fit the workload's would never be measured.
#[test]
fn every_bar_has_a_case() {
    for bar in BARS {
        let workload = workloads().iter().find(|workload| workload.name == bar.workload).unwrap();
        let mut cases = (workload.cases)(&Settings::default());
        let full = Settings { full: true, ..Settings::default() };
        cases.extend((workload.cases)(&full));
        let fits = |case: &crate::harness::Case| {
            let named = |part: &&str| case.name.contains(*part);
            bar.case.iter().all(named)
                && (bar.metrics.is_empty()
                    || case.metrics.iter().any(|metric| bar.metrics.contains(&metric.name)))
        };
        // A machine with one CPU has no case "two CPUs".
        let two_cpus = bar.case.contains(&"two CPUs");
        assert!(two_cpus || cases.iter().any(fits), "{bar:?}");
    }
}
