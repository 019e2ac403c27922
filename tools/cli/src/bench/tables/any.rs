//! Random loads, as tables of at most 100 columns.

use crate::cells::table;
use waitword_bench::any::AnyReport;
use waitword_bench::any::contender::Contender;
use waitword_bench::any::summary::{self, Of, Ratios, To, Which, ratios};
use waitword_bench::stats::ROUNDS_TO_TELL;
use waitword_report::figure;

/// Those of our contenders that have a table of their own.
const OURS: [Contender; 2] = [Contender::Waitword, Contender::DropIn];

/// A ratio with two decimals. A large ratio (p99.9 may have one) has none, so that it fits its
/// column.
fn two(value: f64) -> String {
    match value {
        100.0.. => figure(value),
        _ => format!("{value:.2}"),
    }
}

fn mean(ratios: Option<Ratios>) -> String {
    ratios.map_or_else(String::new, |ratios| two(ratios.mean))
}

fn interval(ratios: Ratios) -> String {
    format!("{:.2}–{:.2}", ratios.interval.low, ratios.interval.high)
}

/// A few lines: the library and the drop-in, relative to the best peer of each cell.
pub(super) fn glance(report: &AnyReport) -> String {
    let seeds: Vec<String> = report.seeds().iter().map(u64::to_string).collect();
    let mut text = format!(
        "Random loads (seed {}): ratios to the best peer of each cell by throughput; p99.9 of \
         waits\n",
        seeds.join(", ")
    );
    let head = [
        "loads",
        "cells",
        "throughput",
        "99 %",
        "tenth",
        "worst",
        "CPU",
        "p99.9",
        "to glibc",
        "drop-in",
    ];
    text += &glance_line(head.map(str::to_owned));
    for which in Which::all_of(&report.cells) {
        let of = |ours, to, of| ratios(&report.cells, which, ours, to, of);
        let ours = |to, figure| of(Contender::Waitword, to, figure);
        let Some(best) = ours(To::Best, Of::Throughput) else {
            continue;
        };
        text += &glance_line([
            which.name(),
            best.cells.to_string(),
            two(best.mean),
            interval(best),
            two(best.tenth),
            two(best.worst),
            mean(ours(To::Best, Of::Cpu)),
            mean(ours(To::Best, Of::P999)),
            mean(ours(To::Peer(Contender::Glibc), Of::Throughput)),
            mean(of(Contender::DropIn, To::Best, Of::Throughput)),
        ]);
    }
    text + "\n"
}

fn glance_line(cells: [String; 10]) -> String {
    let [loads, cells, mean, interval, tenth, worst, cpu, tail, glibc, drop_in] = cells;
    format!(
        "{loads:23}{cells:>6}{mean:>11}{interval:>11}{tenth:>7}{worst:>7}{cpu:>7}{tail:>7}\
         {glibc:>10}{drop_in:>9}\n"
    )
}

/// All tables, with an introduction and notes.
pub(crate) fn text(report: &AnyReport) -> String {
    let mut text = String::from(
        "A ratio is ours divided by theirs, in the same round; a cell counts with the median of \
         its rounds.\n\
         The best peer of a cell is the one with the best throughput there, also for CPU and \
         waits. More\n\
         throughput is better; less CPU per operation and a lower 99.9th percentile of the waits \
         are better.\n",
    );
    for ours in OURS {
        text += &to_best(report, ours);
        text += &to_peers(report, ours);
    }
    text += &flavours(report);
    text += &worst(report, 10);
    if !report.disturbed.is_empty() {
        text += &format!("\nNot measured (other load): {}\n", report.disturbed.join(", "));
    }
    if report.rounds < ROUNDS_TO_TELL {
        text += &format!("\nFewer than {ROUNDS_TO_TELL} rounds: a cell's ratio has no interval.\n");
    }
    text
}

fn to_best(report: &AnyReport, ours: Contender) -> String {
    let title = format!("{ours}, relative to the best peer of each cell");
    let to = To::Best;
    best_of(report, &title, ours, to)
}

/// The geometric mean with its interval, the tenth percentile and the worst cell of throughput; the
/// mean and the worst cell of CPU and waits.
fn best_of(report: &AnyReport, title: &str, ours: Contender, to: To) -> String {
    let head = [
        "loads",
        "cells",
        "throughput",
        "99 %",
        "tenth",
        "worst",
        "CPU",
        "worst",
        "p99.9",
        "worst",
    ];
    let mut table = table(&head, 1, 9);
    for which in Which::all_of(&report.cells) {
        let of = |figure| ratios(&report.cells, which, ours, to, figure);
        let Some(throughput) = of(Of::Throughput) else {
            continue;
        };
        let worst = |ratios: Option<Ratios>| ratios.map_or_else(String::new, |of| two(of.worst));
        table.add_row([
            which.name(),
            throughput.cells.to_string(),
            two(throughput.mean),
            interval(throughput),
            two(throughput.tenth),
            two(throughput.worst),
            mean(of(Of::Cpu)),
            worst(of(Of::Cpu)),
            mean(of(Of::P999)),
            worst(of(Of::P999)),
        ]);
    }
    if table.is_empty() {
        return String::new();
    }
    format!("\n{title}\n{table}\n")
}

fn to_peers(report: &AnyReport, ours: Contender) -> String {
    let peers = report.peers();
    let names: Vec<String> = peers.iter().map(|&peer| report.shown(peer)).collect();
    let mut head = vec!["loads", "figure"];
    head.extend(names.iter().map(String::as_str));
    let mut table = table(&head, 2, peers.len());
    for which in Which::all_of(&report.cells) {
        let mut name = which.name();
        for figure in Of::ALL {
            let of = |&peer: &Contender| {
                mean(ratios(&report.cells, which, ours, To::Peer(peer), figure))
            };
            let all: Vec<String> = peers.iter().map(of).collect();
            if all.iter().all(String::is_empty) {
                continue;
            }
            let mut row = vec![std::mem::take(&mut name), figure.name().to_owned()];
            row.extend(all);
            table.add_row(row);
        }
    }
    if table.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{ours}, relative to each peer: geometric means\n{table}\n");
    for remark in report.remarks() {
        text += &format!("{remark}\n");
    }
    text
}

/// The adaptive lock relative to the best fixed flavour in each cell.
fn flavours(report: &AnyReport) -> String {
    let title = "waitword, adaptive, relative to the best of its own flavours in each cell";
    best_of(report, title, Contender::Waitword, To::BestFlavour)
}

/// The worst cells, and the option that shows one in detail.
fn worst(report: &AnyReport, count: usize) -> String {
    let mut text = "\nThe worst cells (--replay CELL shows one in detail):\n".to_owned();
    for (ours, ratio, cell) in summary::worst(&report.cells, &OURS, count) {
        let best = cell.other(To::Best).map_or_else(String::new, |best| best.to_string());
        let interval = waitword_report::interval(ratio.interval);
        let interval = match &interval[..] {
            "" => String::new(),
            interval => format!(" ({interval})"),
        };
        text += &format!(
            "{:.2}{interval} {ours} to {best}: {}\n     {}\n",
            ratio.summary.median, cell.cell.id, cell.cell
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_ratio_stands_apart_from_its_neighbours() {
        for ratio in [0.004, 9.99, 99.99, 100.0, 24579.47, 172078.0, 1e9] {
            let cells = [ratio; 10].map(two);
            let line = glance_line(cells.clone());
            assert_eq!(line.split_whitespace().count(), 10, "{line}");
            assert!(line.starts_with(&cells[0]), "{line}");
        }
    }
}
