//! `any`: loads that nobody has chosen.
//!
//! **Work.** A generator draws *cells* from a seed: how many threads, how long their sections and the gaps between them are and how
//! they scatter, what holders do, what else runs on the machine. All contenders do each cell's work, each in a process of its
//! own, in rounds whose order is drawn anew. Work is computation, and each thread counts its own operations.
//!
//! **Figures.** Of each cell: throughput, CPU for an operation, waits, spread between threads, switches. Of all cells of a family:
//! the geometric mean of our ratio to each peer, and to the *best* peer of each cell; the tenth percentile; the worst.
//!
//! Seeds below 1000 are for tuning. What is published comes from greater ones that nobody has looked at before.
//!
//! | file | what is in it |
//! |---|---|
//! | [`cell`], [`durations`] | what a cell is |
//! | [`draw`] | the generator |
//! | `work`, `interlude` | what the threads do |
//! | `crowd` | the threads, and their accounts |
//! | `families` | the work of each family, generic over the lock |
//! | [`contender`] | who is measured |
//! | [`child`] | one measurement, in a process of its own |
//! | `surroundings`, [`quota`] | busy processes, one CPU; half of a CPU |
//! | [`rounds`] | all contenders, again and again |
//! | [`summary`] | ratios over many cells |
//! | [`replay`], [`timeline`] | one cell, run long: who held, and who waited |

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

/// What is measured.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Loads of these kinds.
    pub families: Vec<Family>,
    /// Each of them beside each of these.
    pub beside: Vec<Beside>,
    /// Drawn from these seeds.
    pub seeds: Vec<u64>,
    /// So many of each seed, in each family and beside each.
    pub cells: u32,
    /// By these.
    pub contenders: Vec<Contender>,
    /// How.
    pub method: Method,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnyReport {
    /// Of this form.
    pub schema: u32,
    /// The version of waitword.
    pub version: String,
    /// Seconds since 1970.
    pub started: u64,
    /// By which command it was made, of which source, with which peers.
    pub origin: Origin,
    /// What the order of the contenders was drawn from.
    pub order_seed: u64,
    /// The machine.
    pub machine: Machine,
    /// Times each contender was measured in a cell.
    pub rounds: usize,
    /// How long.
    pub milliseconds: u64,
    /// Cell after cell.
    pub cells: Vec<CellReport>,
    /// Those that were not measured: others used the machine all the while.
    pub disturbed: Vec<String>,
}

/// The version of the JSON's form.
pub const SCHEMA: u32 = 2;

impl AnyReport {
    /// The one in this JSON.
    ///
    /// # Errors
    /// A text for the user: it is none, or one of another form.
    pub fn of(any: serde_json::Value) -> Result<Self, String> {
        match any.get("schema").and_then(serde_json::Value::as_u64) {
            Some(schema) if schema == u64::from(SCHEMA) => {}
            other => {
                return Err(format!(
                    "form {other:?} of random loads; this waitword reads {SCHEMA}"
                ));
            }
        }
        serde_json::from_value(any).map_err(|error| error.to_string())
    }

    /// The seeds of its cells, ascending.
    pub fn seeds(&self) -> Vec<u64> {
        let seeds = self.cells.iter().map(|report| report.cell.id.seed);
        let seeds: BTreeSet<u64> = seeds.collect();
        seeds.into_iter().collect()
    }

    /// How many loads it lacks: each family has as many loads in each of the surroundings, unless the run
    /// ended early or other load kept some from being measured.
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

    /// What this contender is called in tables: with a star, if it was not as its users have it.
    pub fn shown(&self, who: Contender) -> String {
        match self.remark(who) {
            Some(_) => format!("{who}*"),
            None => who.to_string(),
        }
    }

    /// What of the peers was not as their users have them.
    pub fn remarks(&self) -> Vec<String> {
        let remark = |who: Contender| Some(format!("{who}*: {}", self.remark(who)?));
        self.peers().into_iter().filter_map(remark).collect()
    }

    fn remark(&self, who: Contender) -> Option<&str> {
        // `absl, Debian's` is absl; C++'s is not glibc's, though it stands on that.
        let first = |name: &str| name.split(", ").next() == Some(who.name());
        let is_it = |peer: &&Peer| first(&peer.name) && peer.remark.is_some();
        self.origin.peers.iter().find(is_it)?.remark.as_deref()
    }

    /// The peers that were measured in any cell.
    pub fn peers(&self) -> Vec<Contender> {
        let measured = |who: &Contender| {
            let mut all = self.cells.iter().flat_map(|cell| &cell.contenders);
            all.any(|(each, _)| each == who)
        };
        let peers = Contender::ALL.into_iter().filter(|who| !who.is_ours());
        peers.filter(measured).collect()
    }
}

/// Measures all that is planned; `done` is told each cell that is.
///
/// # Errors
/// With the report so far, if a contender did wrong or the user stops.
pub fn measure(
    plan: &Plan,
    context: &Context,
    mut done: impl FnMut(&CellReport, usize, usize),
) -> (AnyReport, Option<Failure>) {
    let mut report = AnyReport {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs()),
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
