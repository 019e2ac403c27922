//! A [`Case`] is a piece of work in which several [`Contender`]s are measured, each a [`Variant`].
//!
//! [`run_case`] measures them, interleaved and over several rounds.

mod case;
mod contender;
mod context;
mod failure;
mod metric;
mod report;
mod rounds;

pub use case::{Case, Workload};
pub use contender::{Contender, Named, Variant};
pub use context::Context;
pub use failure::{Failure, check};
pub use metric::{Better, Measured, Metric};
pub use report::{CPU, CaseReport, MetricReport, VariantReport, WorkloadReport};
pub use rounds::run_case;
