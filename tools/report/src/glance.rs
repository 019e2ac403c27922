//! What a visitor wants to know: the best lock for each case on this machine, and how ours compares
//! with it.

use crate::number::{figure, ratio_told};
use crate::table::{Cell, Table};
use maud::{Markup, html};
use waitword_bench::glance::{Entry, Row, glances};
use waitword_bench::report::Report;

/// How many places of a ranking are shown.
const NAMED: usize = 3;

/// A table for each patch: the first places and ours.
pub(crate) fn section(report: &Report) -> Markup {
    let glances = glances(report);
    html! {
        @if glances.is_empty() {
            p { "This run measured none of these cases." }
        } @else {
            p {
                "Medians: the three best contenders, and waitword's default with its place among \
                 all contenders. "
                "Ratio, CPU time and the 99.9th percentile of the waits are waitword's divided by \
                 the best peer's."
            }
        }
        @for glance in &glances {
            h3 { (glance.patch.title()) }
            (table(&glance.rows).markup())
        }
    }
}

/// A row for each case.
pub(crate) fn table(rows: &[Row<'_>]) -> Table {
    let mut table = Table::new(&[
        "case", "unit", "best", "second", "third", "waitword", "place", "ratio", "CPU", "p99.9",
    ]);
    table.rows = rows.iter().map(cells).collect();
    table
}

fn cells(row: &Row<'_>) -> Vec<Cell> {
    let mut cells = vec![Cell::text(row.label), Cell::text(row.unit)];
    for place in 0..NAMED {
        let entry = row.ranking.get(place);
        cells.push(entry.map_or(Cell::Empty, |entry| {
            Cell::Ranked(entry.name().to_owned(), figure(entry.value()))
        }));
    }
    let best = row.best();
    let quotient = |of: fn(&Entry<'_>) -> Option<f64>| {
        let both = of(&row.ours).zip(best.as_ref().and_then(of));
        both.map_or(Cell::Empty, |(ours, best)| Cell::Number(ours / best))
    };
    cells.extend([
        Cell::Number(row.ours.value()),
        Cell::Numbers(format!("{} of {}", row.place(), row.ranking.len())),
        row.to_best.map_or(Cell::Empty, |ratio| Cell::Numbers(ratio_told(&ratio, row.better))),
        quotient(|of| of.cpu()),
        quotient(|of| of.tail()),
    ]);
    cells
}
