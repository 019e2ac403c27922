//! `any`: randomly drawn loads, which were not picked to suit any lock.
//!
//! **Work.** A generator draws *cells* from a seed: the number of threads, the length and the
//! distribution of the sections and of the gaps between them, what holders do, and what else runs
//! on the machine. Every contender does the work of every cell, each in its own process, in rounds
//! whose order is drawn again each time. Work is computation, and each thread counts its own
//! operations.
//!
//! **Figures.** For each cell: throughput, CPU per operation, waits, spread between threads,
//! context switches. For all cells of a family: the geometric mean, the tenth percentile and the
//! worst of our ratios to each peer, and to the *best* peer of each cell.
//!
//! Seeds below 1000 are for tuning. Published figures come from larger seeds that had not been run
//! before.
//!
//! | file | contents |
//! |---|---|
//! | [`cell`], [`durations`], `named` | definition of a cell |
//! | [`draw`] | the generator |
//! | `work`, `interlude` | what the threads do |
//! | `crowd` | the threads and their accounts |
//! | `families` | the work of each family, generic over the lock |
//! | [`contender`] | the locks under test |
//! | [`child`] | one measurement, in its own process |
//! | `surroundings`, [`quota`] | busy processes, one CPU; half of a CPU |
//! | [`rounds`] | all contenders, round after round |
//! | [`summary`] | ratios over many cells |
//! | [`replay`], [`timeline`] | one long run of a cell: which thread held and which waited |

pub mod cell;
pub mod child;
pub mod contender;
pub mod draw;
pub mod durations;
pub mod quota;
pub mod replay;
pub mod rounds;
pub mod summary;
pub mod timeline;

mod crowd;
mod families;
mod interlude;
mod named;
mod surroundings;
mod work;

use crate::harness::{Context, Failure};
use crate::machine::Machine;
use crate::origin::{Origin, Peer};
use cell::{Beside, Family};
use contender::Contender;
use rounds::{CellReport, Method};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Load families.
    pub families: Vec<Family>,
    /// Surroundings; each family runs in each of them.
    pub beside: Vec<Beside>,
    /// Seeds to draw from.
    pub seeds: Vec<u64>,
    /// Cells per seed, family and surroundings.
    pub cells: u32,
    /// Contenders to measure.
    pub contenders: Vec<Contender>,
    /// Rounds, length of a window, and the drop-in.
    pub method: Method,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnyReport {
    /// Version of the JSON schema.
    pub schema: u32,
    /// Version of waitword.
    pub version: String,
    /// Start time, in seconds since 1970.
    pub started: u64,
    /// The command, the source and the peers that produced this report.
    pub origin: Origin,
    /// Seed for the order of the contenders.
    pub order_seed: u64,
    /// The machine.
    pub machine: Machine,
    /// How often each contender was measured in a cell.
    pub rounds: usize,
    /// Length of one measurement, in milliseconds.
    pub milliseconds: u64,
    /// One report per cell.
    pub cells: Vec<CellReport>,
    /// Cells that were not measured because other processes used the machine all the time.
    pub disturbed: Vec<String>,
}

/// Version of the JSON schema.
pub const SCHEMA: u32 = 2;

impl AnyReport {
    /// Reads a report from JSON.
    ///
    /// # Errors
    /// A text for the user: the JSON is not such a report, or has another schema version.
    pub fn of(any: serde_json::Value) -> Result<Self, String> {
        match any.get("schema").and_then(serde_json::Value::as_u64) {
            Some(schema) if schema == u64::from(SCHEMA) => {}
            other => {
                return Err(format!(
                    "random loads of schema {other:?}; this waitword reads schema {SCHEMA}"
                ));
            }
        }
        serde_json::from_value(any).map_err(|error| error.to_string())
    }

    /// The seeds of the cells, in ascending order.
    pub fn seeds(&self) -> Vec<u64> {
        let seeds = self.cells.iter().map(|report| report.cell.id.seed);
        let seeds: BTreeSet<u64> = seeds.collect();
        seeds.into_iter().collect()
    }

    /// How many cells are missing. Each family has equally many cells in each of the surroundings,
    /// unless the run ended early or other processes prevented some measurements.
    pub fn missing(&self) -> usize {
        let mut counts = BTreeMap::new();
        for CellReport { cell, .. } in &self.cells {
            *counts.entry((cell.id.family, cell.id.beside)).or_insert(0) += 1;
        }
        let families: BTreeSet<_> = counts.keys().map(|(family, _)| family).collect();
        let surroundings: BTreeSet<_> = counts.keys().map(|(_, beside)| beside).collect();
        let most = counts.values().max().copied().unwrap_or(0);
        families.len() * surroundings.len() * most - self.cells.len()
    }

    /// The contender's name in tables, with a star if it was not built the way its users get it.
    pub fn shown(&self, contender: Contender) -> String {
        match self.remark(contender) {
            Some(_) => format!("{contender}*"),
            None => contender.to_string(),
        }
    }

    /// Remarks on peers that were not built the way their users get them.
    pub fn remarks(&self) -> Vec<String> {
        let remark =
            |contender: Contender| Some(format!("{contender}*: {}", self.remark(contender)?));
        self.peers().into_iter().filter_map(remark).collect()
    }

    fn remark(&self, contender: Contender) -> Option<&str> {
        // `absl, Debian's` is absl. C++'s mutex is not glibc's, though it is built on it.
        let first = |name: &str| name.split(", ").next() == Some(contender.name());
        let is_it = |peer: &&Peer| first(&peer.name) && peer.remark.is_some();
        self.origin.peers.iter().find(is_it)?.remark.as_deref()
    }

    /// The peers that were measured in at least one cell.
    pub fn peers(&self) -> Vec<Contender> {
        let measured = |contender: &Contender| {
            let mut all = self.cells.iter().flat_map(|cell| &cell.contenders);
            all.any(|(each, _)| each == contender)
        };
        let peers = Contender::ALL.into_iter().filter(|contender| !contender.is_ours());
        peers.filter(measured).collect()
    }
}

/// Measures everything in the plan. `done` is called after each cell.
///
/// # Errors
/// Returns the report so far with the failure if a contender misbehaved or the user stopped the
/// run.
pub fn measure(
    plan: &Plan,
    context: &Context,
    mut done: impl FnMut(&CellReport, usize, usize),
) -> (AnyReport, Option<Failure>) {
    let mut report = AnyReport {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        origin: Origin::this(),
        order_seed: context.settings.seed,
        machine: Machine::this(),
        rounds: plan.method.rounds,
        milliseconds: plan.method.milliseconds,
        cells: Vec::new(),
        disturbed: Vec::new(),
    };
    let mut cells = Vec::new();
    for &family in &plan.families {
        for &beside in &plan.beside {
            for &seed in &plan.seeds {
                cells.extend(draw::cells(family, beside, seed, plan.cells));
            }
        }
    }
    for (number, cell) in cells.iter().enumerate() {
        match rounds::measure(cell, &plan.contenders, &plan.method, context) {
            Ok(cell) => {
                done(&cell, number + 1, cells.len());
                report.cells.push(cell);
            }
            Err(Failure::Disturbed(cell)) => report.disturbed.push(cell),
            Err(failure) => return (report, Some(failure)),
        }
    }
    (report, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published figures belong to these loads.
    #[test]
    fn the_published_loads_are_drawn_again() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../results/any.json");
        let text = std::fs::read_to_string(file).unwrap();
        let report = AnyReport::of(serde_json::from_str(&text).unwrap()).unwrap();
        assert!(!report.cells.is_empty());
        for CellReport { cell, .. } in &report.cells {
            assert_eq!(draw::cell(cell.id).to_string(), cell.to_string());
        }
    }
}
