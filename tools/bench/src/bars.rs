//! The goals, and whether they were reached.
//!
//! A bar covers one or more cells of the report (a variant of a case, in one metric), and all of
//! them must meet its limit. The worst cell is shown first. Nothing is averaged away, and a bar
//! without any measurement is reported as such. A bar is *met* only if the whole interval of every
//! cell is within the limit, and *not met* only if the whole interval of some cell is beyond it.

mod list;

use crate::harness::{Better, CaseReport, MetricReport, VariantReport, WorkloadReport};
use crate::names::{is_ours, is_peer};
use crate::stats::{Interval, Summary, interval_of_median, ratios};
use core::cmp::Ordering;
use list::{BARS, Bar, Figure};
use serde::{Deserialize, Serialize};

/// Result of a bar or of one of its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// Every cell is within the limit.
    #[serde(rename = "met")]
    Met,
    /// At least one cell is beyond the limit.
    #[serde(rename = "not met")]
    NotMet,
    /// No cell is certainly beyond the limit, but not all are certainly within it.
    #[serde(rename = "undecided")]
    Undecided,
    /// There were too few rounds to decide.
    #[serde(rename = "too few rounds")]
    TooFewRounds,
    /// There is no figure to judge by.
    #[serde(rename = "not measured")]
    NotMeasured,
}

impl Verdict {
    /// All verdicts.
    pub const ALL: [Self; 5] =
        [Self::Met, Self::NotMet, Self::Undecided, Self::TooFewRounds, Self::NotMeasured];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::NotMet => "not met",
            Self::Undecided => "undecided",
            Self::TooFewRounds => "too few rounds",
            Self::NotMeasured => "not measured",
        }
    }
}

/// One cell of a bar.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellReport {
    /// Name of the cell.
    pub label: String,
    /// The ratio, or the value, over the rounds.
    pub figure: Summary,
    /// Interval of the median. `None` if there were too few rounds, or if every round must meet the
    /// limit.
    pub interval: Option<Interval>,
    /// Whether the interval is within the limit. If every round must meet the limit, the greatest
    /// value decides.
    pub verdict: Verdict,
}

/// One bar, judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BarReport {
    /// Name of the bar.
    pub what: String,
    /// The upper or lower limit.
    pub limit: f64,
    /// Whether it is a lower limit.
    pub at_least: bool,
    /// Whether the bar was met.
    pub verdict: Verdict,
    /// The cells, worst first.
    pub cells: Vec<CellReport>,
}

/// Counts the bars by verdict, as in `3 met, 1 undecided`.
pub fn counted(bars: &[BarReport]) -> String {
    let count = |verdict: Verdict| {
        let count = bars.iter().filter(|bar| bar.verdict == verdict).count();
        (count > 0).then(|| format!("{count} {}", verdict.name()))
    };
    let counts: Vec<String> = Verdict::ALL.into_iter().filter_map(count).collect();
    counts.join(", ")
}

/// Judges these workloads by all bars. Bars of other workloads are left out.
pub fn judge(workloads: &[WorkloadReport]) -> Vec<BarReport> {
    let reported = |bar: &&Bar| workloads.iter().any(|report| report.name == bar.workload);
    BARS.iter().filter(reported).map(|bar| bar.judge(workloads)).collect()
}

impl Bar {
    fn judge(&self, workloads: &[WorkloadReport]) -> BarReport {
        let mut cells: Vec<CellReport> = cases_of(workloads, self.workload)
            .filter(|case| self.case.iter().all(|part| case.name.contains(part)))
            .flat_map(|case| self.cells(workloads, case))
            .collect();
        cells.sort_by(|a, b| b.figure.median.total_cmp(&a.figure.median));
        let better = cases_of(workloads, self.workload)
            .flat_map(|case| &case.variants)
            .flat_map(|variant| &variant.metrics)
            .find(|metric| self.metrics.first().is_none_or(|name| metric.name == *name))
            .map_or(Better::Less, |metric| metric.better);
        let at_least = self.is_at_least(better);
        if at_least {
            cells.reverse();
        }
        let has = |verdict: Verdict| cells.iter().any(|cell| cell.verdict == verdict);
        let worst_first = [Verdict::NotMet, Verdict::TooFewRounds, Verdict::Undecided];
        let verdict = if cells.is_empty() {
            Verdict::NotMeasured
        } else {
            let verdict = worst_first.into_iter().find(|verdict| has(*verdict));
            verdict.unwrap_or(Verdict::Met)
        };
        BarReport { what: self.what.to_owned(), limit: self.limit, at_least, verdict, cells }
    }

    fn cells(&self, workloads: &[WorkloadReport], case: &CaseReport) -> Vec<CellReport> {
        let mut cells = Vec::new();
        for variant in &case.variants {
            if !self.variants.contains(&variant.name.as_str()) {
                continue;
            }
            for metric in &variant.metrics {
                if !self.metrics.is_empty() && !self.metrics.contains(&metric.name.as_str()) {
                    continue;
                }
                cells.extend(self.cell(workloads, case, variant, metric));
            }
        }
        cells
    }

    fn cell(
        &self,
        workloads: &[WorkloadReport],
        case: &CaseReport,
        variant: &VariantReport,
        metric: &MetricReport,
    ) -> Option<CellReport> {
        let values = match self.figure {
            Figure::Ratio | Figure::AtLeast | Figure::EveryRatio => {
                let ratio = metric.ratio?;
                return self.judged(case, variant, metric, ratio.summary, ratio.interval);
            }
            Figure::EveryValue | Figure::Value | Figure::ValueAtLeast => metric.values.clone(),
            Figure::ToLeastOf(peers) => {
                to_extreme(case, metric, |name| peers.contains(&name), f64::min)
            }
            Figure::ToMostOf(peers) => {
                to_extreme(case, metric, |name| peers.contains(&name), f64::max)
            }
            Figure::ToBest if metric.better == Better::More => {
                to_extreme(case, metric, is_any_peer, f64::max)
            }
            Figure::ToBest => to_extreme(case, metric, is_any_peer, f64::min),
            Figure::ToFastest(throughput) => {
                let fastest = variants_of(case, is_any_peer).max_by(|a, b| {
                    let speed = |variant| metric_of(variant, throughput).map(|m| m.summary.median);
                    speed(a).partial_cmp(&speed(b)).unwrap_or(Ordering::Equal)
                })?;
                same_rounds(metric, metric_of(fastest, &metric.name)?)
            }
            Figure::ToMetric(other) => same_rounds(metric, metric_of(variant, other)?),
            Figure::ToCase(part) => {
                let mut cases = cases_of(workloads, self.workload);
                let other = cases.find(|case| case.name.contains(part))?;
                let other = variants_of(other, |name| name == variant.name).next()?;
                same_rounds(metric, metric_of(other, &metric.name)?)
            }
        };
        let interval = interval_of_median(&values);
        self.judged(case, variant, metric, Summary::of(&values)?, interval)
    }

    fn judged(
        &self,
        case: &CaseReport,
        variant: &VariantReport,
        metric: &MetricReport,
        figure: Summary,
        interval: Option<Interval>,
    ) -> Option<CellReport> {
        if figure.median.is_nan() {
            return None;
        }
        let in_every_round = matches!(self.figure, Figure::EveryRatio | Figure::EveryValue);
        let interval = interval.filter(|_| !in_every_round);
        let verdict = if in_every_round {
            within(figure.max, figure.max, self.limit)
        } else {
            interval.map_or(Verdict::TooFewRounds, |interval| {
                if self.is_at_least(metric.better) {
                    within(-interval.low, -interval.high, -self.limit)
                } else {
                    within(interval.high, interval.low, self.limit)
                }
            })
        };
        let mut label = format!("{}: {}", variant.name, case.name);
        if !metric.name.is_empty() && self.metrics.len() != 1 {
            label = format!("{label}, {}", metric.name);
        }
        Some(CellReport { label, figure, interval, verdict })
    }
}

/// The verdict on a quantity between `best` and `worst` that may be at most `limit`.
fn within(worst: f64, best: f64, limit: f64) -> Verdict {
    if worst <= limit {
        Verdict::Met
    } else if best > limit {
        Verdict::NotMet
    } else {
        Verdict::Undecided
    }
}

/// Any lock of other projects that is in use today, including those that do more than ours.
fn is_any_peer(name: &str) -> bool {
    is_peer(name) || name.ends_with("PI") && !is_ours(name)
}

fn cases_of<'a>(
    workloads: &'a [WorkloadReport],
    name: &'a str,
) -> impl Iterator<Item = &'a CaseReport> {
    let named = move |workload: &&WorkloadReport| workload.name == name;
    workloads.iter().filter(named).flat_map(|workload| &workload.cases)
}

fn variants_of(
    case: &CaseReport,
    wanted: impl Fn(&str) -> bool,
) -> impl Iterator<Item = &VariantReport> {
    let named = move |variant: &&VariantReport| wanted(&variant.name);
    case.variants.iter().filter(named)
}

fn metric_of<'a>(variant: &'a VariantReport, name: &str) -> Option<&'a MetricReport> {
    variant.metrics.iter().find(|metric| metric.name == name)
}

/// The values of one metric divided by those of the other, for the rounds that both have.
fn same_rounds(metric: &MetricReport, other: &MetricReport) -> Vec<f64> {
    let both = metric.values.len().min(other.values.len());
    ratios(&metric.values[..both], &other.values[..both])
}

/// Each round's value divided by the extreme value that one of the `wanted` variants has in that
/// round.
fn to_extreme(
    case: &CaseReport,
    metric: &MetricReport,
    wanted: impl Fn(&str) -> bool,
    extreme: fn(f64, f64) -> f64,
) -> Vec<f64> {
    let others: Vec<&MetricReport> =
        variants_of(case, wanted).filter_map(|variant| metric_of(variant, &metric.name)).collect();
    let of_round = |(round, value): (usize, &f64)| {
        let values = others.iter().filter_map(|other| other.values.get(round));
        let extreme = values.copied().reduce(extreme)?;
        ratios(&[*value], &[extreme]).pop()
    };
    metric.values.iter().enumerate().filter_map(of_round).collect()
}

#[cfg(test)]
mod tests;
