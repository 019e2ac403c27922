//! What is measured: a [`Case`] is some work, in which several [`Contender`]s are measured, each a [`Variant`].
//!
//! How they are measured, interleaved and over several rounds, is in [`run_case`].

mod rounds;

pub use rounds::run_case;

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
            Self::Failed(message) | Self::Missing(message) => f.write_str(message),
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

/// One contender in a case: anything that can be measured in that case's metrics.
pub trait Variant {
    /// As the report calls it.
    fn name(&self) -> String;

    /// Does the work once, checks it, and says what it took.
    ///
    /// # Errors
    /// If the work was not done as it should be, or the user wants to stop.
    fn measure(&mut self, context: &Context) -> Result<Measured, Failure>;
}

/// A [`Variant`] made of a name and a closure.
pub struct Named<F>(pub String, pub F);

impl<F: FnMut(&Context) -> Result<Measured, Failure>> Variant for Named<F> {
    fn name(&self) -> String {
        self.0.clone()
    }

    fn measure(&mut self, context: &Context) -> Result<Measured, Failure> {
        (self.1)(context)
    }
}

/// Nothing that is measured: in each metric the greatest of what some others of the case have reached in the same round.
struct Best(String);

impl Variant for Best {
    fn name(&self) -> String {
        self.0.clone()
    }

    fn measure(&mut self, _: &Context) -> Result<Measured, Failure> {
        Err(Failure::new("made of others' figures, not measured"))
    }
}

/// A variant, and which of the case's variants it is compared with (itself: none).
pub struct Contender {
    /// What is measured.
    pub variant: Box<dyn Variant>,
    /// Index of the variant that its ratio is taken to.
    pub baseline: usize,
    /// Indices of those it is made of, if it is not measured itself.
    best_of: Vec<usize>,
}

impl Contender {
    /// Compared with the case's first variant.
    pub fn new(variant: impl Variant + 'static) -> Self {
        Self::against(0, variant)
    }

    /// Compared with the variant of this index.
    pub fn against(baseline: usize, variant: impl Variant + 'static) -> Self {
        Self {
            variant: Box::new(variant),
            baseline,
            best_of: Vec::new(),
        }
    }

    /// Not measured: in each metric the greatest of what those of these indices have reached, round by round. For
    /// metrics of which more is better, and to compare others with. Those are measured, not such a one themselves.
    pub fn best_of(name: impl Into<String>, indices: Vec<usize>) -> Self {
        Self {
            best_of: indices,
            ..Self::new(Best(name.into()))
        }
    }

    /// Made of a name and a closure, compared with the case's first variant.
    pub fn named(
        name: impl Into<String>,
        body: impl FnMut(&Context) -> Result<Measured, Failure> + 'static,
    ) -> Self {
        Self::new(Named(name.into(), body))
    }
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

    /// How many measurements it takes, if none is repeated.
    pub fn steps(&self, settings: &Settings) -> u64 {
        (self.contenders * settings.rounds) as u64
    }
}
