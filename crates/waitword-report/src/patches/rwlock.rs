//! The rwlock's table: a row for each number of threads, as in the mail, old and new lock side by side.

use super::Today;
use super::today::variants;
use super::wanted::cases;
use crate::published::{Mail, Threads};
use crate::table::{Cell, Head, Table};
use crate::workload::threads_and_kind;
use waitword_bench::report::{CaseReport, Report};
use waitword_bench::workload::rwlock;

/// The kind of cases whose work is the mail's: read sections of trivial work.
const KIND: &str = "no writes";

const LEAST: &str = "The mail shows the least of ten runs; the least of all rounds is in the tables of the workload rwlock.";

pub(super) fn today(report: &Report, published: &Mail<Threads>) -> Today {
    let of_threads = |threads: u32| {
        let is_it = move |case: &&CaseReport| {
            threads_and_kind(&case.name)
                .is_some_and(|(of, kind)| of == f64::from(threads) && kind == KIND)
        };
        cases(report, rwlock::WORKLOAD.name).find(is_it)
    };
    let rows: Vec<(u32, Option<&CaseReport>)> = published
        .rows
        .iter()
        .map(|row| (row.0, of_threads(row.0)))
        .collect();
    let measured = || rows.iter().filter_map(|(_, case)| *case);
    let names = variants(measured());
    let has_ratio = |name: &str| {
        let variants = measured().flat_map(|case| &case.variants);
        variants
            .filter(|variant| variant.name == name)
            .any(|variant| variant.baseline.is_some())
    };
    let columns: Vec<(&str, bool)> = names.iter().map(|name| (*name, has_ratio(name))).collect();
    let mut heads = [vec![Head::over(1, "threads")], vec![Head::over(1, "")]];
    for (name, has_ratio) in &columns {
        heads[0].push(Head::over(1 + usize::from(*has_ratio), *name));
        heads[1].push(Head::over(1, "ns/op"));
        heads[1].extend(has_ratio.then(|| Head::over(1, "gain\u{a0}%")));
    }
    let row = |(threads, case): &(u32, Option<&CaseReport>)| {
        let cells = columns
            .iter()
            .flat_map(|(name, has_ratio)| cells(*case, name, *has_ratio));
        [Cell::Numbers(threads.to_string())]
            .into_iter()
            .chain(cells)
            .collect()
    };
    let missing: Vec<String> = rows
        .iter()
        .filter(|(_, case)| case.is_none())
        .map(|(threads, _)| threads.to_string())
        .collect();
    let threads = missing.join(",");
    Today {
        table: if columns.is_empty() {
            Table::default()
        } else {
            Table {
                heads: heads.into(),
                rows: rows.iter().map(row).collect(),
            }
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

fn cells(case: Option<&CaseReport>, variant: &str, has_ratio: bool) -> Vec<Cell> {
    let variant = case.and_then(|case| case.variants.iter().find(|of| of.name == variant));
    let time =
        variant.and_then(|variant| variant.metrics.iter().find(|metric| metric.name == "time"));
    let mut cells = vec![time.map_or(Cell::Empty, |time| Cell::Number(time.summary.median))];
    if has_ratio {
        let ratio = time.and_then(|time| time.ratio);
        cells.push(ratio.map_or(Cell::Empty, |ratio| {
            Cell::Number(100.0 * (1.0 - ratio.summary.median))
        }));
    }
    cells
}
