//! What must be reached, and whether it was.
//!
//! A bar takes in one or more cells of the report (a case's variant, in one metric), all of which must be met.
//! The one furthest from it is shown first. Nothing is averaged away, and a bar of which nothing was
//! measured says so.

mod list;

use crate::report::{CaseReport, MetricReport, VariantReport, WorkloadReport};
use crate::stats::Summary;
use list::{BARS, Bar, Figure};
use serde::Serialize;

/// How a bar stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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
#[derive(Clone, Debug, Serialize)]
pub struct CellReport {
    /// Which one.
    pub label: String,
    /// The ratio, or the value, over the rounds.
    pub figure: Summary,
    /// Whether the median, or what must hold in every round the greatest, is within the limit.
    pub met: bool,
}

/// One bar, judged.
#[derive(Clone, Debug, Serialize)]
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
            .flat_map(|case| self.cells(case))
            .collect();
        cells.sort_by(|a, b| b.figure.median.total_cmp(&a.figure.median));
        let at_least = self.figure == Figure::AtLeast;
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

    fn cells(&self, case: &CaseReport) -> Vec<CellReport> {
        let mut cells = Vec::new();
        for variant in &case.variants {
            if !self.variants.contains(&variant.name.as_str()) {
                continue;
            }
            for metric in &variant.metrics {
                if !self.metrics.is_empty() && !self.metrics.contains(&metric.name.as_str()) {
                    continue;
                }
                cells.extend(self.cell(case, variant, metric));
            }
        }
        cells
    }

    fn cell(
        &self,
        case: &CaseReport,
        variant: &VariantReport,
        metric: &MetricReport,
    ) -> Option<CellReport> {
        let figure = match self.figure {
            Figure::Ratio | Figure::AtLeast | Figure::EveryRatio => metric.ratio?,
            Figure::EveryValue => metric.summary,
        };
        let decides = match self.figure {
            Figure::Ratio | Figure::AtLeast => figure.median,
            Figure::EveryRatio | Figure::EveryValue => figure.max,
        };
        let met = match self.figure {
            Figure::AtLeast => decides >= self.limit,
            _ => decides <= self.limit,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Settings, workloads};
    use crate::usage::Usage;

    fn report(workload: &str, case: &str, variant: &str, ratio: &[f64]) -> WorkloadReport {
        let metric = MetricReport {
            name: String::new(),
            unit: "ns".to_owned(),
            values: ratio.to_vec(),
            summary: Summary::of(ratio).unwrap(),
            ratio: Summary::of(ratio),
        };
        WorkloadReport {
            name: workload.to_owned(),
            about: String::new(),
            error: None,
            cases: vec![CaseReport {
                name: case.to_owned(),
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
            let cases = (workload.cases)(&Settings::default());
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
