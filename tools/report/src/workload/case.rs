//! One case: its tables, and below them the plots that fit its metrics.

use super::plots;
use crate::looks::Looks;
use crate::table::{Cell, FIGURES, Head, Table, figures};
use maud::{Markup, html};
use std::collections::HashSet;
use waitword_bench::report::{CaseReport, MetricReport, VariantReport};

/// With at least so many metrics, the medians have a table of their own above the complete table.
const MANY: usize = 4;

pub(super) fn section(case: &CaseReport, anchor: &str, looks: &Looks) -> Markup {
    let metrics = |variant: &VariantReport| variant.metrics.len();
    let most = case.variants.iter().map(metrics).max().unwrap_or(0);
    html! {
        section.case id=(anchor) {
            h3 { (case.name) a.self href=(format!("#{anchor}")) aria-label="link" { "#" } }
            p.s { (rounds(case)) }
            @if most >= MANY {
                (medians(case).markup())
                details { summary { "all figures" } (everything(case).markup()) }
            } @else {
                (everything(case).markup())
            }
            div.figures { @for figure in plots::of(case, looks) { (figure.markup(looks)) } }
        }
    }
}

fn rounds(case: &CaseReport) -> String {
    let plural = if case.rounds == 1 { "" } else { "s" };
    let mut text = format!("{} round{plural}", case.rounds);
    if case.repeated > 0 {
        text += &format!("; {} more discarded because of other load", case.repeated);
    }
    if case.disturbed > 0 {
        text += &format!("; {} kept on request despite other load", case.disturbed);
    }
    if let Some(baseline) = case.variants.iter().find_map(|variant| variant.baseline.as_ref()) {
        text += &format!("; ratios to {baseline}");
        let others = case.variants.iter().filter_map(|variant| variant.baseline.as_ref());
        if others.into_iter().any(|other| other != baseline) {
            text += " and other baselines, as named";
        }
    }
    text
}

/// The metrics, plus CPU time if it is not one of them.
fn figures_of(variant: &VariantReport) -> Vec<&MetricReport> {
    variant.metrics.iter().chain(&variant.cpu).collect()
}

/// A row for each variant and metric. Names and baselines have a column only if they differ.
fn everything(case: &CaseReport) -> Table {
    let metrics = || case.variants.iter().flat_map(figures_of);
    let named = metrics().any(|metric| !metric.name.is_empty());
    let baselines: HashSet<_> =
        case.variants.iter().filter_map(|variant| variant.baseline.as_ref()).collect();
    let several = baselines.len() > 1;
    let mut head = vec!["variant"];
    head.extend(named.then_some("figure"));
    head.push("unit");
    head.extend(FIGURES);
    head.extend(several.then_some("ratio to"));
    let row = |variant: &VariantReport, metric: &MetricReport| {
        let mut row = vec![Cell::Variant(variant.name.clone())];
        row.extend(named.then(|| Cell::text(&metric.name)));
        row.push(Cell::text(&metric.unit));
        row.extend(figures(metric));
        row.extend(several.then(|| Cell::text(variant.baseline.clone().unwrap_or_default())));
        row
    };
    let mut table = Table::new(&head);
    let most = case.variants.iter().map(|variant| figures_of(variant).len());
    for number in 0..most.max().unwrap_or(0) {
        let of_metric = case
            .variants
            .iter()
            .filter_map(|variant| Some(row(variant, figures_of(variant).get(number)?)));
        table.rows.extend(of_metric);
    }
    table
}

/// A row for each variant, a column for the median of each metric.
fn medians(case: &CaseReport) -> Table {
    let metrics = case.variants.first().map_or(&[][..], |first| &first.metrics);
    let heads = metrics.iter().map(|metric| {
        let unit =
            if metric.unit.is_empty() { String::new() } else { format!(" ({})", metric.unit) };
        Head::over(1, metric.name.clone() + &unit)
    });
    let row = |variant: &VariantReport| {
        let medians = variant.metrics.iter().map(|metric| Cell::Number(metric.summary.median));
        [Cell::Variant(variant.name.clone())].into_iter().chain(medians).collect()
    };
    Table {
        heads: vec![[Head::over(1, "median of")].into_iter().chain(heads).collect()],
        rows: case.variants.iter().map(row).collect(),
    }
}
