//! What must be reached, and whether it was: a row for each bar, by its worst figure.

use crate::number::{figure, range};
use maud::{Markup, html};
use waitword_bench::bars::{BarReport, CellReport, Verdict};

/// All bars.
pub(crate) fn section(bars: &[BarReport]) -> Markup {
    let count = |verdict| bars.iter().filter(|bar| bar.verdict == verdict).count();
    html! {
        @if bars.is_empty() {
            p { "Nothing that was measured has a bar." }
        } @else {
            p {
                (count(Verdict::Met)) " of " (bars.len()) " met, " (count(Verdict::NotMet)) " not met, "
                (count(Verdict::NotMeasured)) " not measured. "
                "Each is judged by the worst of its figures, which is shown."
            }
            div.wide tabindex="0" {
                table.bars {
                    thead { tr {
                        th scope="col" { "what" }
                        th scope="col" {}
                        @for head in ["limit", "median", "min–max", "of"] { th.n scope="col" { (head) } }
                        th scope="col" { "where it is worst" }
                    } }
                    tbody { @for bar in bars { (row(bar)) } }
                }
            }
        }
    }
}

fn row(bar: &BarReport) -> Markup {
    let (verdict, class) = match bar.verdict {
        Verdict::Met => ("met", "met"),
        Verdict::NotMet => ("not met", "not-met"),
        Verdict::NotMeasured => ("not measured", "not-measured"),
    };
    let worst = bar.cells.first();
    let others: Vec<&CellReport> = bar.cells.iter().skip(1).filter(|cell| !cell.met).collect();
    html! {
        tr {
            th scope="row" { (bar.what) }
            td class=(format!("verdict {class}")) { (verdict) }
            td.n { (if bar.at_least { "≥ " } else { "≤ " }) (figure(bar.limit)) }
            @if let Some(worst) = worst {
                td.n data-value=(worst.figure.median) { (figure(worst.figure.median)) }
                td.n.s { (range(worst.figure)) }
            } @else {
                td {} td {}
            }
            td.n { @if worst.is_some() { (bar.cells.len()) } }
            td {
                @if let Some(worst) = worst { (worst.label) }
                @if !others.is_empty() {
                    details {
                        summary { (others.len()) " more not met" }
                        ul { @for cell in others {
                            li { (cell.label) ": " (figure(cell.figure.median)) " (" (range(cell.figure)) ")" }
                        } }
                    }
                }
            }
        }
    }
}
