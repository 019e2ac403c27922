//! What the book shows of the stored reports: pictures, and the figures of the five patches then
//! and now. The book's pages ask for them by name, and the build fails if there is no such thing,
//! so no figure in it is older than the reports.
//!
//! A picture is a `figure` in HTML, in placeholders (see the front page), without line breaks, as
//! Markdown demands of HTML. Below each picture and table are the reports that it comes from.

mod then_and_now;

use crate::looks::Looks;
use crate::machine;
use crate::plot::{Caption, Dot, Figure, Lines, Scatter, keys};
use crate::publish::{Results, Run, source};
use crate::workload::curves;
use maud::html;
use waitword_bench::locks::is_peer;
use waitword_bench::report::{CaseReport, MetricReport, Report, VariantReport};

/// One picture that a page asks for: the kind and its arguments, separated by `|`.
struct Wish<'a> {
    kind: &'a str,
    arguments: Vec<&'a str>,
}

impl<'a> Wish<'a> {
    fn of(text: &'a str) -> Self {
        let mut parts = text.split('|').map(str::trim);
        Self { kind: parts.next().unwrap_or_default(), arguments: parts.collect() }
    }
}

impl Results {
    /// A picture, and below it the report that it comes from. `wish` is one of
    ///
    /// * `scatter | WORKLOAD | CASE | METRIC ACROSS | METRIC UP | CAPTION`
    /// * `curve | WORKLOAD | KIND OF CASES | CAPTION`
    ///
    /// # Errors
    /// There is no such picture; the text says what is missing.
    pub fn picture(&self, wish: &str, root: &str) -> Result<String, String> {
        let all = self.merged().ok_or("there are no reports")?;
        let looks = looks(&all);
        let Wish { kind, arguments } = Wish::of(wish);
        let (figure, cases) = match (kind, &arguments[..]) {
            ("scatter", [workload, case, across, up, caption]) => {
                let case = cases(&all, workload)
                    .find(|of| of.name == *case)
                    .ok_or_else(|| format!("{workload} has no case `{case}`"))?;
                (scatter(case, across, up, caption, &looks)?, vec![case.name.clone()])
            }
            ("curve", [workload, kind, caption]) => {
                let all: Vec<CaseReport> = cases(&all, workload).cloned().collect();
                let of_kind = |case: &&CaseReport| {
                    curves::threads_and_kind(&case.name).is_some_and(|(_, of)| of == *kind)
                };
                let chosen: Vec<CaseReport> = all.iter().filter(of_kind).map(present).collect();
                let names = chosen.iter().map(|case| case.name.clone()).collect();
                (curve(&chosen, caption, &looks).ok_or_else(|| format!("no `{kind}`"))?, names)
            }
            _ => return Err(format!("`{wish}` is no picture")),
        };
        let mut text = figure.markup(&looks).into_string().replace('\n', " ") + "\n";
        for run in self.runs_with(arguments[0], &cases) {
            text += &self.source_of(run, root);
        }
        Ok(text)
    }

    /// What a page with pictures needs once: the style of each variant, and its key.
    pub fn picture_keys(&self) -> Option<String> {
        let all = self.merged()?;
        let looks = looks(&all);
        let keys = keys(&looks).into_string();
        Some(html! { style { (maud::PreEscaped(looks.style_sheet())) } }.into_string() + &keys)
            .map(|text| text.replace('\n', " ") + "\n")
    }

    /// The figures of one patch, as published and as measured here. `patch` is `requeue`,
    /// `wake-op`, `private`, `wide` or `throughput`.
    ///
    /// # Errors
    /// There is no such patch, or a case was not measured.
    pub fn then_and_now(&self, patch: &str, root: &str) -> Result<String, String> {
        let all = self.merged().ok_or("there are no reports")?;
        let then_and_now::Both { text, workload, cases } = then_and_now::of(patch, &all)?;
        let sources = self.runs_with(workload, &cases).map(|run| self.source_of(run, root));
        Ok(text + &sources.collect::<String>())
    }

    /// The reports that the cases of this workload come from: for each the first that has it.
    fn runs_with<'a>(
        &'a self,
        workload: &'a str,
        names: &'a [String],
    ) -> impl Iterator<Item = &'a Run> {
        let has =
            move |run: &Run, name: &str| cases(&run.report, workload).any(|case| case.name == name);
        let is_first = move |run: &Run, name: &String| {
            let first = self.runs.iter().find(|run| has(run, name));
            first.is_some_and(|first| first.file == run.file)
        };
        self.runs.iter().filter(move |run| names.iter().any(|name| is_first(run, name)))
    }

    fn source_of(&self, run: &Run, root: &str) -> String {
        let report = &run.report;
        source(
            root,
            &run.file,
            &report.origin,
            &report.machine,
            report.started,
            report.rounds,
            machine::few(report.rounds, report.rounds_to_publish()),
        )
    }
}

fn looks(all: &Report) -> Looks {
    let cases = all.workloads.iter().flat_map(|workload| &workload.cases);
    Looks::of(cases.flat_map(|case| &case.variants).map(|variant| variant.name.as_str()))
}

fn cases<'a>(report: &'a Report, workload: &'a str) -> impl Iterator<Item = &'a CaseReport> {
    let of_name = report.workloads.iter().filter(move |of| of.name == workload);
    of_name.flat_map(|workload| &workload.cases)
}

/// Whether a picture shows this variant: not the historical ones, nor those that differ from
/// another one only by the way in which they are called.
fn is_shown(name: &str) -> bool {
    let is_called_otherwise = name.starts_with("C++ std") || name.starts_with("drop-in");
    !is_called_otherwise
        && !name.starts_with("futex(2)")
        && !name.starts_with("best ")
        && (is_peer(name) || name.contains("PI") || name.starts_with("waitword"))
}

/// The case with the variants that a picture shows.
fn present(case: &CaseReport) -> CaseReport {
    let mut case = case.clone();
    case.variants.retain(|variant| is_shown(&variant.name));
    case
}

fn metric<'a>(variant: &'a VariantReport, name: &str) -> Option<&'a MetricReport> {
    variant.metrics.iter().find(|metric| metric.name == name)
}

/// A caption; what else a reader must know comes after `;`.
fn caption(text: &str) -> Caption {
    let (what, how) = text.split_once(';').unwrap_or((text, ""));
    Caption::new(what.trim(), how.trim())
}

fn scatter(
    case: &CaseReport,
    across: &str,
    up: &str,
    text: &str,
    looks: &Looks,
) -> Result<Figure, String> {
    let case = present(case);
    let first = case.variants.first().ok_or("no variants")?;
    let title = |name: &str| {
        let unit = &metric(first, name).ok_or_else(|| format!("there is no `{name}`"))?.unit;
        Ok::<_, String>(match unit.as_str() {
            "" => name.to_owned(),
            "ns" => format!("{name}, ms"),
            unit => format!("{name}, {unit}"),
        })
    };
    // Waits are milliseconds in the picture: nobody reads nanoseconds with seven digits.
    let summary = |variant: &VariantReport, name: &str| {
        let metric = metric(variant, name)?;
        Some(if metric.unit == "ns" { metric.summary.scaled(1e-6) } else { metric.summary })
    };
    let dot = |variant: &VariantReport| {
        Some(Dot {
            variant: variant.name.clone(),
            x: summary(variant, across)?,
            y: summary(variant, up)?,
        })
    };
    let scatter = Scatter {
        caption: caption(text),
        across: title(across)?,
        up: title(up)?,
        dots: case.variants.iter().filter_map(dot).collect(),
    };
    scatter.figure(looks).ok_or_else(|| "nothing can be drawn".to_owned())
}

fn curve(cases: &[CaseReport], text: &str, looks: &Looks) -> Option<Figure> {
    let lines = curves::of(cases).into_iter().next()?;
    Lines { caption: caption(text), ..lines }.figure(looks)
}
