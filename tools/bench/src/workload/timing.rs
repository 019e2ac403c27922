//! Times between two moments, and how much work takes a given time.

use crate::harness::{Context, Failure};
use std::time::Instant;

/// Nanoseconds between two moments.
pub(crate) fn nanoseconds(from: Instant, to: Instant) -> f64 {
    to.duration_since(from).as_nanos() as f64
}

/// Finds how many repetitions take `target` nanoseconds, by doing more and more of them. `batch`
/// does the requested number and returns how many nanoseconds they took.
pub(crate) fn calibrate(
    target: f64,
    first: u64,
    context: &Context,
    mut batch: impl FnMut(u64) -> Result<f64, Failure>,
) -> Result<u64, Failure> {
    let mut repetitions = first;
    loop {
        let took = batch(repetitions)?;
        context.progressed();
        if took >= target / 8.0 {
            let one = took / repetitions as f64;
            return Ok(((target / one) as u64).max(1));
        }
        repetitions *= 4;
    }
}
