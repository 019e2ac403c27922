//! One case: the plots that fit its metrics, and all of its figures.
//!
//! | metrics | plot |
//! |---|---|
//! | `wait p50`, `wait p99` ... | a line over the percentiles, for each class of waits |
//! | `fairness`, `least`, `most` | bars of Jain's index, and the span between the least and the most served thread |
//! | any with a ratio | points with the interval of 99 %, against 1 |
//! | (every case of operations) | bars: CPU time and switches for each |

use crate::looks::Looks;
use crate::plot::axis::{Axis, Scale};
use crate::plot::{Caption, Figure, Line, Lines, Mark, Panel, Panels, Point, Row};
use crate::table::{Cell, FIGURES, Head, Table, figures};
use maud::{Markup, html};
use std::collections::HashSet;
use waitword_bench::report::{CaseReport, MetricReport, VariantReport};
use waitword_bench::stats::Ratio;

/// From so many metrics on, their medians stand in a table of their own, above that of everything.
const MANY: usize = 4;
/// Ratios that have room beside each other.
const MOST_PANELS: usize = 3;

pub(super) fn section(case: &CaseReport, anchor: &str, looks: &Looks) -> Markup {
    let figures: Vec<Figure> = [ratios(case), usage(case), fairness(case)]
        .into_iter()
        .flatten()
        .filter_map(|panels| panels.figure(looks))
        .chain(
            waits(case)
                .into_iter()
                .filter_map(|lines| lines.figure(looks)),
        )
        .collect();
    let most = case
        .variants
        .iter()
        .map(|variant| variant.metrics.len())
        .max()
        .unwrap_or(0);
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
            div.figures { @for figure in figures { (figure.markup(looks)) } }
        }
    }
}

fn rounds(case: &CaseReport) -> String {
    let mut text = format!("{} rounds", case.rounds);
    if case.repeated > 0 {
        text += &format!(
            "; {} more thrown away, because other load was seen",
            case.repeated
        );
    }
    if case.disturbed > 0 {
        text += &format!("; {} kept in spite of it", case.disturbed);
    }
    if let Some(baseline) = case
        .variants
        .iter()
        .find_map(|variant| variant.baseline.as_ref())
    {
        text += &format!("; ratios to {baseline}");
        let others = case
            .variants
            .iter()
            .filter_map(|variant| variant.baseline.as_ref());
        if others.into_iter().any(|other| other != baseline) {
            text += " and others, as named";
        }
    }
    text
}

/// A row for each variant and metric. What is the same for all has no column.
fn everything(case: &CaseReport) -> Table {
    let metrics = || case.variants.iter().flat_map(|variant| &variant.metrics);
    let named = metrics().any(|metric| !metric.name.is_empty());
    let baselines: HashSet<_> = case
        .variants
        .iter()
        .filter_map(|variant| variant.baseline.as_ref())
        .collect();
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
    let most = case
        .variants
        .iter()
        .map(|variant| variant.metrics.len())
        .max();
    for number in 0..most.unwrap_or(0) {
        let of_metric = case
            .variants
            .iter()
            .filter_map(|variant| Some(row(variant, variant.metrics.get(number)?)));
        table.rows.extend(of_metric);
    }
    table
}

/// A row for each variant, a column for the median of each metric.
fn medians(case: &CaseReport) -> Table {
    let metrics = case
        .variants
        .first()
        .map_or(&[][..], |first| &first.metrics);
    let heads = metrics.iter().map(|metric| {
        let unit = if metric.unit.is_empty() {
            String::new()
        } else {
            format!(" ({})", metric.unit)
        };
        Head::over(1, metric.name.clone() + &unit)
    });
    let row = |variant: &VariantReport| {
        let medians = variant
            .metrics
            .iter()
            .map(|metric| Cell::Number(metric.summary.median));
        [Cell::Variant(variant.name.clone())]
            .into_iter()
            .chain(medians)
            .collect()
    };
    Table {
        heads: vec![
            [Head::over(1, "median of")]
                .into_iter()
                .chain(heads)
                .collect(),
        ],
        rows: case.variants.iter().map(row).collect(),
    }
}

/// A ratio with its interval; with its range, if it is of too few rounds.
pub(super) fn point(ratio: &Ratio) -> Mark {
    let range = (ratio.summary.min, ratio.summary.max);
    let (low, high) = ratio
        .interval
        .map_or(range, |interval| (interval.low, interval.high));
    let at = ratio.summary.median;
    Mark::Point { at, low, high }
}

/// Each variant's ratio to its baseline; nothing of those that are a baseline.
fn ratios(case: &CaseReport) -> Option<Panels> {
    let compared: Vec<_> = case
        .variants
        .iter()
        .filter(|variant| variant.metrics.iter().any(|metric| metric.ratio.is_some()))
        .collect();
    let metrics = &compared.first()?.metrics;
    let panels = metrics
        .iter()
        .take(MOST_PANELS)
        .enumerate()
        .map(|(number, metric)| {
            let mark = |variant: &&VariantReport| {
                Some(point(variant.metrics.get(number)?.ratio.as_ref()?))
            };
            let name = if metric.name.is_empty() {
                &metric.unit
            } else {
                &metric.name
            };
            Panel {
                title: name.clone(),
                scale: Scale::Logarithmic,
                line: Some(1.0),
                marks: compared.iter().map(mark).collect(),
            }
        });
    let panels = panels.collect();
    let few = compared
        .iter()
        .flat_map(|variant| &variant.metrics)
        .any(|metric| metric.ratio.is_some_and(|ratio| ratio.interval.is_none()));
    let spread = if few {
        "range of the rounds (too few for an interval)"
    } else {
        "interval of 99 %"
    };
    Some(Panels {
        caption: Caption::new(
            "Ratio to the baseline",
            format!("logarithmic; median and {spread}"),
        ),
        rows: compared.iter().copied().map(Row::of).collect(),
        panels,
    })
}

/// A line over the percentiles for each class of waits that the metrics know.
fn waits(case: &CaseReport) -> Vec<Lines> {
    let metrics = case
        .variants
        .first()
        .map_or(&[][..], |first| &first.metrics);
    let mut classes: Vec<&str> = metrics
        .iter()
        .filter_map(|metric| metric.name.strip_suffix(" p50"))
        .collect();
    classes.dedup();
    classes
        .into_iter()
        .filter_map(|class| wait(case, class))
        .collect()
}

const PERCENTILES: [&str; 5] = ["p50", "p90", "p99", "p99.9", "max"];

fn wait(case: &CaseReport, class: &str) -> Option<Lines> {
    let find = |variant: &VariantReport, percentile: &str| -> Option<MetricReport> {
        let named = |metric: &&MetricReport| {
            metric
                .name
                .strip_prefix(class)
                .and_then(|rest| rest.strip_prefix(' '))
                == Some(percentile)
        };
        variant.metrics.iter().find(named).cloned()
    };
    let first = case.variants.first()?;
    let names: Vec<&str> = PERCENTILES
        .into_iter()
        .filter(|percentile| find(first, percentile).is_some())
        .collect();
    let unit = find(first, names.first()?)?.unit;
    let line = |variant: &VariantReport| Line {
        variant: variant.name.clone(),
        points: names
            .iter()
            .enumerate()
            .filter_map(|(place, percentile)| {
                let y = find(variant, percentile)?.summary;
                let x = place as f64;
                Some(Point { x, y })
            })
            .collect(),
    };
    Some(Lines {
        caption: Caption::new(
            format!("Distribution: {class}"),
            format!("{unit}, logarithmic; median, and from the least to the greatest round"),
        ),
        across: "percentile",
        x: Axis::of_names(&names),
        lines: case.variants.iter().map(line).collect(),
    })
}

/// Jain's index, and between which shares the threads lie.
fn fairness(case: &CaseReport) -> Option<Panels> {
    let median = |variant: &VariantReport, name: &str| {
        let metric = variant.metrics.iter().find(|metric| metric.name == name)?;
        Some(metric.summary.median)
    };
    let jain = |variant: &VariantReport| median(variant, "fairness").map(Mark::Bar);
    let share = |variant: &VariantReport| {
        let (low, high) = (median(variant, "least")?, median(variant, "most")?);
        Some(Mark::Span { low, high })
    };
    let mut panels = vec![Panel {
        title: "Jain's index".to_owned(),
        scale: Scale::Linear,
        line: Some(1.0),
        marks: case.variants.iter().map(jain).collect(),
    }];
    if case.variants.iter().any(|variant| share(variant).is_some()) {
        panels.push(Panel {
            title: "least to most / mean".to_owned(),
            scale: Scale::Linear,
            line: Some(1.0),
            marks: case.variants.iter().map(share).collect(),
        });
    }
    let any = panels[0].marks.iter().any(Option::is_some);
    any.then(|| Panels {
        caption: Caption::new("Fairness", "Jain's index, and the sections of the least and the most served thread; 1: all threads alike"),
        rows: case.variants.iter().map(Row::of).collect(),
        panels,
    })
}

/// CPU time and switches for an operation.
fn usage(case: &CaseReport) -> Option<Panels> {
    let costs: Vec<_> = case
        .variants
        .iter()
        .map(VariantReport::per_operation)
        .collect();
    let panel = |number: usize, title: &str| Panel {
        title: title.to_owned(),
        scale: Scale::Linear,
        line: None,
        marks: costs
            .iter()
            .map(|cost| cost.map(|all| Mark::Bar(all[number])))
            .collect(),
    };
    costs.iter().any(Option::is_some).then(|| Panels {
        caption: Caption::new(
            "For one operation",
            "CPU time and switches of the process, all rounds together",
        ),
        rows: case.variants.iter().map(Row::of).collect(),
        panels: vec![
            panel(0, "CPU, ns"),
            panel(1, "switches: slept"),
            panel(2, "switches: preempted"),
        ],
    })
}
