//! The report of a run, and its JSON.
//!
//! # The JSON schema, version 3
//!
//! One object. Every *summary* is `{"median": x, "min": x, "max": x}` over the rounds. A *ratio* has these too, and
//! `"interval": {"low": x, "high": x}` (some 99 %: [`coverage`](crate::stats::coverage); `null` of too few rounds), `"chance": x`
//! (of such rounds if neither is better: a sign test) and `"verdict": "less"|"same"|"more"|"undecided"|"too few rounds"`. Fields
//! may be added under the same version; the meaning of one that is there changes only with the version.
//!
//! ```text
//! {
//!   "schema": 3,
//!   "version": "0.1.0",                  of waitword
//!   "started": 1767225600,               seconds since 1970
//!   "seconds": 71.5,                     how long the run took
//!   "complete": true,                    false: stopped, or a workload failed
//!   "rounds": 7,                         rounds asked for
//!   "seed": 1234,                        what the order of the contenders is drawn from
//!   "window_milliseconds": 300,          how long a run for a time lasted, in the workloads on locks
//!   "origin": { "command": "waitword bench ...", "commit": "..."|null, "changed": false,
//!               "compiler": "rustc ...", "peers": [ { "name": "nsync", "version": "1.26.0", "remark": null|"..." } ] },
//!   "machine": { "cpu": "...", "cpus_allowed": 2, "cpus_online": 2, "numa_nodes": 1, "kernel": "6.18.0",
//!                "preemption": "full", "glibc": "2.36", "idle_governor": "menu"|null,
//!                "pause_nanoseconds": 20.1, "ticks_per_nanosecond": 2.6, "perf_event_paranoid": 2|null,
//!                "private_hash_slots": [at start|null, at end|null] },
//!   "missing_peers": [ { "name": "nsync", "install": "apt-get install ..." } ],     not in this build
//!   "workloads": [ {
//!     "name": "calls", "about": "...", "error": null|"...",
//!     "patch": "requeue"|"wake_op"|"private"|"wide"|"throughput_optimized"|null,    whose table it redraws
//!     "missing": [ "x264 (no x264; apt-get install x264)" ],         not measured: not installed
//!     "disturbed": [ "n = 200: 3 of 21 rounds were quiet, ..." ],    not measured: other load
//!     "cases": [ {
//!       "name": "wait, wrong value, private, one word",
//!       "seconds": 2.5,                  how long it took, all in all
//!       "rounds": 7,                     rounds that the figures are of
//!       "repeated": 0,                   rounds thrown away and repeated: other load was seen
//!       "disturbed": 0,                  rounds kept although other load was seen: on request only
//!       "variants": [ {
//!         "name": "waitword 32",
//!         "baseline": "futex(2)"|null,   what the ratios are to
//!         "operations": 123,             that the usage is of, all rounds together
//!         "usage": { "cpu_seconds": x, "voluntary_switches": n, "involuntary_switches": n },
//!         "cpu": metric|null,                CPU ns/op, round by round, if the case has no such metric
//!         "metrics": [ { "name": "", "unit": "ns", "better": "less"|"more"|"neither", "values": [x, ...],
//!                        "summary": summary, "ratio": ratio|null } ]       of each round's pair: this / baseline
//!       } ]
//!     } ]
//!   } ],
//!   "any": null|{ ... },                 loads drawn at random, as `bench any --json` has them
//!   "bars": [ {
//!     "what": "private wait, wrong value", "limit": 0.05, "at_least": false,
//!     "verdict": "met"|"not met"|"undecided"|"too few rounds"|"not measured",
//!     "cells": [ { "label": "...", "figure": summary, "interval": interval|null, "verdict": "met"|... } ]      worst first
//!   } ]
//! }
//! ```
//!
//! JSON has no infinity: a ratio over a baseline of zero is `null`.

use crate::any::AnyReport;
use crate::bars::BarReport;
use crate::harness::Better;
use crate::locks::Missing;
use crate::machine::Machine;
use crate::origin::Origin;
use crate::stats::{ROUNDS_OF_PROGRAMS, ROUNDS_TO_PUBLISH, Ratio, Summary, all_infinite};
use crate::usage::Usage;
use crate::workload::Patch;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The version of the JSON's schema.
pub const SCHEMA: u32 = 3;

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
    /// What the order of the contenders was drawn from.
    pub seed: u64,
    /// How long a run for a time lasted.
    pub window_milliseconds: u64,
    /// By which command it was made, of which source, with which peers.
    pub origin: Origin,
    /// Where it ran.
    pub machine: Machine,
    /// Peers that this build does not have.
    pub missing_peers: Vec<MissingPeer>,
    /// What was measured.
    pub workloads: Vec<WorkloadReport>,
    /// Loads drawn at random, a few.
    pub any: Option<AnyReport>,
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

    /// How many rounds it needs to be published. Fewer are a trial.
    pub fn rounds_to_publish(&self) -> usize {
        if self.workloads.iter().all(|of| of.name == "programs") {
            ROUNDS_OF_PROGRAMS
        } else {
            ROUNDS_TO_PUBLISH
        }
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
    /// What was not measured because others used the machine.
    pub disturbed: Vec<String>,
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
    /// Rounds kept although other load was seen, on request.
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
    /// CPU time for an operation, round by round, where the case has no such metric of its own and the
    /// usage is of operations.
    pub cpu: Option<MetricReport>,
    /// What the usage is of, all rounds together.
    pub operations: u64,
    /// CPU time and switches, all rounds together.
    pub usage: Usage,
}

/// What the metric of CPU time is called.
pub const CPU: &str = "CPU";

impl VariantReport {
    /// CPU time for an operation: the case's own metric, or what was made of the usage.
    pub fn cpu(&self) -> Option<&MetricReport> {
        let own = self.metrics.iter().find(|metric| metric.name == CPU);
        own.or(self.cpu.as_ref())
    }

    /// The wait that one operation in a thousand exceeds, or as far out as was measured.
    pub fn tail(&self) -> Option<&MetricReport> {
        let tails = ["wait p99.9", "write p99.9", "read p99.9"];
        tails
            .iter()
            .find_map(|tail| self.metrics.iter().find(|metric| metric.name == *tail))
    }

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
