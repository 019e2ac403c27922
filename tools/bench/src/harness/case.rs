//! A case, and the workload that it belongs to.

use super::contender::{Contender, twins};
use super::context::Context;
use super::failure::Failure;
use super::metric::Metric;
use crate::patch::Patch;
use crate::settings::Settings;

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

/// A kind of work, with its cases.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Name on the command line.
    pub name: &'static str,
    /// One-sentence description.
    pub about: &'static str,
    /// The patch whose table it reproduces, if any.
    pub patch: Option<Patch>,
    /// Approximate length of one variant's measurement.
    pub milliseconds: u32,
    /// Its cases.
    pub cases: fn(&Settings) -> Vec<Case>,
}
