//! What must be reached, and whether it was: a row for each bar, by its worst figure.

use crate::number::{figure, interval, range};
use crate::table::INTERVAL;
use maud::{Markup, html};
use waitword_bench::bars::{BarReport, CellReport, Verdict, counted};

/// All bars.
pub(crate) fn section(bars: &[BarReport]) -> Markup {
    html! {
        @if bars.is_empty() {
            p { "Nothing that was measured has a bar." }
        } @else {
            p {
                "Of " (bars.len()) ": " (counted(bars)) ". "
                "Each is judged by the worst of its figures, which is shown: met if the whole interval is within the limit, "
                "not met if all of it lies beyond."
            }
            div.wide tabindex="0" {
                table.bars {
                    thead { tr {
                        th scope="col" { "what" }
                        th scope="col" {}
                        @for head in ["limit", "median", INTERVAL, "min–max", "of"] { th.n scope="col" { (head) } }
                        th scope="col" { "where it is worst" }
                    } }
                    tbody { @for bar in bars { (row(bar)) } }
                }
            }
        }
    }
}

fn row(bar: &BarReport) -> Markup {
    let verdict = bar.verdict.name();
    let class = verdict.replace(' ', "-");
    let worst = bar.cells.first();
    let others: Vec<&CellReport> = bar
        .cells
        .iter()
        .skip(1)
        .filter(|cell| cell.verdict != Verdict::Met)
        .collect();
    html! {
        tr {
            th scope="row" { (bar.what) }
            td class=(format!("verdict {class}")) { (verdict) }
            td.n { (if bar.at_least { "≥ " } else { "≤ " }) (figure(bar.limit)) }
            @if let Some(worst) = worst {
                td.n data-value=(worst.figure.median) { (figure(worst.figure.median)) }
                td.n.s { (interval(worst.interval)) }
                td.n.s { (range(worst.figure)) }
            } @else {
                td {} td {} td {}
            }
            td.n { @if worst.is_some() { (bar.cells.len()) } }
            td {
                @if let Some(worst) = worst { (worst.label) }
                @if !others.is_empty() {
                    details {
                        summary { (others.len()) " more not met for sure" }
                        ul { @for cell in others {
                            li { (cell.label) ": " (figure(cell.figure.median)) " (" (range(cell.figure)) ")" }
                        } }
                    }
                }
            }
        }
    }
}
