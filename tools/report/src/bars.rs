//! The goals and whether they are met: a row for each goal, with its worst figure.

use crate::number::{figure, interval, range};
use crate::table::INTERVAL;
use maud::{Markup, html};
use waitword_bench::bars::{BarReport, CellReport, Verdict, counted};

/// All goals.
pub(crate) fn section(bars: &[BarReport]) -> Markup {
    html! {
        @if bars.is_empty() {
            p { "No goal applies to this run." }
        } @else {
            p {
                "Of " (bars.len()) " goals: " (counted(bars)) ". "
                "Each goal is judged by its worst figure, which is shown. It is met if the whole \
                 interval is within the limit, and not met if the whole interval lies beyond the \
                 limit."
            }
            div.wide tabindex="0" {
                table.bars {
                    thead { tr {
                        th scope="col" { "goal" }
                        th scope="col" {}
                        @for head in ["limit", "median", INTERVAL, "min–max", "of"] {
                            th.n scope="col" { (head) }
                        }
                        th scope="col" { "worst case" }
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
    let others: Vec<&CellReport> =
        bar.cells.iter().skip(1).filter(|cell| cell.verdict != Verdict::Met).collect();
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
                        summary { (others.len()) " more not certainly met" }
                        ul { @for cell in others {
                            li {
                                (cell.label) ": " (figure(cell.figure.median))
                                " (" (range(cell.figure)) ")"
                            }
                        } }
                    }
                }
            }
        }
    }
}
