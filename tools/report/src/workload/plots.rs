//! The plots of a case, chosen by its metrics.
//!
//! | metrics | plot |
//! |---|---|
//! | any with a ratio | points with their interval, relative to 1 |
//! | (every case with operations) | bars: CPU time and switches per operation |
//! | `fairness`, `least`, `most` | bars of Jain's index, and the span from `least` to `most` |
//! | `wait p50`, `wait p99` ... | a line over the percentiles, for each class of waits |

use crate::looks::Looks;
use crate::plot::axis::{Axis, Scale};
use crate::plot::{Caption, Figure, Line, Lines, Mark, Panel, Panels, Point, Row};
use waitword_bench::report::{CaseReport, MetricReport, VariantReport};
use waitword_bench::stats::Ratio;

/// The number of ratios that fit side by side.
const MOST_PANELS: usize = 3;

/// All plots that have something to draw.
pub(super) fn of(case: &CaseReport, looks: &Looks) -> Vec<Figure> {
    let panels = [ratios(case), usage(case), fairness(case)].into_iter().flatten();
    let panels = panels.filter_map(|panels| panels.figure(looks));
    let waits = waits(case).into_iter().filter_map(|lines| lines.figure(looks));
    panels.chain(waits).collect()
}

/// A ratio with its interval, or with its range if there are too few rounds for an interval.
pub(super) fn point(ratio: &Ratio) -> Mark {
    let range = (ratio.summary.min, ratio.summary.max);
    let (low, high) = ratio.interval.map_or(range, |interval| (interval.low, interval.high));
    let at = ratio.summary.median;
    Mark::Point { at, low, high }
}

/// Each variant's ratio to its baseline. The baselines themselves are left out.
fn ratios(case: &CaseReport) -> Option<Panels> {
    let compared: Vec<_> = case
        .variants
        .iter()
        .filter(|variant| variant.metrics.iter().any(|metric| metric.ratio.is_some()))
        .collect();
    let metrics = &compared.first()?.metrics;
    let panels = metrics.iter().take(MOST_PANELS).enumerate().map(|(number, metric)| {
        let mark =
            |variant: &&VariantReport| Some(point(variant.metrics.get(number)?.ratio.as_ref()?));
        let name = if metric.name.is_empty() { &metric.unit } else { &metric.name };
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
    let spread = if few { "range of the rounds (too few for an interval)" } else { "interval" };
    Some(Panels {
        caption: Caption::new("Ratio to the baseline", format!("logarithmic; median and {spread}")),
        rows: compared.iter().copied().map(Row::of).collect(),
        panels,
    })
}

/// A plot over the percentiles for each class of waits in the metrics.
fn waits(case: &CaseReport) -> Vec<Lines> {
    let metrics = case.variants.first().map_or(&[][..], |first| &first.metrics);
    let mut classes: Vec<&str> =
        metrics.iter().filter_map(|metric| metric.name.strip_suffix(" p50")).collect();
    classes.dedup();
    classes.into_iter().filter_map(|class| wait(case, class)).collect()
}

const PERCENTILES: [&str; 5] = ["p50", "p90", "p99", "p99.9", "max"];

fn wait(case: &CaseReport, class: &str) -> Option<Lines> {
    let find = |variant: &VariantReport, percentile: &str| -> Option<MetricReport> {
        let name = format!("{class} {percentile}");
        let named = |metric: &&MetricReport| metric.name == name;
        variant.metrics.iter().find(named).cloned()
    };
    let first = case.variants.first()?;
    let names: Vec<&str> =
        PERCENTILES.into_iter().filter(|percentile| find(first, percentile).is_some()).collect();
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
            format!("{unit}, logarithmic; median, and range of the rounds"),
        ),
        across: "percentile",
        x: Axis::of_names(&names),
        lines: case.variants.iter().map(line).collect(),
    })
}

/// Jain's index, and the range of the threads' shares.
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
        caption: Caption::new(
            "Fairness",
            "Jain's index, and the sections of the least and the most served thread; \
             1: all threads equal",
        ),
        rows: case.variants.iter().map(Row::of).collect(),
        panels,
    })
}

/// CPU time and switches per operation.
fn usage(case: &CaseReport) -> Option<Panels> {
    let costs: Vec<_> = case.variants.iter().map(VariantReport::per_operation).collect();
    let panel = |number: usize, title: &str| Panel {
        title: title.to_owned(),
        scale: Scale::Linear,
        line: None,
        marks: costs.iter().map(|cost| cost.map(|all| Mark::Bar(all[number]))).collect(),
    };
    costs.iter().any(Option::is_some).then(|| Panels {
        caption: Caption::new(
            "Per operation",
            "CPU time and context switches of the process, all rounds together",
        ),
        rows: case.variants.iter().map(Row::of).collect(),
        panels: vec![
            panel(0, "CPU, ns"),
            panel(1, "switches: slept"),
            panel(2, "switches: preempted"),
        ],
    })
}
