//! Today's table: a row for each variant, a group of columns for each row of the mail.

use crate::number::ratio_told;
use crate::table::{Cell, Head, Table};
use waitword_bench::harness::Better;
use waitword_bench::locks::{is_ours, is_peer};
use waitword_bench::report::{CaseReport, MetricReport, VariantReport};

/// Today's table, with its notes.
pub(crate) struct Today {
    pub(crate) table: Table,
    pub(crate) notes: Vec<String>,
    /// The rows that are missing, and how to measure them.
    pub(crate) missing: Vec<String>,
}

/// One row of the mail: the case that corresponds to it, and the figures that are shown.
pub(super) struct Column<'a> {
    pub(super) head: String,
    /// `None` if the case was not measured.
    pub(super) case: Option<&'a CaseReport>,
    /// How the case differs from the mail.
    pub(super) note: Option<String>,
    pub(super) figures: Vec<Figure>,
    /// The arguments of `waitword bench` that measure the case.
    pub(super) how: &'static str,
}

/// One figure of a case.
pub(super) struct Figure {
    /// The heading, with the unit.
    pub(super) head: &'static str,
    pub(super) metric: &'static str,
    /// The factor that converts the metric to that unit.
    pub(super) scale: f64,
    /// Whether the ratio is shown beside it.
    pub(super) ratio: bool,
}

impl Column<'_> {
    fn width(&self) -> usize {
        let figures = self.figures.iter();
        let figures: usize = figures.map(|figure| 1 + usize::from(figure.ratio)).sum();
        figures + 1 + usize::from(self.has_tail())
    }

    fn has_tail(&self) -> bool {
        let variants = self.case.iter().flat_map(|case| &case.variants);
        variants.into_iter().any(|variant| variant.tail().is_some())
    }

    fn heads(&self) -> impl Iterator<Item = Head> {
        let figures = self.figures.iter().flat_map(|figure| {
            let ratio = figure.ratio.then(|| Head::over(1, "ratio"));
            [Head::over(1, figure.head)].into_iter().chain(ratio)
        });
        let tail = self.has_tail().then(|| Head::over(1, "p99.9, µs"));
        figures.chain([Head::over(1, "CPU, ns/op")]).chain(tail)
    }

    fn cells(&self, variant: &str) -> Vec<Cell> {
        let variant = self.case.and_then(|case| case.variants.iter().find(|of| of.name == variant));
        let median = |metric: Option<&MetricReport>, scale: f64| {
            metric.map_or(Cell::Empty, |metric| Cell::Number(metric.summary.median * scale))
        };
        let mut cells: Vec<Cell> =
            self.figures.iter().flat_map(|figure| figure.cells(variant)).collect();
        cells.push(median(variant.and_then(VariantReport::cpu), 1.0));
        if self.has_tail() {
            cells.push(median(variant.and_then(VariantReport::tail), 1e-3));
        }
        cells
    }
}

impl Figure {
    fn cells(&self, variant: Option<&VariantReport>) -> Vec<Cell> {
        let metric = variant
            .and_then(|variant| variant.metrics.iter().find(|metric| metric.name == self.metric));
        let mut cells = vec![
            metric.map_or(Cell::Empty, |metric| Cell::Number(metric.summary.median * self.scale)),
        ];
        if self.ratio {
            let ratio = metric.and_then(|metric| metric.ratio);
            let better = metric.map_or(Better::Neither, |metric| metric.better);
            cells
                .push(ratio.map_or(Cell::Empty, |ratio| Cell::Numbers(ratio_told(&ratio, better))));
        }
        cells
    }
}

/// The variants' names: the baselines first, then the old and kernel-only variants, then ours, then
/// the peers.
pub(super) fn variants<'a>(cases: impl Iterator<Item = &'a CaseReport>) -> Vec<&'a str> {
    let mut names: Vec<(u8, &str)> = Vec::new();
    for variant in cases.flat_map(|case| &case.variants) {
        let rank = match &variant.name {
            _ if variant.baseline.is_none() => 0,
            name if is_ours(name) => 2,
            name if is_peer(name) && !name.starts_with("futex(2)") => 3,
            _ => 1,
        };
        if names.iter().all(|(_, name)| *name != variant.name) {
            names.push((rank, &variant.name));
        }
    }
    names.sort_by_key(|(rank, _)| *rank);
    names.into_iter().map(|(_, name)| name).collect()
}

/// Builds the table from these columns.
pub(super) fn of(columns: Vec<Column<'_>>) -> Today {
    let missing = columns.iter().filter(|column| column.case.is_none());
    let missing =
        missing.map(|column| format!("{} (waitword bench {})", column.head, column.how)).collect();
    let notes = columns.iter().filter_map(|column| column.note.clone()).collect();
    let columns: Vec<_> = columns.into_iter().filter(|column| column.case.is_some()).collect();
    let groups = columns.iter().map(|column| Head::over(column.width(), column.head.as_str()));
    let name = || [Head::over(1, "")].into_iter();
    let rows =
        variants(columns.iter().filter_map(|column| column.case)).into_iter().map(|variant| {
            let cells = columns.iter().flat_map(|column| column.cells(variant));
            [Cell::Variant(variant.to_owned())].into_iter().chain(cells).collect()
        });
    let table = if columns.is_empty() {
        Table::default()
    } else {
        Table {
            heads: vec![
                name().chain(groups).collect(),
                name().chain(columns.iter().flat_map(Column::heads)).collect(),
            ],
            rows: rows.collect(),
        }
    };
    Today { table, notes, missing }
}
