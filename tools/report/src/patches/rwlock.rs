//! The rwlock's table: a row for each number of threads, as in the mail, with the old and the new
//! lock side by side.

use super::today::{Today, variants};
use super::wanted::cases;
use crate::published::{Mail, Threads};
use crate::table::{Cell, Head, Table};
use crate::workload::threads_and_kind;
use waitword_bench::locks::marked;
use waitword_bench::report::{CaseReport, MetricReport, Report, VariantReport};
use waitword_bench::stats::Ratio;
use waitword_bench::workload::rwlock;

/// The cases that do the mail's work: read sections with trivial work.
const KIND: &str = "no writes";
/// The mail's old lock, rebuilt.
const NPTL: &str = "nptl";

const LEAST: &str = "The mail shows the least of ten runs. The least of all rounds is in the \
                     tables of the workload rwlock.";

pub(super) fn today(report: &Report, published: &Mail<Threads>) -> Today {
    let of_threads = |threads: u32| {
        let is_it = move |case: &&CaseReport| {
            threads_and_kind(&case.name)
                .is_some_and(|(of, kind)| of == f64::from(threads) && kind == KIND)
        };
        cases(report, rwlock::WORKLOAD.name).find(is_it)
    };
    let rows: Vec<(u32, Option<&CaseReport>)> =
        published.rows.iter().map(|row| (row.0, of_threads(row.0))).collect();
    let measured = || rows.iter().filter_map(|(_, case)| *case);
    let names = variants(measured());
    let old = if names.contains(&NPTL) { Some(NPTL) } else { names.first().copied() };
    let mut heads = [vec![Head::over(1, "threads")], vec![Head::over(1, "")]];
    for name in &names {
        let has_gain = old != Some(name);
        heads[0].push(Head::over(2 + usize::from(has_gain), marked(name)));
        heads[1].push(Head::over(1, "ns/op"));
        heads[1].extend(has_gain.then(|| Head::over(1, "gain\u{a0}%")));
        heads[1].push(Head::over(1, "CPU"));
    }
    let row = |(threads, case): &(u32, Option<&CaseReport>)| {
        let cells = names.iter().flat_map(|name| cells(*case, name, old));
        [Cell::Numbers(threads.to_string())].into_iter().chain(cells).collect()
    };
    let missing: Vec<String> = rows
        .iter()
        .filter(|(_, case)| case.is_none())
        .map(|(threads, _)| threads.to_string())
        .collect();
    let threads = missing.join(",");
    Today {
        table: if names.is_empty() {
            Table::default()
        } else {
            Table { heads: heads.into(), rows: rows.iter().map(row).collect() }
        },
        notes: vec![LEAST.to_owned()],
        missing: if missing.is_empty() {
            Vec::new()
        } else {
            vec![format!(
                "{} threads (waitword bench rwlock --threads {threads})",
                missing.join(", ")
            )]
        },
    }
}

/// The time, the gain over the old lock's time, and the CPU time. The old lock itself has no gain.
fn cells(case: Option<&CaseReport>, variant: &str, old: Option<&str>) -> Vec<Cell> {
    let time_of = |name: &str| -> Option<&MetricReport> {
        let variant = case?.variants.iter().find(|of| of.name == name)?;
        variant.metrics.iter().find(|metric| metric.name == "time")
    };
    let time = time_of(variant);
    let mut cells = vec![time.map_or(Cell::Empty, |time| Cell::Number(time.summary.median))];
    if old != Some(variant) {
        let gain = time.zip(old.and_then(time_of)).and_then(|(time, old)| gain(time, old));
        cells.push(gain.map_or(Cell::Empty, Cell::Number));
    }
    let cpu = case
        .and_then(|case| case.variants.iter().find(|of| of.name == variant))
        .and_then(VariantReport::cpu);
    cells.push(cpu.map_or(Cell::Empty, |cpu| Cell::Number(cpu.summary.median)));
    cells
}

/// The gain in percent, from the rounds' ratios.
fn gain(time: &MetricReport, old: &MetricReport) -> Option<f64> {
    let are_pairs = time.values.len() == old.values.len();
    let ratio = are_pairs.then(|| Ratio::of(&time.values, &old.values))??;
    Some(100.0 * (1.0 - ratio.summary.median))
}

#[cfg(test)]
mod tests {
    use super::*;
    use waitword_bench::harness::Better;
    use waitword_bench::stats::Summary;

    #[test]
    fn the_gain_is_what_is_saved_round_by_round() {
        let time = |values: &[f64]| MetricReport {
            name: "time".to_owned(),
            unit: "ns/op".to_owned(),
            better: Better::Less,
            values: values.to_vec(),
            summary: Summary::of(values).unwrap(),
            ratio: None,
        };
        let old = time(&[100.0, 200.0, 400.0]);
        assert_eq!(gain(&time(&[25.0, 50.0, 400.0]), &old), Some(75.0));
        assert_eq!(gain(&time(&[200.0; 3]), &old), Some(0.0));
        assert_eq!(gain(&time(&[1.0]), &old), None);
    }
}
