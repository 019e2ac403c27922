//! What is measured: a [`Case`] is some work, in which several [`Contender`]s are measured, each a [`Variant`].
//!
//! How they are measured, interleaved and over several rounds, is in [`run_case`].

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

/// Why a measurement came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The workload's own check failed, or it could not be set up.
    Failed(String),
    /// What it needs is not installed: what, and how to install it.
    Missing(String),
    /// Somebody else used the machine all the while.
    Disturbed(String),
    /// The user wants to stop.
    Stopped,
}

impl Failure {
    /// With this message.
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

/// Fails unless `condition` holds: how a workload checks its own work.
///
/// # Errors
/// [`Failure::Failed`], with the message, if it does not hold.
pub fn check(condition: bool, message: impl FnOnce() -> String) -> Result<(), Failure> {
    if condition {
        Ok(())
    } else {
        Err(Failure::new(message()))
    }
}

/// What a measurement knows of the run that it is part of.
#[derive(Clone, Debug)]
pub struct Context {
    /// What the user asked for.
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

    /// Tells the watchdog what is measured from now on: a case, and which of its contenders.
    pub fn measures(&self, what: String) {
        *self.measured.lock().unwrap_or_else(PoisonError::into_inner) = what;
    }

    /// What is measured just now; empty before the first.
    pub fn measured(&self) -> String {
        let measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        measured.clone()
    }

    /// Tells the watchdog that something has got done.
    pub fn progressed(&self) {
        self.progress.fetch_add(1, Relaxed);
    }

    /// How often something got done so far.
    pub fn progress(&self) -> u64 {
        self.progress.load(Relaxed)
    }

    /// Whether the user wants to stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }
}

/// What a variant's figures are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Short; empty if the case has but one.
    pub name: &'static str,
    /// For instance `ns`.
    pub unit: &'static str,
    /// Which of two figures is the better one.
    pub better: Better,
}

/// Which of two figures is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// The smaller: a time, a cost.
    Less,
    /// The greater: a rate.
    More,
    /// Neither: it is there to be looked at.
    Neither,
}

impl Metric {
    /// Of which less is better.
    pub const fn less(name: &'static str, unit: &'static str) -> Self {
        let better = Better::Less;
        Self { name, unit, better }
    }

    /// Of which more is better.
    pub const fn more(name: &'static str, unit: &'static str) -> Self {
        let better = Better::More;
        Self { name, unit, better }
    }

    /// Of which neither is better.
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
    /// How many operations the usage below is for.
    pub operations: u64,
    /// What they cost the process.
    pub usage: Usage,
}

type Prepare = dyn FnOnce(&Context) -> Result<Vec<Contender>, Failure>;

/// Some variants doing the same work.
pub struct Case {
    /// Which work.
    pub name: String,
    /// In what it is measured.
    pub metrics: Vec<Metric>,
    /// How many variants there will be.
    pub contenders: usize,
    /// Sets them up: threads and memory are made only when the case's turn has come.
    pub prepare: Box<Prepare>,
}

impl Case {
    /// A case of this name, whose `contenders` variants are set up by `prepare`.
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

    /// Everybody of this case beside a twin, made anew by the same case once more.
    pub(crate) fn twice(self, again: Self) -> Self {
        let (first, second) = (self.prepare, again.prepare);
        Self {
            contenders: 2 * self.contenders,
            prepare: Box::new(move |context| Ok(twins(first(context)?, second(context)?))),
            ..self
        }
    }
}
