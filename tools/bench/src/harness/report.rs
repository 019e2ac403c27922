//! The results of a workload and of its cases, as reports store them.

use super::metric::Better;
use crate::patch::Patch;
use crate::stats::{Ratio, Summary, all_infinite};
use crate::usage::Usage;
use serde::{Deserialize, Serialize};

/// The results of one workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkloadReport {
    /// Its name.
    pub name: String,
    /// One-sentence description.
    pub about: String,
    /// The patch whose table it reproduces.
    pub patch: Option<Patch>,
    /// The results.
    pub cases: Vec<CaseReport>,
    /// Cases that were not measured because something is not installed, and how to install it.
    pub missing: Vec<String>,
    /// Cases that were not measured because other processes used the machine.
    pub disturbed: Vec<String>,
    /// The error if the workload failed.
    pub error: Option<String>,
}

/// The results of one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseReport {
    /// Name of the case.
    pub name: String,
    /// Total time of the case.
    pub seconds: f64,
    /// Rounds that the figures are based on.
    pub rounds: usize,
    /// Rounds discarded and repeated because other load was seen.
    pub repeated: usize,
    /// Rounds kept on request although other load was seen.
    pub disturbed: usize,
    /// The variants.
    pub variants: Vec<VariantReport>,
}

/// The figures of one variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariantReport {
    /// Its name.
    pub name: String,
    /// The variant that the ratios refer to.
    pub baseline: Option<String>,
    /// One for each metric of the case.
    pub metrics: Vec<MetricReport>,
    /// CPU time per operation, round by round. Present if the case has no such metric of its own
    /// and the usage covers operations.
    pub cpu: Option<MetricReport>,
    /// Operations that the usage covers, all rounds together.
    pub operations: u64,
    /// CPU time and switches, all rounds together.
    pub usage: Usage,
}

/// Name of the metric for CPU time.
pub const CPU: &str = "CPU";

impl VariantReport {
    /// CPU time per operation: the case's own metric, or the one computed from the usage.
    pub fn cpu(&self) -> Option<&MetricReport> {
        let own = self.metrics.iter().find(|metric| metric.name == CPU);
        own.or(self.cpu.as_ref())
    }

    /// The 99.9th percentile of the wait.
    pub fn tail(&self) -> Option<&MetricReport> {
        let tails = ["wait p99.9", "write p99.9", "read p99.9"];
        tails.iter().find_map(|tail| self.metrics.iter().find(|metric| metric.name == *tail))
    }

    /// CPU nanoseconds, voluntary and involuntary context switches, each per operation; `None` if
    /// the usage does not cover any operations.
    pub fn per_operation(&self) -> Option<[f64; 3]> {
        let usage = self.usage;
        let operations = self.operations as f64;
        (self.operations > 0).then(|| {
            [
                usage.cpu_seconds * 1e9 / operations,
                usage.voluntary_switches as f64 / operations,
                usage.involuntary_switches as f64 / operations,
            ]
        })
    }
}

/// One metric of one variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricReport {
    /// Name; empty if the case has only one metric.
    pub name: String,
    /// For example `ns`.
    pub unit: String,
    /// Which of two values is better.
    pub better: Better,
    /// One value per round.
    #[serde(deserialize_with = "all_infinite")]
    pub values: Vec<f64>,
    /// Summary of the values.
    pub summary: Summary,
    /// The ratio of each round's value to the baseline's.
    pub ratio: Option<Ratio>,
}
