//! One measurement, in its own process. Each contender starts with nothing learned and cold caches,
//! is preloaded the way its users preload it, and can be restricted to some CPUs or to a fraction
//! of the time from outside.

use super::cell::Cell;
use super::contender::Contender;
use super::crowd::{Job, Outcome};
use super::timeline::Timeline;
use crate::harness::Failure;
use crate::ticks;
use crate::usage::Usage;
use serde::{Deserialize, Serialize};
use std::io::Read as _;
use std::time::Duration;

/// The hidden command that carries out an [`Order`].
pub const CHILD: &str = "bench-any-child";

/// What the child must do; passed as JSON on its standard input.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Order {
    pub(super) cell: Cell,
    pub(super) contender: Contender,
    pub(super) milliseconds: u64,
    pub(super) is_traced: bool,
}

/// The result; passed as JSON on the child's standard output.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Answer {
    pub(super) figures: Figures,
    pub(super) timelines: Vec<Timeline>,
    pub(super) nanoseconds_per_tick: f64,
}

/// The figures of one measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Operations per second, all threads together.
    pub throughput: f64,
    /// Nanoseconds of CPU time per operation.
    pub cpu: f64,
    /// Median wait, in nanoseconds.
    pub p50: f64,
    /// 99th percentile of the wait, in nanoseconds.
    pub p99: f64,
    /// 99.9th percentile of the wait, in nanoseconds.
    pub p999: f64,
    /// Longest wait, in nanoseconds.
    pub longest: f64,
    /// Operations of the least active thread divided by those of the most active one.
    pub spread: f64,
    /// Context switches per operation.
    pub switches: f64,
}

impl Figures {
    fn of(outcome: &Outcome) -> Result<Self, Failure> {
        let operations: u64 = outcome.operations.iter().sum();
        if operations == 0 {
            return Err(Failure::new("no operation was completed"));
        }
        let all = operations as f64;
        let quantile =
            |part| outcome.waits.value_at_quantile(part) as f64 * ticks::nanoseconds_per_tick();
        let least = outcome.operations.iter().min().copied().unwrap_or(0);
        let most = outcome.operations.iter().max().copied().unwrap_or(1);
        let Usage { cpu_seconds, .. } = outcome.usage;
        Ok(Self {
            throughput: all / outcome.seconds,
            cpu: cpu_seconds * 1e9 / all,
            p50: quantile(0.5),
            p99: quantile(0.99),
            p999: quantile(0.999),
            longest: quantile(1.0),
            spread: least as f64 / most.max(1) as f64,
            switches: outcome.usage.switches() as f64 / all,
        })
    }
}

/// Carries out the order on standard input, and answers on standard output.
///
/// # Errors
/// The order cannot be read, or the contender misbehaved.
pub fn child() -> Result<(), Failure> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(Failure::new)?;
    let order: Order = serde_json::from_str(&text).map_err(Failure::new)?;
    // The first call of each takes some milliseconds.
    let nanoseconds_per_tick = ticks::nanoseconds_per_tick();
    super::work::lasting(0.0);
    let outcome = order.contender.run(Job {
        cell: &order.cell,
        time: Duration::from_millis(order.milliseconds),
        is_traced: order.is_traced,
    })?;
    let answer = Answer {
        figures: Figures::of(&outcome)?,
        timelines: outcome.timelines,
        nanoseconds_per_tick,
    };
    println!("{}", serde_json::to_string(&answer).map_err(Failure::new)?);
    Ok(())
}
