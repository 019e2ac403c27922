//! Changes since an older run: `waitword bench --compare OLD.json`.
//!
//! Two runs are made at different times, and a machine is not equally fast every day. So the
//! comparison uses not the time itself but *the ratio to the baseline*, which was measured in the
//! same rounds: a slower machine slows both down. The baselines' own figures are compared directly,
//! and the output says so: a change there is a change of the machine, the kernel or the C library.
//!
//! A change is reported if the interval of the quotient new / old ([`interval_of_quotient`], 99 %)
//! does not include 1 and does not lie within 5 % of it. Of a thousand unchanged figures, expect
//! some false positives; so believe a change only if the next run shows it, too.

use crate::harness::Better;
use crate::report::{CaseReport, MetricReport, Report, VariantReport};
use crate::stats::{Interval, Verdict, interval_of_quotient, median, ratios};
use std::collections::BTreeMap;

/// One figure, compared with the older run.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Workload.
    pub workload: String,
    /// Case.
    pub case: String,
    /// Variant.
    pub variant: String,
    /// Metric; empty if the case has only one.
    pub metric: String,
    /// The variant that both figures are ratios to; `None` if they are absolute.
    pub baseline: Option<String>,
    /// Median of the older run.
    pub old: f64,
    /// Median of the newer run.
    pub new: f64,
    /// Interval of new / old; `None` if one of the runs has too few rounds.
    pub interval: Option<Interval>,
    /// Which direction is better.
    pub better: Better,
}

/// The direction of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Better.
    Better,
    /// Worse.
    Worse,
    /// Changed by less than 5 %.
    Same,
    /// No conclusion is possible.
    Undecided,
}

impl Change {
    /// New / old.
    pub fn factor(&self) -> f64 {
        self.new / self.old
    }

    /// The direction of the change. A figure of which neither direction is better counts as the
    /// same.
    pub fn direction(&self) -> Direction {
        let verdict = self.interval.map(Interval::verdict);
        match (verdict, self.better) {
            (Some(Verdict::Less), Better::Less) | (Some(Verdict::More), Better::More) => {
                Direction::Better
            }
            (Some(Verdict::More), Better::Less) | (Some(Verdict::Less), Better::More) => {
                Direction::Worse
            }
            (Some(Verdict::Same), _) | (_, Better::Neither) => Direction::Same,
            _ => Direction::Undecided,
        }
    }
}

/// Two runs, figure by figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Figures that both runs have, the largest changes first.
    pub changes: Vec<Change>,
    /// Number of figures that only one run has.
    pub alone: usize,
    /// Differences between the machines: the line of the header, its old and its new value.
    pub machine: Vec<(&'static str, String, String)>,
}

/// Compares a run with an older one.
pub fn compare(old: &Report, new: &Report) -> Comparison {
    let (was, is) = (figures(old), figures(new));
    let alone = was.keys().filter(|key| !is.contains_key(*key)).count()
        + is.keys().filter(|key| !was.contains_key(*key)).count();
    let both = is.iter().filter_map(|(key, new)| was.get(key).map(|old| (key, old, new)));
    let mut changes: Vec<Change> =
        both.filter_map(|(key, old, new)| key.change(old, new)).collect();
    let size = |change: &Change| change.factor().ln().abs();
    changes.sort_by(|one, other| size(other).total_cmp(&size(one)));
    let mut machine = Vec::new();
    for ((what, then), (_, now)) in old.machine.lines().into_iter().zip(new.machine.lines()) {
        // Speeds are measured again each time, and the kernel's table grows as it is used.
        let moves = ["pause instruction", "time-stamp counter", "private hash slots"];
        if then != now && !moves.contains(&what) {
            machine.push((what, then, now));
        }
    }
    Comparison { changes, alone, machine }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a> {
    workload: &'a str,
    case: &'a str,
    variant: &'a str,
    metric: &'a str,
    baseline: Option<&'a str>,
}

struct Rounds {
    values: Vec<f64>,
    better: Better,
}

/// All figures of a run, as ratios if there is a baseline.
fn figures(report: &Report) -> BTreeMap<Key<'_>, Rounds> {
    let mut figures = BTreeMap::new();
    for workload in &report.workloads {
        for case in &workload.cases {
            for variant in &case.variants {
                for (number, metric) in variant.metrics.iter().enumerate() {
                    let key = Key {
                        workload: &workload.name,
                        case: &case.name,
                        variant: &variant.name,
                        metric: &metric.name,
                        baseline: variant.baseline.as_deref(),
                    };
                    let values = relative(case, variant, number, metric);
                    let better = metric.better;
                    figures.insert(key, Rounds { values, better });
                }
            }
        }
    }
    figures
}

fn relative(
    case: &CaseReport,
    variant: &VariantReport,
    number: usize,
    metric: &MetricReport,
) -> Vec<f64> {
    let named = |name: &String| case.variants.iter().find(|other| other.name == *name);
    let baseline = variant.baseline.as_ref().and_then(named);
    let theirs = baseline.and_then(|baseline| baseline.metrics.get(number));
    match theirs {
        Some(theirs) if theirs.values.len() == metric.values.len() => {
            ratios(&metric.values, &theirs.values)
        }
        _ => metric.values.clone(),
    }
}

impl Key<'_> {
    /// `None` if the quotient is undefined.
    fn change(&self, old: &Rounds, new: &Rounds) -> Option<Change> {
        if old.values.is_empty() || new.values.is_empty() {
            return None;
        }
        let (was, is) = (median(&old.values), median(&new.values));
        let finite = (is / was).is_finite() && is != 0.0;
        finite.then(|| Change {
            workload: self.workload.to_owned(),
            case: self.case.to_owned(),
            variant: self.variant.to_owned(),
            metric: self.metric.to_owned(),
            baseline: self.baseline.map(str::to_owned),
            old: was,
            new: is,
            interval: interval_of_quotient(&new.values, &old.values),
            better: new.better,
        })
    }
}

#[cfg(test)]
mod tests;
