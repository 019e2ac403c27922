//! The report of a run, and its JSON.
//!
//! # The JSON schema, version 3
//!
//! The JSON is one object. Every *summary* is `{"median": x, "min": x, "max": x}` over the rounds.
//! A *ratio* has these, too, and also `"interval": {"low": x, "high": x}` (some 99 %, see
//! [`coverage`](crate::stats::coverage); `null` if there were too few rounds), `"chance": x` (the
//! probability of such rounds if neither is better: a sign test) and `"verdict"`, which is
//! `"less"`, `"same"`, `"more"`, `"undecided"` or `"too few rounds"`. Fields may be added without
//! changing the version. The meaning of an existing field changes only with the version.
//!
//! ```text
//! {
//!   "schema": 3,
//!   "version": "0.1.0",                  of waitword
//!   "started": 1767225600,               seconds since 1970
//!   "seconds": 71.5,                     length of the run
//!   "complete": true,                    false: stopped, or a workload failed
//!   "rounds": 7,                         rounds requested
//!   "seed": 1234,                        seed for the order of the contenders
//!   "window_milliseconds": 300,          length of a timed measurement, in the workloads on locks
//!   "origin": { "command": "waitword bench ...", "commit": "..."|null, "changed": false,
//!               "compiler": "rustc ...",
//!               "peers": [ { "name": "nsync", "version": "1.26.0", "remark": null|"..." } ] },
//!   "machine": { "cpu": "...", "cpus_allowed": 2, "cpus_online": 2, "numa_nodes": 1,
//!                "kernel": "6.18.0", "preemption": "full", "glibc": "2.36",
//!                "idle_governor": "menu"|null, "pause_nanoseconds": 20.1,
//!                "ticks_per_nanosecond": 2.6, "perf_event_paranoid": 2|null,
//!                "private_hash_slots": [at start|null, at end|null] },
//!   "missing_peers": [                   not in this build
//!     { "name": "nsync", "install": "apt-get install ..." } ],
//!   "workloads": [ {
//!     "name": "calls", "about": "...", "error": null|"...",
//!     "patch":                           the patch whose table it reproduces
//!       "requeue"|"wake_op"|"private"|"wide"|"throughput_optimized"|null,
//!     "missing": [ "x264 (no x264; apt-get install x264)" ],         not installed
//!     "disturbed": [ "n = 200: 3 of 21 rounds were quiet, ..." ],    not measured: other load
//!     "cases": [ {
//!       "name": "wait, wrong value, private, one word",
//!       "seconds": 2.5,                  total time of the case
//!       "rounds": 7,                     rounds that the figures are based on
//!       "repeated": 0,                   rounds discarded and repeated because of other load
//!       "disturbed": 0,                  rounds kept despite other load: only on request
//!       "variants": [ {
//!         "name": "waitword 32",
//!         "baseline": "futex(2)"|null,   the variant that the ratios refer to
//!         "operations": 123,             operations that the usage covers, all rounds together
//!         "usage": { "cpu_seconds": x, "voluntary_switches": n, "involuntary_switches": n },
//!         "cpu": metric|null,            CPU ns/op per round, if the case has no such metric
//!         "metrics": [ {
//!           "name": "", "unit": "ns", "better": "less"|"more"|"neither", "values": [x, ...],
//!           "summary": summary,
//!           "ratio": ratio|null          of each round's pair: this / baseline
//!         } ]
//!       } ]
//!     } ]
//!   } ],
//!   "any": null|{ ... },                 randomly drawn loads, as in `bench any --json`
//!   "bars": [ {
//!     "what": "private wait, wrong value", "limit": 0.05, "at_least": false,
//!     "verdict": "met"|"not met"|"undecided"|"too few rounds"|"not measured",
//!     "cells": [ {                       worst first
//!       "label": "...", "figure": summary, "interval": interval|null, "verdict": "met"|...
//!     } ]
//!   } ]
//! }
//! ```
//!
//! JSON has no infinity: a ratio over a baseline of zero is `null`.

use crate::any::AnyReport;
use crate::bars::BarReport;
use crate::locks::Missing;
use crate::machine::Machine;
use crate::origin::Origin;
use crate::stats::{ROUNDS_OF_PROGRAMS, ROUNDS_TO_PUBLISH};
use serde::{Deserialize, Serialize};
use std::path::Path;

pub use crate::harness::{CPU, CaseReport, MetricReport, VariantReport, WorkloadReport};

/// Version of the JSON schema.
pub const SCHEMA: u32 = 3;

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Version of waitword.
    pub version: String,
    /// Start time, in seconds since 1970.
    pub started: u64,
    /// Length of the run.
    pub seconds: f64,
    /// Whether everything that was requested was measured.
    pub complete: bool,
    /// Rounds requested.
    pub rounds: usize,
    /// Seed for the order of the contenders.
    pub seed: u64,
    /// Length of a timed measurement.
    pub window_milliseconds: u64,
    /// The command, source and peers that produced the report.
    pub origin: Origin,
    /// The machine.
    pub machine: Machine,
    /// Peers that this build does not include.
    pub missing_peers: Vec<MissingPeer>,
    /// The results.
    pub workloads: Vec<WorkloadReport>,
    /// Some randomly drawn loads.
    pub any: Option<AnyReport>,
    /// The results compared with the goals.
    pub bars: Vec<BarReport>,
}

impl Report {
    /// Reads a report from a file that `--json` wrote.
    ///
    /// # Errors
    /// A text for the user: the file cannot be read, is not a report, or has another schema
    /// version.
    pub fn read(file: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(file)
            .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        let any: serde_json::Value = serde_json::from_str(&text)
            .map_err(|error| format!("no report in {}: {error}", file.display()))?;
        match any.get("schema").and_then(serde_json::Value::as_u64) {
            Some(schema) if schema == u64::from(SCHEMA) => {}
            Some(schema) => {
                return Err(format!(
                    "{} has version {schema} of the schema; this waitword reads version {SCHEMA}",
                    file.display()
                ));
            }
            None => return Err(format!("no report of this benchmark in {}", file.display())),
        }
        serde_json::from_value(any)
            .map_err(|error| format!("no report in {}: {error}", file.display()))
    }

    /// Rounds required for publication. With fewer rounds, a run is only a trial.
    pub fn rounds_to_publish(&self) -> usize {
        if self.workloads.iter().all(|of| of.name == "programs") {
            ROUNDS_OF_PROGRAMS
        } else {
            ROUNDS_TO_PUBLISH
        }
    }
}

/// A peer that a build does not include.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingPeer {
    /// The name in reports.
    pub name: String,
    /// The command that installs it on Debian. The next build then includes it.
    pub install: String,
}

impl From<&Missing> for MissingPeer {
    fn from(missing: &Missing) -> Self {
        Self { name: missing.name.to_owned(), install: missing.install.to_owned() }
    }
}
