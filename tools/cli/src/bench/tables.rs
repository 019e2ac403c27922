//! The report as tables for a terminal. They also read well when pasted into a text.

pub(crate) mod any;
mod compare;
mod glance;
mod programs;
mod wide;

pub(crate) use compare::comparison;
pub(crate) use glance::glance;

use crate::cells::{ratio, table};
use comfy_table::{ColumnConstraint, Table};
use waitword_bench::bars::{BarReport, Verdict, counted};
use waitword_bench::locks::marked;
use waitword_bench::report::{
    CaseReport, MetricReport, MissingPeer, Report, VariantReport, WorkloadReport,
};
use waitword_bench::stats::{ROUNDS_TO_TELL, Verdict as Told};
use waitword_report::{figure, how_sure, interval, range};

/// The tables of all cases of a workload.
pub(super) fn workload(report: &WorkloadReport) -> String {
    let mut text = format!("\n## {}: {}\n", report.name, report.about);
    if report.name == waitword_bench::workload::programs::WORKLOAD.name {
        text += &programs::table_of(&report.cases);
        return text + &notes(report);
    }
    let metrics = |case: &CaseReport| case.variants.first().map_or(0, |first| first.metrics.len());
    let (many, few): (Vec<_>, Vec<_>) =
        report.cases.iter().partition(|case| metrics(case) >= wide::MANY);
    for case in many {
        text += &wide::case(case);
    }
    if !few.is_empty() {
        let named = few.iter().any(|case| {
            let metrics = case.variants.iter().flat_map(|variant| &variant.metrics);
            metrics.into_iter().any(|metric| !metric.name.is_empty())
        });
        let header = [
            "case",
            "figure",
            "unit",
            "variant",
            "median",
            "min–max",
            "ratio",
            "interval",
            "min–max",
            "CPU ns/op",
            "switches/op",
            "preempted/op",
        ];
        let mut table = table(&header, 4, 8);
        for case in few {
            add_case(&mut table, case);
        }
        if !named && let Some(column) = table.column_mut(1) {
            column.set_constraint(ColumnConstraint::Hidden);
        }
        text += &table.to_string();
        text.push('\n');
    }
    text + &notes(report)
}

/// The lines below a workload's tables: disturbed rounds, what is missing, what failed.
fn notes(report: &WorkloadReport) -> String {
    let mut text = String::new();
    for case in &report.cases {
        if case.disturbed > 0 || case.repeated > 0 {
            text +=
                &format!("{}: {} rounds discarded because of other load", case.name, case.repeated);
            if case.disturbed > 0 {
                text += &format!("; {} kept on request despite other load", case.disturbed);
            }
            text.push('\n');
        }
    }
    for what in &report.disturbed {
        text += &format!("Not measured (other load): {what}\n");
    }
    for what in &report.missing {
        text += &format!("Not measured (not installed): {what}\n");
    }
    if let Some(error) = &report.error {
        text += &format!("FAILED: {error}\n");
    }
    text
}

fn add_case(table: &mut Table, case: &CaseReport) {
    let metrics = case.variants.first().map_or(0, |variant| variant.metrics.len());
    let star =
        |variant: &VariantReport| VariantReport { name: marked(&variant.name), ..variant.clone() };
    let mut name = case.name.as_str();
    for number in 0..metrics {
        for variant in &case.variants {
            let metric = &variant.metrics[number];
            let variant = &star(variant);
            // The cost of the whole operation is shown only beside its first figure.
            let cost = (number == 0).then_some(variant);
            table.add_row(row(name, variant, metric, cost));
            name = "";
        }
    }
}

fn row(
    case: &str,
    variant: &VariantReport,
    metric: &MetricReport,
    cost: Option<&VariantReport>,
) -> Vec<String> {
    let [ratio, interval, ratio_range] = metric.ratio.as_ref().map_or_else(Default::default, ratio);
    let [cpu, voluntary, involuntary] = cost
        .and_then(VariantReport::per_operation)
        .map_or_else(Default::default, |all| all.map(figure));
    vec![
        case.to_owned(),
        metric.name.clone(),
        metric.unit.clone(),
        variant.name.clone(),
        figure(metric.summary.median),
        range(metric.summary),
        ratio,
        interval,
        ratio_range,
        cpu,
        voluntary,
        involuntary,
    ]
}

/// The project's goals, and whether they are met.
pub(super) fn bars(bars: &[BarReport]) -> String {
    if bars.is_empty() {
        return String::new();
    }
    let mut text = String::from("\n## Goals, worst case first\n");
    let header = ["goal", "limit", "median", "interval", "", "worst of", "where"];
    let mut table = table(&header, 1, 3);
    let measured = |bar: &&BarReport| bar.verdict != Verdict::NotMeasured;
    for bar in bars.iter().filter(measured) {
        let verdict = match bar.verdict {
            Verdict::NotMet => "NOT MET",
            other => other.name(),
        };
        let mut what = bar.what.as_str();
        let limit = limit(bar);
        if bar.cells.is_empty() {
            table.add_row([what, &limit, "", "", verdict, "", ""]);
        }
        for (number, cell) in bar.cells.iter().enumerate() {
            // After the worst cell, every other cell that does not meet the goal.
            if number > 0 && cell.verdict == Verdict::Met {
                break;
            }
            let [limit, verdict, count] = if number == 0 {
                [limit.clone(), verdict.to_owned(), bar.cells.len().to_string()]
            } else {
                Default::default()
            };
            table.add_row([
                what,
                &limit,
                &figure(cell.figure.median),
                &interval(cell.interval),
                &verdict,
                &count,
                &cell.label,
            ]);
            what = "";
        }
    }
    text += &table.to_string();
    let all = bars.iter().filter(measured).count();
    text += &format!("\n{}.\n", counted(bars));
    if all < bars.len() {
        let more = bars.len() - all;
        text += &format!("{more} more need cases that this run did not have; --full has all.\n");
    }
    text
}

/// How many ratios of a variant to its twin were taken for a difference.
pub(super) fn twins(report: &Report) -> String {
    let cases = report.workloads.iter().flat_map(|workload| &workload.cases);
    let variants = cases.flat_map(|case| &case.variants);
    let ratios = variants.flat_map(|variant| &variant.metrics).filter_map(|metric| metric.ratio);
    let verdicts: Vec<Told> = ratios.map(|ratio| ratio.verdict).collect();
    let is_other = |told: &&Told| matches!(told, Told::Less | Told::More);
    let other = verdicts.iter().filter(is_other).count();
    match verdicts.len() {
        all if verdicts.contains(&Told::TooFewRounds) || all == 0 => format!(
            "\nTwins: a verdict of \"same\" or \"different\" needs at least {ROUNDS_TO_TELL} \
             rounds.\n"
        ),
        all => format!(
            "\nTwins: {other} of {all} ratios of a variant to itself were taken for a difference: \
             {:.1} %.\n",
            100.0 * other as f64 / all as f64
        ),
    }
}

fn limit(bar: &BarReport) -> String {
    let sign = if bar.at_least { "≥" } else { "≤" };
    format!("{sign} {}", figure(bar.limit))
}

/// The machine and the conditions of the run.
pub(super) fn header(report: &Report) -> String {
    let mut text = String::from("## Measured on\n");
    for (what, value) in report.machine.lines() {
        text += &format!("{what:20} {value}\n");
    }
    let cases = || report.workloads.iter().flat_map(|workload| &workload.cases);
    let repeated: usize = cases().map(|case| case.repeated).sum();
    let disturbed: usize = cases().map(|case| case.disturbed).sum();
    text += &format!(
        "{:20} {}; {repeated} discarded because of other load, {disturbed} kept on request despite \
         it\n",
        "rounds", report.rounds
    );
    text += &format!("{:20} {}\n", "confidence", how_sure(report.rounds));
    for (what, value) in report.origin.lines() {
        text += &format!("{what:20} {value}\n");
    }
    text += &format!("{:20} {:.0} s\n", "took", report.seconds);
    text += &missing(&report.missing_peers);
    text
}

/// One line for each peer that this build cannot measure.
fn missing(peers: &[MissingPeer]) -> String {
    let line = |peer: &MissingPeer| {
        format!(
            "{:20} {}: not available; run `{}` and rebuild\n",
            "peer missing", peer.name, peer.install
        )
    };
    peers.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_peer_is_named_with_the_command_that_brings_it() {
        let peer = MissingPeer {
            name: "nsync".to_owned(),
            install: "apt-get install libnsync-dev".to_owned(),
        };
        let text = missing(&[peer]);
        assert!(text.contains("nsync: not available"), "{text}");
        assert!(text.contains("`apt-get install libnsync-dev`"), "{text}");
        assert_eq!(missing(&[]), "");
    }

    #[test]
    fn a_bar_shows_the_worst_cell_and_every_cell_that_is_not_met() {
        use waitword_bench::bars::CellReport;
        use waitword_bench::stats::Summary;
        let cell = |label: &str, median, verdict| CellReport {
            label: label.to_owned(),
            figure: Summary { median, min: median, max: median },
            interval: None,
            verdict,
        };
        let bar = BarReport {
            what: "some bar".to_owned(),
            limit: 1.0,
            at_least: false,
            verdict: Verdict::NotMet,
            cells: vec![
                cell("worst", 3.0, Verdict::NotMet),
                cell("bad", 2.0, Verdict::Undecided),
                cell("good", 0.5, Verdict::Met),
            ],
        };
        let text = bars(&[bar]);
        assert!(text.contains("NOT MET") && text.contains("worst") && text.contains("bad"));
        assert!(!text.contains("good") && text.contains("1 not met"), "{text}");
    }
}
