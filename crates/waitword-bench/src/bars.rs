//! What must be reached, and whether it was.
//!
//! A bar takes in one or more cells of the report (a case's variant, in one metric), all of which must be met.
//! The one furthest from it is shown first. Nothing is averaged away, and a bar of which nothing was
//! measured says so.

mod list;

use crate::report::{CaseReport, MetricReport, VariantReport, WorkloadReport};
use crate::stats::Summary;
use core::cmp::Ordering;
use list::{BARS, Bar, Figure};
use serde::{Deserialize, Serialize};

/// How a bar stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// Every cell is within the limit.
    #[serde(rename = "met")]
    Met,
    /// At least one is not.
    #[serde(rename = "not met")]
    NotMet,
    /// There is no figure to judge by.
    #[serde(rename = "not measured")]
    NotMeasured,
}

/// One cell of a bar.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellReport {
    /// Which one.
    pub label: String,
    /// The ratio, or the value, over the rounds.
    pub figure: Summary,
    /// Whether the median, or what must hold in every round the greatest, is within the limit.
    pub met: bool,
}

/// One bar, judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BarReport {
    /// What must be reached.
    pub what: String,
    /// At most this, or at least.
    pub limit: f64,
    /// Whether it is a least.
    pub at_least: bool,
    /// Whether it was.
    pub verdict: Verdict,
    /// By which figures, the worst first.
    pub cells: Vec<CellReport>,
}

/// Holds these figures against all bars. Bars of workloads that are not among them are left out.
pub fn judge(workloads: &[WorkloadReport]) -> Vec<BarReport> {
    let reported = |bar: &&Bar| workloads.iter().any(|report| report.name == bar.workload);
    BARS.iter()
        .filter(reported)
        .map(|bar| bar.judge(workloads))
        .collect()
}

impl Bar {
    fn judge(&self, workloads: &[WorkloadReport]) -> BarReport {
        let mut cells: Vec<CellReport> = workloads
            .iter()
            .filter(|workload| workload.name == self.workload)
            .flat_map(|workload| &workload.cases)
            .filter(|case| self.case.iter().all(|part| case.name.contains(part)))
            .flat_map(|case| self.cells(workloads, case))
            .collect();
        cells.sort_by(|a, b| b.figure.median.total_cmp(&a.figure.median));
        let at_least = self.figure.is_at_least();
        if at_least {
            cells.reverse();
        }
        let verdict = match &cells[..] {
            [] => Verdict::NotMeasured,
            cells if cells.iter().all(|cell| cell.met) => Verdict::Met,
            _ => Verdict::NotMet,
        };
        BarReport {
            what: self.what.to_owned(),
            limit: self.limit,
            at_least,
            verdict,
            cells,
        }
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
        let figure = match self.figure {
            Figure::Ratio | Figure::AtLeast | Figure::EveryRatio => metric.ratio?.summary,
            Figure::EveryValue | Figure::Value | Figure::ValueAtLeast => metric.summary,
            Figure::ToLeastOf(peers) => to_extreme(case, metric, peers, f64::min)?,
            Figure::ToMostOf(peers) => to_extreme(case, metric, peers, f64::max)?,
            Figure::ToFastestOf(peers, throughput) => {
                let fastest = variants_of(case, peers).max_by(|a, b| {
                    let speed = |variant| metric_of(variant, throughput).map(|m| m.summary.median);
                    speed(a).partial_cmp(&speed(b)).unwrap_or(Ordering::Equal)
                })?;
                ratio(metric, metric_of(fastest, &metric.name)?)?
            }
            Figure::ToMetric(other) => ratio(metric, metric_of(variant, other)?)?,
            Figure::ToCase(part) => {
                let cases = workloads.iter().filter(|w| w.name == self.workload);
                let mut cases = cases.flat_map(|workload| &workload.cases);
                let other = cases.find(|case| case.name.contains(part))?;
                let same = [variant.name.as_str()];
                let other = variants_of(other, &same).next()?;
                ratio(metric, metric_of(other, &metric.name)?)?
            }
        };
        let decides = match self.figure {
            Figure::EveryRatio | Figure::EveryValue => figure.max,
            _ => figure.median,
        };
        let met = if self.figure.is_at_least() {
            decides >= self.limit
        } else {
            decides <= self.limit
        };
        if figure.median.is_nan() {
            return None;
        }
        let mut label = format!("{}: {}", variant.name, case.name);
        if !metric.name.is_empty() && self.metrics.len() != 1 {
            label = format!("{label}, {}", metric.name);
        }
        Some(CellReport { label, figure, met })
    }
}

fn variants_of<'a>(
    case: &'a CaseReport,
    names: &'a [&str],
) -> impl Iterator<Item = &'a VariantReport> {
    let named = |variant: &&VariantReport| names.contains(&variant.name.as_str());
    case.variants.iter().filter(named)
}

fn metric_of<'a>(variant: &'a VariantReport, name: &str) -> Option<&'a MetricReport> {
    variant.metrics.iter().find(|metric| metric.name == name)
}

/// Of each round's value to the other's.
fn ratio(metric: &MetricReport, other: &MetricReport) -> Option<Summary> {
    let pairs = metric.values.iter().zip(&other.values);
    Summary::of(
        &pairs
            .map(|(value, other)| value / other)
            .collect::<Vec<_>>(),
    )
}

/// Of each round's value to the least or the most that one of these variants has in that round.
fn to_extreme(
    case: &CaseReport,
    metric: &MetricReport,
    names: &[&str],
    extreme: fn(f64, f64) -> f64,
) -> Option<Summary> {
    let others: Vec<&MetricReport> = variants_of(case, names)
        .filter_map(|variant| metric_of(variant, &metric.name))
        .collect();
    let ratios = metric
        .values
        .iter()
        .enumerate()
        .filter_map(|(round, value)| {
            let values = others.iter().filter_map(|other| other.values.get(round));
            values.copied().reduce(extreme).map(|other| value / other)
        });
    Summary::of(&ratios.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Better;
    use crate::run::{Settings, workloads};
    use crate::stats::Ratio;
    use crate::usage::Usage;

    fn report(workload: &str, case: &str, variant: &str, ratio: &[f64]) -> WorkloadReport {
        let metric = MetricReport {
            name: String::new(),
            unit: "ns".to_owned(),
            values: ratio.to_vec(),
            summary: Summary::of(ratio).unwrap(),
            better: Better::Less,
            ratio: Ratio::of(ratio, &vec![1.0; ratio.len()]),
        };
        WorkloadReport {
            missing: Vec::new(),
            name: workload.to_owned(),
            about: String::new(),
            patch: None,
            error: None,
            cases: vec![CaseReport {
                name: case.to_owned(),
                seconds: 0.0,
                rounds: ratio.len(),
                repeated: 0,
                disturbed: 0,
                variants: vec![VariantReport {
                    name: variant.to_owned(),
                    baseline: None,
                    metrics: vec![metric],
                    operations: 0,
                    usage: Usage::default(),
                }],
            }],
        }
    }

    #[test]
    fn the_median_decides_and_the_worst_cell_comes_first() {
        let case = "wait, wrong value, private, one word";
        let mut good = report("calls", case, "waitword 8", &[0.01, 0.02, 0.9]);
        let bad = report("calls", case, "waitword 64", &[0.06, 0.06, 0.01]);
        let bar = |reports: &[WorkloadReport]| judge(reports).remove(0);
        assert_eq!(bar(&[good.clone()]).verdict, Verdict::Met);
        good.cases.extend(bad.cases);
        let judged = bar(&[good]);
        assert_eq!(judged.verdict, Verdict::NotMet);
        assert_eq!(judged.cells[0].figure.median, 0.06);
        assert!(judged.cells[1].met);
    }

    #[test]
    fn memory_must_suffice_in_every_round() {
        let judged = judge(&[report(
            "memory",
            "after 16 threads",
            "waitword",
            &[0.7, 0.7, 1.4],
        )]);
        assert_eq!(judged[0].verdict, Verdict::NotMet);
    }

    #[test]
    fn where_more_is_better_the_least_is_the_worst() {
        let bar = Bar {
            what: "throughput",
            limit: 1.0,
            figure: Figure::AtLeast,
            workload: "mutex",
            case: &["L = 5,"],
            variants: &["waitword", "waitword, other"],
            metrics: &[],
        };
        let mut all = report("mutex", "t = 2, L = 5, D = 1", "waitword", &[1.5]);
        assert_eq!(bar.judge(&[all.clone()]).verdict, Verdict::Met);
        let worse = report("mutex", "t = 64, L = 5, D = 1", "waitword, other", &[0.9]);
        all.cases.extend(worse.cases);
        let judged = bar.judge(&[all]);
        assert!(judged.at_least && judged.verdict == Verdict::NotMet);
        assert_eq!(judged.cells[0].figure.median, 0.9);
        assert!(judged.cells[1].met);
    }

    #[test]
    fn peers_are_the_best_in_each_round_or_the_fastest_over_all() {
        let case = "t = 2, L = 5, D = 1";
        let mut all = report("mutex", case, "waitword", &[100.0, 100.0, 100.0]);
        for (peer, values) in [("std", [50.0, 200.0, 90.0]), ("glibc", [80.0, 80.0, 80.0])] {
            let peer = report("mutex", case, peer, &values).cases.remove(0);
            all.cases[0].variants.extend(peer.variants);
        }
        let mut bar = Bar {
            what: "throughput",
            limit: 0.97,
            figure: Figure::ToMostOf(&["std", "glibc"]),
            workload: "mutex",
            case: &[],
            variants: &["waitword"],
            metrics: &[],
        };
        let figure = |bar: &Bar| bar.judge(std::slice::from_ref(&all)).cells[0].figure;
        // 100 to 80, 200 and 90.
        assert_eq!((figure(&bar).min, figure(&bar).max), (0.5, 1.25));
        bar.figure = Figure::ToLeastOf(&["std", "glibc"]);
        assert_eq!((figure(&bar).min, figure(&bar).max), (1.25, 2.0));
        // std's median is 90, glibc's 80.
        bar.figure = Figure::ToFastestOf(&["std", "glibc"], "");
        assert_eq!(figure(&bar).median, 100.0 / 90.0);
        bar.figure = Figure::ToCase("t = 2");
        assert_eq!(figure(&bar).median, 1.0);
    }

    #[test]
    fn what_was_not_measured_is_not_met_silently() {
        let other = report("calls", "some other case", "waitword 8", &[0.0]);
        assert!(
            judge(&[other])
                .iter()
                .all(|bar| bar.verdict == Verdict::NotMeasured)
        );
        assert!(judge(&[]).is_empty());
    }

    /// A bar whose names do not fit the workload's would never be measured.
    #[test]
    fn every_bar_has_a_case() {
        for bar in BARS {
            let workload = workloads()
                .iter()
                .find(|workload| workload.name == bar.workload)
                .unwrap();
            let mut cases = (workload.cases)(&Settings::default());
            let full = Settings {
                full: true,
                ..Settings::default()
            };
            cases.extend((workload.cases)(&full));
            let fits = |case: &crate::harness::Case| {
                let named = |part: &&str| case.name.contains(*part);
                bar.case.iter().all(named)
                    && (bar.metrics.is_empty()
                        || case
                            .metrics
                            .iter()
                            .any(|metric| bar.metrics.contains(&metric.name)))
            };
            // "two CPUs" is not there on a machine with one.
            let two_cpus = bar.case.contains(&"two CPUs");
            assert!(two_cpus || cases.iter().any(fits), "{bar:?}");
        }
    }
}
