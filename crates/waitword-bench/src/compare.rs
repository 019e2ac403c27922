//! What has changed since an older run: `waitword bench --compare OLD.json`.
//!
//! Two runs are never of the same moment, and a machine is not as fast today as it was yesterday. So what is compared is not how
//! long something took but *how long by the baseline*, which was measured in the same rounds: a machine that has become
//! slower has made both slower. Of the baselines themselves the figures are compared as they are, and that is said: a change there is
//! one of the machine, the kernel or the C library.
//!
//! A change is told if the interval of the quotient new / old ([`interval_of_quotient`], 99 %) does
//! not have 1 in it, and does not lie within 5 % of it. Of a thousand
//! figures that have not changed, some are told all the same; so a change is believed if the next run has it, too.

use crate::harness::Better;
use crate::report::{CaseReport, MetricReport, Report, VariantReport};
use crate::stats::{Interval, Verdict, interval_of_quotient, median, ratios};
use std::collections::BTreeMap;

/// How one figure stands to that of the older run.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Of which workload.
    pub workload: String,
    /// Of which case.
    pub case: String,
    /// Whose figure.
    pub variant: String,
    /// Which figure; empty if the case has but one.
    pub metric: String,
    /// What both figures are ratios to; `None`: they are as measured.
    pub baseline: Option<String>,
    /// The older one: a median.
    pub old: f64,
    /// The newer one.
    pub new: f64,
    /// Of new / old; `None`: too few rounds in one of the runs.
    pub interval: Option<Interval>,
    /// Which way is the better one.
    pub better: Better,
}

/// Which way a figure has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// For the better.
    Better,
    /// For the worse.
    Worse,
    /// Nowhere: by less than 5 %.
    Same,
    /// That cannot be told.
    Undecided,
}

impl Change {
    /// New / old.
    pub fn factor(&self) -> f64 {
        self.new / self.old
    }

    /// Which way it has gone. A figure of which neither way is better has not gone anywhere.
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
    /// Figures that both have, those that have changed most first.
    pub changes: Vec<Change>,
    /// Figures that only one of them has.
    pub alone: usize,
    /// In what the machines differ: which line of the header, then and now.
    pub machine: Vec<(&'static str, String, String)>,
}

/// Sets a run beside an older one.
pub fn compare(old: &Report, new: &Report) -> Comparison {
    let (was, is) = (figures(old), figures(new));
    let alone = was.keys().filter(|key| !is.contains_key(*key)).count()
        + is.keys().filter(|key| !was.contains_key(*key)).count();
    let both = is
        .iter()
        .filter_map(|(key, new)| was.get(key).map(|old| (key, old, new)));
    let mut changes: Vec<Change> = both
        .filter_map(|(key, old, new)| key.change(old, new))
        .collect();
    let size = |change: &Change| change.factor().ln().abs();
    changes.sort_by(|one, other| size(other).total_cmp(&size(one)));
    let mut machine = Vec::new();
    for ((what, then), (_, now)) in old.machine.lines().into_iter().zip(new.machine.lines()) {
        // How fast it runs is measured anew each time, and a table of the kernel grows as it is used.
        let moves = [
            "pause instruction",
            "time-stamp counter",
            "private hash slots",
        ];
        if then != now && !moves.contains(&what) {
            machine.push((what, then, now));
        }
    }
    Comparison {
        changes,
        alone,
        machine,
    }
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

/// All figures of a run: as ratios where there is something to compare with.
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
    /// `None` if there is nothing to divide by or to divide.
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
