//! The page: its head, its contents, and the order of things.

use crate::anchor::Anchors;
use crate::looks::Looks;
use crate::workload::Placed;
use crate::{bars, machine, patches, plot};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use waitword_bench::report::Report;
use waitword_bench::workload::Patch;

const ABOUT: &str = "Futexes and locks: the kernel's, other libraries' and waitword's, measured in one interleaved run. A ratio is the median of \
     the rounds' ratios. “Same”: the interval in which it lies is within 5 % of 1. “Better”, “worse”: it is on one side of 1. “Undecided”: neither.";
const STYLE: &str = include_str!("style.css");

/// The report as a page, complete in itself.
pub fn html(report: &Report) -> String {
    let looks = Looks::of(report);
    let mut anchors = Anchors::default();
    let [machine, bars] = ["machine", "bars"].map(|name| anchors.of(name));
    let patches = Patch::ALL.map(|patch| (patch, anchors.of(&format!("patch {}", patch.title()))));
    let workloads = report.workloads.iter();
    let workloads: Vec<_> = workloads
        .map(|workload| Placed::new(workload, &mut anchors))
        .collect();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "waitword bench: " (report.machine.cpu) }
                style { (PreEscaped(STYLE)) (PreEscaped(looks.style_sheet())) }
            }
            body {
                (plot::keys(&looks))
                (contents(&[(&machine, "Measured on"), (&bars, "What must be reached")], &patches, &workloads))
                main {
                    h1 { "waitword bench" }
                    p { (ABOUT) }
                    section id=(machine) { h2 { "Measured on" } (machine::section(report)) }
                    section id=(bars) { h2 { "What must be reached" } (bars::section(&report.bars)) }
                    @for (patch, anchor) in &patches { (patches::section(*patch, anchor, report)) }
                    @for workload in &workloads { (workload.section(&looks)) }
                }
            }
        }
    };
    page.into_string()
}

fn contents(
    first: &[(&String, &str)],
    patches: &[(Patch, String)],
    workloads: &[Placed<'_>],
) -> Markup {
    let link = |anchor: &str, text: &str| html! { a href=(format!("#{anchor}")) { (text) } };
    html! {
        nav aria-label="Contents" {
            ul { @for (anchor, text) in first { li { (link(anchor, text)) } } }
            p { "The five patches, then and now" }
            ul { @for (patch, anchor) in patches { li { (link(anchor, patch.title())) } } }
            p { "Every workload" }
            ul { @for placed in workloads {
                li {
                    details {
                        summary { (link(&placed.anchor, &placed.workload.name)) }
                        ul { @for (case, anchor) in &placed.cases { li { (link(anchor, &case.name)) } } }
                    }
                }
            } }
        }
    }
}
