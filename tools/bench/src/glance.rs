//! A report at a glance: for the topic of each patch, ours, the best peer and the baseline;
//! also the rows of README.
//!
//! The cases were chosen before anything was measured. For each patch they are those that its mail
//! measured, with the smallest and the greatest number of threads of a usual run. Wins and losses
//! are shown alike: a case is shown if it was measured.

mod list;

use crate::harness::Better;
use crate::names::{is_ours, is_peer};
use crate::patch::Patch;
use crate::report::{CaseReport, MetricReport, Report, VariantReport};
use crate::standing::is_as_shipped;
use crate::stats::Ratio;
use list::{Chosen, OF_FUTEXES, OF_LOCKS, chosen};

/// Our variant in a case that has several: the first of these that it has.
const OURS: &[&str] =
    &["waitword", "waitword, readers first", "waitword 32, spin on", "waitword 32"];

/// The rows of one patch.
#[derive(Clone, Debug, PartialEq)]
pub struct Glance<'a> {
    /// The patch.
    pub patch: Patch,
    /// One row per case.
    pub rows: Vec<Row<'a>>,
}

/// One case.
#[derive(Clone, Debug, PartialEq)]
pub struct Row<'a> {
    /// A short label.
    pub label: &'static str,
    /// Workload.
    pub workload: &'a str,
    /// Case.
    pub case: &'a str,
    /// Unit of the metric.
    pub unit: &'a str,
    /// Which of two values is better.
    pub better: Better,
    /// Our default variant.
    pub ours: Entry<'a>,
    /// All peers in use today and ours, best first.
    pub ranking: Vec<Entry<'a>>,
    /// glibc, or the kernel's futex.
    pub baseline: Option<Entry<'a>>,
    /// The ratio of ours to the best peer.
    pub to_best: Option<Ratio>,
}

/// One contender in a case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry<'a> {
    variant: &'a VariantReport,
    metric: &'a MetricReport,
}

impl<'a> Entry<'a> {
    fn new(variant: &'a VariantReport, metric: &str) -> Option<Self> {
        let metric = variant.metrics.iter().find(|of| of.name == metric)?;
        let is_number = metric.summary.median.is_finite();
        is_number.then_some(Self { variant, metric })
    }

    /// Name of the variant.
    pub fn name(&self) -> &'a str {
        &self.variant.name
    }

    /// The median.
    pub fn value(&self) -> f64 {
        self.metric.summary.median
    }

    /// CPU time per operation.
    pub fn cpu(&self) -> Option<f64> {
        self.variant.cpu().map(|metric| metric.summary.median)
    }

    /// 99.9th percentile of the wait.
    pub fn tail(&self) -> Option<f64> {
        self.variant.tail().map(|metric| metric.summary.median)
    }
}

impl<'a> Row<'a> {
    /// The best peer.
    pub fn best(&self) -> Option<Entry<'a>> {
        let others = |entry: &&Entry<'_>| !is_ours(entry.name());
        self.ranking.iter().find(others).copied()
    }

    /// The rank of ours, from 1.
    pub fn place(&self) -> usize {
        let before = |entry: &&Entry<'_>| entry.name() != self.ours.name();
        1 + self.ranking.iter().take_while(before).count()
    }
}

/// The glances of all patches with at least one measured case.
pub fn glances(report: &Report) -> Vec<Glance<'_>> {
    let all = Patch::ALL.into_iter().map(|patch| Glance {
        patch,
        rows: chosen(patch).iter().filter_map(|chosen| row(report, chosen)).collect(),
    });
    all.filter(|glance| !glance.rows.is_empty()).collect()
}

/// The locks' rows in README.
pub fn of_locks(report: &Report) -> Vec<Row<'_>> {
    OF_LOCKS.iter().filter_map(|chosen| row(report, chosen)).collect()
}

/// The futexes' rows in README.
pub fn of_futexes(report: &Report) -> Vec<Row<'_>> {
    OF_FUTEXES.iter().filter_map(|chosen| row(report, chosen)).collect()
}

fn row<'a>(report: &'a Report, (label, workload, parts, metric): &Chosen) -> Option<Row<'a>> {
    let workload = report.workloads.iter().find(|of| of.name == *workload)?;
    let named = |case: &&CaseReport| parts.iter().all(|part| case.name.contains(part));
    let case = workload.cases.iter().find(named)?;
    let entries = || case.variants.iter().filter_map(|of| Entry::new(of, metric));
    let ours = OURS.iter().find_map(|name| entries().find(|entry| entry.name() == *name))?;
    let is_ranked = |entry: &Entry<'_>| {
        is_peer(entry.name()) || is_as_shipped(entry.name()) && entry.name() == ours.name()
    };
    let mut ranking: Vec<Entry<'a>> = entries().filter(is_ranked).collect();
    let better = ours.metric.better;
    ranking.sort_by(|one, other| {
        let order = one.value().total_cmp(&other.value());
        match better {
            Better::More => order.reverse(),
            Better::Less | Better::Neither => order,
        }
    });
    let mut row = Row {
        label,
        workload: &workload.name,
        case: &case.name,
        unit: &ours.metric.unit,
        better,
        ours,
        ranking,
        baseline: entries().find(|entry| ["glibc", "futex(2)"].contains(&entry.name())),
        to_best: None,
    };
    row.to_best = row.best().and_then(|best| {
        let (mine, theirs) = (&ours.metric.values, &best.metric.values);
        let both = mine.len().min(theirs.len());
        Ratio::of(&mine[..both], &theirs[..both])
    });
    Some(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use crate::workload::workloads;

    /// A row whose names match no case of its workload would never be shown.
    #[test]
    fn every_row_has_a_case_and_its_figure() {
        let patches = Patch::ALL.map(chosen);
        let fit = patches.iter().all(|rows| rows.len() <= 6);
        assert!(fit, "the terminal has no room for more");
        for rows in patches.into_iter().chain([OF_LOCKS, OF_FUTEXES]) {
            for (label, name, parts, metric) in rows {
                assert!(label.len() <= 30, "{label}");
                let workload = workloads().iter().find(|workload| workload.name == *name);
                let workload = workload.unwrap_or_else(|| panic!("{name}"));
                let full = Settings { full: true, ..Settings::default() };
                let mut cases = (workload.cases)(&Settings::default());
                cases.extend((workload.cases)(&full));
                let fits = |case: &crate::harness::Case| {
                    parts.iter().all(|part| case.name.contains(part))
                        && case.metrics.iter().any(|of| of.name == *metric)
                };
                let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
                let two_cpus = parts.iter().any(|part| part.contains("two CPUs"));
                assert!(two_cpus || cases.iter().any(fits), "{name} {parts:?} {metric}: {names:?}");
            }
        }
    }
}
