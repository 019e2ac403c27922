//! The page: its head, its table of contents, and the order of the sections.

use crate::anchor::Anchors;
use crate::looks::Looks;
use crate::workload::Placed;
use crate::{any, bars, glance, machine, patches, plot};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use waitword_bench::any::AnyReport;
use waitword_bench::report::Report;
use waitword_bench::workload::Patch;

const ABOUT: &str = "Futexes and locks of the kernel, other libraries and waitword, measured in \
                     one interleaved run. A ratio is the median of the rounds' ratios. “Same”: its \
                     interval lies within 5 % of 1. “Better”, “worse”: its interval lies on one \
                     side of 1. “Undecided”: neither.";
const STYLE: &str = include_str!("style.css");

/// The report as a self-contained page.
pub fn html(report: &Report) -> String {
    let looks = looks_of(report);
    let mut anchors = Anchors::default();
    let firsts = ["glance", "any", "machine", "bars"].map(|name| anchors.of(name));
    let [glance, any, machine, bars] = &firsts;
    let patches = Patch::ALL.map(|patch| (patch, anchors.of(&format!("patch {}", patch.title()))));
    let workloads = report.workloads.iter();
    let workloads: Vec<_> = workloads.map(|workload| Placed::new(workload, &mut anchors)).collect();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(&report.machine.cpu, &looks))
            body {
                (plot::keys(&looks))
                (contents(&first_links(report, &firsts), &patches, &workloads))
                main {
                    h1 { "waitword bench" }
                    p { (ABOUT) }
                    @for note in machine::notes(report) { p.note role="note" { (note) } }
                    section id=(glance) {
                        h2 { "Best lock for each case" }
                        (glance::section(report))
                    }
                    @if let Some(loads) = &report.any {
                        section id=(any) {
                            h2 { "Loads drawn at random" }
                            (any::section(loads, &looks))
                        }
                    }
                    section id=(machine) { h2 { "Measured on" } (machine::section(report)) }
                    section id=(bars) { h2 { "Goals" } (bars::section(&report.bars)) }
                    @for (patch, anchor) in &patches { (patches::section(*patch, anchor, report)) }
                    @for workload in &workloads { (workload.section(&looks)) }
                }
            }
        }
    };
    page.into_string()
}

/// A report of random loads alone, as a self-contained page.
pub fn any_html(report: &AnyReport) -> String {
    let looks = Looks::of(any::names(report));
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(&report.machine.cpu, &looks))
            body {
                (plot::keys(&looks))
                nav {}
                main {
                    h1 { "waitword bench any" }
                    section { h2 { "Loads drawn at random" } (any::section(report, &looks)) }
                    section { h2 { "Measured on" } dl {
                        @for (what, value) in report.machine.lines().into_iter()
                            .chain(report.origin.lines()) {
                            dt { (what) } dd { (value) }
                        }
                        dt { "measured" } dd { (machine::when(report.started)) }
                    } }
                }
            }
        }
    };
    page.into_string()
}

/// The looks of all variants, in the order of the report.
fn looks_of(report: &Report) -> Looks {
    let cases = report.workloads.iter().flat_map(|workload| &workload.cases);
    let variants = cases.flat_map(|case| &case.variants);
    let names = variants.map(|variant| variant.name.as_str());
    Looks::of(names.chain(report.any.iter().flat_map(any::names)))
}

fn head(cpu: &str, looks: &Looks) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { "waitword bench: " (cpu) }
            style { (PreEscaped(STYLE)) (PreEscaped(looks.style_sheet())) }
        }
    }
}

fn first_links<'a>(report: &Report, anchors: &'a [String; 4]) -> Vec<(&'a String, &'static str)> {
    let titles = ["Best lock for each case", "Loads drawn at random", "Measured on", "Goals"];
    let mut links: Vec<_> = anchors.iter().zip(titles).collect();
    if report.any.is_none() {
        links.remove(1);
    }
    links
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
            p { "All workloads" }
            ul { @for placed in workloads {
                li {
                    details {
                        summary { (link(&placed.anchor, &placed.workload.name)) }
                        ul { @for (case, anchor) in &placed.cases {
                            li { (link(anchor, &case.name)) }
                        } }
                    }
                }
            } }
        }
    }
}
