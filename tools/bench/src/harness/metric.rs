//! The figures of a variant, and one measurement of it.

use crate::usage::Usage;
use serde::{Deserialize, Serialize};

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
