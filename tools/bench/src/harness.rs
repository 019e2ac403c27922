//! A [`Case`] is a piece of work in which several [`Contender`]s are measured, each a [`Variant`].
//!
//! [`run_case`] measures them, interleaved and over several rounds.

mod contender;
mod rounds;

pub use contender::{Contender, Named, Variant};
pub use rounds::run_case;

use contender::twins;

use crate::run::Settings;
use crate::usage::Usage;
use core::fmt;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// Why a measurement failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The workload's own check failed, or the workload could not be set up.
    Failed(String),
    /// Something is not installed: what is missing, and how to install it.
    Missing(String),
    /// Other processes used the machine all the time.
    Disturbed(String),
    /// The user wants to stop.
    Stopped,
}

impl Failure {
    /// A [`Failure::Failed`] with this message.
    pub fn new(message: impl fmt::Display) -> Self {
        Self::Failed(message.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(message) | Self::Missing(message) | Self::Disturbed(message) => {
                f.write_str(message)
            }
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

/// Fails unless `condition` holds. Workloads use this to check their own work.
///
/// # Errors
/// [`Failure::Failed`] with the message if the condition does not hold.
pub fn check(condition: bool, message: impl FnOnce() -> String) -> Result<(), Failure> {
    if condition {
        Ok(())
    } else {
        Err(Failure::new(message()))
    }
}

/// What a measurement knows about the run that it belongs to.
#[derive(Clone, Debug)]
pub struct Context {
    /// The user's settings.
    pub settings: Settings,
    stop: Arc<AtomicBool>,
    progress: Arc<AtomicU64>,
    measured: Arc<Mutex<String>>,
}

impl Context {
    /// A run with these settings, which ends early when `stop` becomes true.
    pub fn new(settings: Settings, stop: Arc<AtomicBool>) -> Self {
        Self {
            settings,
            stop,
            progress: Arc::default(),
            measured: Arc::default(),
        }
    }

    /// Tells the watchdog what is being measured from now on: a case, and one of its contenders.
    pub fn measures(&self, what: String) {
        *self.measured.lock().unwrap_or_else(PoisonError::into_inner) = what;
    }

    /// What is being measured; empty before the first measurement.
    pub fn measured(&self) -> String {
        let measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        measured.clone()
    }

    /// Tells the watchdog that there was progress.
    pub fn progressed(&self) {
        self.progress.fetch_add(1, Relaxed);
    }

    /// How often there was progress so far.
    pub fn progress(&self) -> u64 {
        self.progress.load(Relaxed)
    }

    /// Whether the user wants to stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }
}

/// One of the figures of a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// A short name; empty if the case has only one metric.
    pub name: &'static str,
    /// For example `ns`.
    pub unit: &'static str,
    /// Which of two values is better.
    pub better: Better,
}

/// Which of two values is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// The smaller: a time, a cost.
    Less,
    /// The greater: a rate.
    More,
    /// Neither: the figure is only informative.
    Neither,
}

impl Metric {
    /// A metric of which less is better.
    pub const fn less(name: &'static str, unit: &'static str) -> Self {
        let better = Better::Less;
        Self { name, unit, better }
    }

    /// A metric of which more is better.
    pub const fn more(name: &'static str, unit: &'static str) -> Self {
        let better = Better::More;
        Self { name, unit, better }
    }

    /// A metric of which neither is better.
    pub const fn neither(name: &'static str, unit: &'static str) -> Self {
        let better = Better::Neither;
        Self { name, unit, better }
    }
}

/// One measurement of one variant.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// One value for each metric of the case.
    pub values: Vec<f64>,
    /// The number of operations that `usage` covers.
    pub operations: u64,
    /// The resources that they cost the process.
    pub usage: Usage,
}

type Prepare = dyn FnOnce(&Context) -> Result<Vec<Contender>, Failure>;

/// Several variants doing the same work.
pub struct Case {
    /// Name of the work.
    pub name: String,
    /// The metrics.
    pub metrics: Vec<Metric>,
    /// Number of variants.
    pub contenders: usize,
    /// Sets the variants up. Threads and memory are created only when the case is about to run.
    pub prepare: Box<Prepare>,
}

impl Case {
    /// A case with this name, whose `contenders` variants are set up by `prepare`.
    pub fn new(
        name: impl Into<String>,
        metrics: &[Metric],
        contenders: usize,
        prepare: impl FnOnce(&Context) -> Result<Vec<Contender>, Failure> + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            metrics: metrics.to_vec(),
            contenders,
            prepare: Box::new(prepare),
        }
    }

    /// Pairs every contender of this case with a twin, created by the same case a second time.
    pub(crate) fn twice(self, again: Self) -> Self {
        let (first, second) = (self.prepare, again.prepare);
        Self {
            contenders: 2 * self.contenders,
            prepare: Box::new(move |context| Ok(twins(first(context)?, second(context)?))),
            ..self
        }
    }
}
