//! The report of a run, and its JSON.
//!
//! # The JSON schema, version 2
//!
//! One object. Every *summary* is `{"median": x, "min": x, "max": x}` over the rounds. A *ratio* has these too, and
//! `"interval": {"low": x, "high": x}` (99 %, see [`Ratio`]; `null` of too few rounds) and `"verdict": "less"|"same"|"more"|"too few
//! rounds"`. Fields may be added under the same version; the meaning of one that is there changes only with the version.
//!
//! ```text
//! {
//!   "schema": 2,
//!   "version": "0.1.0",                  of waitword
//!   "started": 1767225600,               seconds since 1970
//!   "seconds": 71.5,                     how long the run took
//!   "complete": true,                    false: stopped, or a workload failed
//!   "rounds": 7,                         rounds asked for
//!   "machine": { "cpu": "...", "cpus_allowed": 2, "cpus_online": 2, "numa_nodes": 1, "kernel": "6.18.0",
//!                "preemption": "full", "glibc": "2.36", "idle_governor": "menu"|null,
//!                "pause_nanoseconds": 20.1, "ticks_per_nanosecond": 2.6, "perf_event_paranoid": 2|null,
//!                "private_hash_slots": [at start|null, at end|null] },
//!   "missing_peers": [ { "name": "nsync", "install": "apt-get install ..." } ],     not in this build
//!   "workloads": [ {
//!     "name": "calls", "about": "...", "error": null|"...",
//!     "patch": "requeue"|"wake_op"|"private"|"wide"|"throughput_optimized"|null,    whose table it redraws
//!     "missing": [ "x264 (no x264; apt-get install x264)" ],         not measured: not installed
//!     "cases": [ {
//!       "name": "wait, wrong value, private, one word",
//!       "seconds": 2.5,                  how long it took, all in all
//!       "rounds": 7,                     rounds that the figures are of
//!       "repeated": 0,                   rounds thrown away and repeated: other load was seen
//!       "disturbed": 0,                  rounds kept although other load was seen
//!       "variants": [ {
//!         "name": "waitword 32",
//!         "baseline": "futex(2)"|null,   what the ratios are to
//!         "operations": 123,             that the usage is of, all rounds together
//!         "usage": { "cpu_seconds": x, "voluntary_switches": n, "involuntary_switches": n },
//!         "metrics": [ { "name": "", "unit": "ns", "better": "less"|"more"|"neither", "values": [x, ...],
//!                        "summary": summary, "ratio": ratio|null } ]       of each round's pair: this / baseline
//!       } ]
//!     } ]
//!   } ],
//!   "bars": [ {
//!     "what": "private wait, wrong value", "limit": 0.05, "at_least": false,
//!     "verdict": "met"|"not met"|"not measured",
//!     "cells": [ { "label": "...", "figure": summary, "met": true } ]      worst first
//!   } ]
//! }
//! ```
//!
//! JSON has no infinity: a ratio over a baseline of zero is `null`.

use crate::bars::BarReport;
use crate::harness::Better;
use crate::locks::Missing;
use crate::machine::Machine;
use crate::stats::{Ratio, Summary, all_infinite};
use crate::usage::Usage;
use crate::workload::Patch;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The version of the JSON's schema.
pub const SCHEMA: u32 = 2;

/// All of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Of waitword.
    pub version: String,
    /// Seconds since 1970.
    pub started: u64,
    /// How long it took.
    pub seconds: f64,
    /// Whether all that was asked for was measured.
    pub complete: bool,
    /// Rounds asked for.
    pub rounds: usize,
    /// Where it ran.
    pub machine: Machine,
    /// Peers that this build does not have.
    pub missing_peers: Vec<MissingPeer>,
    /// What was measured.
    pub workloads: Vec<WorkloadReport>,
    /// How that stands to what must be reached.
    pub bars: Vec<BarReport>,
}

impl Report {
    /// The one in this file, as `--json` wrote it.
    ///
    /// # Errors
    /// A text for the user: it cannot be read, is no report, or is one of another version of the schema.
    pub fn read(file: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(file)
            .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        let any: serde_json::Value = serde_json::from_str(&text)
            .map_err(|error| format!("{} is no report: {error}", file.display()))?;
        match any.get("schema").and_then(serde_json::Value::as_u64) {
            Some(schema) if schema == u64::from(SCHEMA) => {}
            Some(schema) => {
                return Err(format!(
                    "{} has version {schema} of the schema; this waitword reads version {SCHEMA}",
                    file.display()
                ));
            }
            None => return Err(format!("{} is no report of this benchmark", file.display())),
        }
        serde_json::from_value(any)
            .map_err(|error| format!("{} is no report: {error}", file.display()))
    }
}

/// A peer that a build does not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingPeer {
    /// As the report would call it.
    pub name: String,
    /// The command that installs it on Debian; the next build has it.
    pub install: String,
}

impl From<&Missing> for MissingPeer {
    fn from(missing: &Missing) -> Self {
        Self {
            name: missing.name.to_owned(),
            install: missing.install.to_owned(),
        }
    }
}

/// One workload's cases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkloadReport {
    /// Its name.
    pub name: String,
    /// What it is, in a sentence.
    pub about: String,
    /// Which patch's table it redraws.
    pub patch: Option<Patch>,
    /// What was measured.
    pub cases: Vec<CaseReport>,
    /// What was not measured because something is not installed, and how to install it.
    pub missing: Vec<String>,
    /// Why it did not get to its end.
    pub error: Option<String>,
}

/// One case's variants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseReport {
    /// Which work was done.
    pub name: String,
    /// How long it took, all in all.
    pub seconds: f64,
    /// How many rounds the figures are of.
    pub rounds: usize,
    /// Rounds thrown away, and repeated, because other load was seen.
    pub repeated: usize,
    /// Rounds kept although other load was seen.
    pub disturbed: usize,
    /// Who did it.
    pub variants: Vec<VariantReport>,
}

/// One variant's figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariantReport {
    /// Its name.
    pub name: String,
    /// What the ratios are to.
    pub baseline: Option<String>,
    /// One for each metric of the case.
    pub metrics: Vec<MetricReport>,
    /// What the usage is of, all rounds together.
    pub operations: u64,
    /// CPU time and switches, all rounds together.
    pub usage: Usage,
}

impl VariantReport {
    /// CPU nanoseconds, voluntary and involuntary context switches, each per operation; `None` if the usage
    /// is of no operations in particular.
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
    /// Empty if the case has but one.
    pub name: String,
    /// For instance `ns`.
    pub unit: String,
    /// Which of two figures is the better one.
    pub better: Better,
    /// Round by round.
    #[serde(deserialize_with = "all_infinite")]
    pub values: Vec<f64>,
    /// Of the values.
    pub summary: Summary,
    /// Of each round's value to the baseline's.
    pub ratio: Option<Ratio>,
}
