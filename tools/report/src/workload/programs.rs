//! Whole programs: a row for each, plain and on the drop-in side by side.
//!
//! Each program is a case of its own with a unit of its own. Only the ratios can be shown together.

use super::plots::point;
use crate::looks::Looks;
use crate::plot::axis::Scale;
use crate::plot::{Caption, Figure, Panel, Panels, Row};
use crate::table::{Cell, INTERVAL, Table, ratio};
use waitword_bench::locks::is_ours;
use waitword_bench::report::{CaseReport, MetricReport, VariantReport};

/// The metrics whose ratios are shown.
const RATIOS: [&str; 3] = ["throughput", "CPU", "switches"];

/// One program, run both ways.
struct Program<'a> {
    name: &'a str,
    plain: &'a VariantReport,
    ours: &'a VariantReport,
}

/// The programs that were run both ways.
fn programs(cases: &[CaseReport]) -> Vec<Program<'_>> {
    let mut programs = Vec::new();
    for case in cases {
        if let [plain, ours] = &case.variants[..]
            && is_ours(&ours.name)
        {
            let name = &case.name;
            programs.push(Program { name, plain, ours });
        }
    }
    programs
}

fn metric<'a>(variant: &'a VariantReport, name: &str) -> Option<&'a MetricReport> {
    variant.metrics.iter().find(|metric| metric.name == name)
}

/// A row for each program.
pub(crate) fn table(cases: &[CaseReport]) -> Table {
    let head = [
        "program",
        "unit",
        "plain",
        "waitword",
        "ratio",
        INTERVAL,
        "min–max",
        "",
        "CPU ratio",
        "switches ratio",
        "same output, bytes",
    ];
    let mut table = Table::new(&head);
    table.rows = programs(cases).iter().map(row).collect();
    table
}

fn row(program: &Program<'_>) -> Vec<Cell> {
    let Program { name, plain, ours } = program;
    let median = |variant, name| {
        metric(variant, name).map_or(Cell::Empty, |metric| Cell::Number(metric.summary.median))
    };
    let ratio_of = |name| {
        let ratio = metric(ours, name).and_then(|metric| metric.ratio);
        ratio.map_or(Cell::Empty, |ratio| Cell::Number(ratio.summary.median))
    };
    let throughput = metric(ours, "throughput");
    let mut row = vec![
        Cell::text(*name),
        Cell::text(throughput.map_or("", |metric| &metric.unit)),
        median(plain, "throughput"),
        median(ours, "throughput"),
    ];
    row.extend(
        throughput.map_or([const { Cell::Empty }; 4], |metric| {
            ratio(metric.ratio.as_ref(), metric.better)
        }),
    );
    row.extend([ratio_of("CPU"), ratio_of("switches"), median(ours, "output compared")]);
    row
}

/// The plot of all programs' ratios.
pub(super) fn figure(cases: &[CaseReport], looks: &Looks) -> Option<Figure> {
    let programs = programs(cases);
    let panel = |name: &&str| Panel {
        title: (*name).to_owned(),
        scale: Scale::Logarithmic,
        line: Some(1.0),
        marks: programs
            .iter()
            .map(|program| Some(point(metric(program.ours, name)?.ratio.as_ref()?)))
            .collect(),
    };
    let panels: Vec<_> = RATIOS.iter().map(panel).collect();
    let row = |program: &Program<'_>| Row {
        name: program.name.to_owned(),
        variant: program.ours.name.clone(),
    };
    let rows = programs.iter().map(row).collect();
    let caption = Caption::new(
        "Programs on waitword: ratio to the plain program",
        "logarithmic; median and interval. More throughput is better, and less CPU time and \
         switches",
    );
    Panels { caption, rows, panels }.figure(looks)
}
