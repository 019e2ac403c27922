//! A workload: curves over the number of threads, and each case with its plots and its table.

mod case;
pub(crate) mod curves;
mod plots;
mod programs;

pub(crate) use curves::threads_and_kind;
pub(crate) use programs::table as programs_table;

use crate::anchor::Anchors;
use crate::looks::Looks;
use maud::{Markup, html};
use waitword_bench::report::{CaseReport, WorkloadReport};

const PROGRAMS: &str = waitword_bench::workload::programs::WORKLOAD.name;

/// A workload, with the anchors of itself and its cases on the page.
pub(crate) struct Placed<'a> {
    pub(crate) workload: &'a WorkloadReport,
    pub(crate) anchor: String,
    pub(crate) cases: Vec<(&'a CaseReport, String)>,
}

impl<'a> Placed<'a> {
    pub(crate) fn new(workload: &'a WorkloadReport, anchors: &mut Anchors) -> Self {
        let anchor = anchors.of(&workload.name);
        let of_case =
            |case: &'a CaseReport| (case, anchors.of(&format!("{}: {}", workload.name, case.name)));
        Self { workload, anchor, cases: workload.cases.iter().map(of_case).collect() }
    }

    pub(crate) fn section(&self, looks: &Looks) -> Markup {
        let workload = self.workload;
        let curves = curves::of(&workload.cases).into_iter();
        let curves: Vec<_> = curves.filter_map(|curve| curve.figure(looks)).collect();
        html! {
            section.workload id=(self.anchor) {
                h2 {
                    (workload.name)
                    a.self href=(format!("#{}", self.anchor)) aria-label="link" { "#" }
                }
                p { (workload.about) "." }
                @if let Some(patch) = workload.patch { p.s { "Patch: " (patch.title()) "." } }
                @if let Some(error) = &workload.error { p.note role="note" { "Failed: " (error) } }
                @for what in &workload.disturbed {
                    p.note role="note" { "Not measured (other load): " (what) }
                }
                @for what in &workload.missing {
                    p.note role="note" { "Not measured (not installed): " (what) }
                }
                @if !curves.is_empty() {
                    div.figures { @for curve in &curves { (curve.markup(looks)) } }
                }
                @if workload.name == PROGRAMS {
                    (programs::table(&workload.cases).markup())
                    @if let Some(figure) = programs::figure(&workload.cases, looks) {
                        (figure.markup(looks))
                    }
                }
                @for (case, anchor) in &self.cases { (case::section(case, anchor, looks)) }
            }
        }
    }
}
