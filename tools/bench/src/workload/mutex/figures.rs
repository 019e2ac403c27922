//! Turns an [`Outcome`] into figures, in the order of the metrics.

use crate::harness::Metric;
use crate::ticks;
use crate::usage::Usage;
use crate::workload::crowd::{Outcome, Served};

/// Metrics of a run for a time.
pub(super) const OF_TIME: &[Metric] = &[
    Metric::more("throughput", "ops/s"),
    Metric::less("CPU", "ns/op"),
    Metric::more("fairness", ""),
    Metric::more("least", ""),
    Metric::neither("most", ""),
    Metric::less("wait p50", "ns"),
    Metric::less("wait p99", "ns"),
    Metric::less("wait p99.9", "ns"),
    Metric::less("wait max", "ns"),
    Metric::less("switches", "/op"),
    Metric::less("preempted", "/op"),
];

/// Metrics of a run for a number of sections per thread: the rows of the mail's second table first.
pub(super) const OF_SECTIONS: &[Metric] = &[
    Metric::less("slowest thread", "ms"),
    Metric::less("fastest thread", "ms"),
    Metric::less("average thread", "ms"),
    Metric::less("CPU", "ns/op"),
    Metric::less("wait p50", "ns"),
    Metric::less("wait p99", "ns"),
    Metric::less("wait p99.9", "ns"),
    Metric::less("wait max", "ns"),
    Metric::less("switches", "/op"),
    Metric::less("preempted", "/op"),
];

/// The values of [`OF_TIME`]: the waits were timed only in `latency`.
pub(super) fn of_time(throughput: &Outcome, latency: &Outcome) -> Vec<f64> {
    let sections = sections(throughput);
    let shares = Shares::of(throughput.threads.iter().map(|thread| thread.sections as f64));
    let mut values = vec![
        sections / (throughput.took / 1e9),
        cpu(throughput),
        shares.jain,
        shares.least,
        shares.most,
    ];
    values.extend(waits(latency));
    values.extend(switches(throughput));
    values
}

/// The values of [`OF_SECTIONS`].
pub(super) fn of_sections(outcome: &Outcome) -> Vec<f64> {
    let times = || outcome.threads.iter().map(|thread| thread.took / 1e6);
    let mut values = vec![
        times().fold(0.0, f64::max),
        times().fold(f64::INFINITY, f64::min),
        times().sum::<f64>() / outcome.threads.len() as f64,
        cpu(outcome),
    ];
    values.extend(waits(outcome));
    values.extend(switches(outcome));
    values
}

/// CPU time and context switches of all threads.
pub(super) fn usage(outcome: &Outcome) -> Usage {
    let mut sum = Usage::default();
    for thread in &outcome.threads {
        sum += thread.usage;
    }
    sum
}

/// The number of sections done; at least one, so that it can be a divisor.
pub(super) fn sections(outcome: &Outcome) -> f64 {
    let sections: u64 = outcome.threads.iter().map(|thread: &Served| thread.sections).sum();
    sections.max(1) as f64
}

fn cpu(outcome: &Outcome) -> f64 {
    usage(outcome).cpu_seconds * 1e9 / sections(outcome)
}

fn switches(outcome: &Outcome) -> [f64; 2] {
    let (usage, sections) = (usage(outcome), sections(outcome));
    [usage.voluntary_switches as f64 / sections, usage.involuntary_switches as f64 / sections]
}

fn waits(outcome: &Outcome) -> [f64; 4] {
    let tick = ticks::nanoseconds_per_tick();
    let quantile = |quantile| outcome.waits.value_at_quantile(quantile) as f64 * tick;
    [quantile(0.5), quantile(0.99), quantile(0.999), outcome.waits.max() as f64 * tick]
}

/// How evenly something was shared out.
struct Shares {
    /// Jain's index: 1 if all got the same, 1/n if one got everything.
    jain: f64,
    /// The share of the least served, divided by the mean.
    least: f64,
    /// The share of the most served, divided by the mean.
    most: f64,
}

impl Shares {
    fn of(counts: impl Iterator<Item = f64> + Clone) -> Self {
        let sum: f64 = counts.clone().sum();
        let squares: f64 = counts.clone().map(|count| count * count).sum();
        let threads = counts.clone().count() as f64;
        let mean = sum / threads;
        if sum == 0.0 {
            // Nothing was served, so all shares are equal.
            return Self { jain: 1.0, least: 1.0, most: 1.0 };
        }
        Self {
            jain: sum * sum / (threads * squares),
            least: counts.clone().fold(f64::INFINITY, f64::min) / mean,
            most: counts.fold(0.0, f64::max) / mean,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_is_one_for_all_alike_and_one_nth_for_one_alone() {
        let shares = |counts: &[f64]| Shares::of(counts.iter().copied());
        let even = shares(&[5.0, 5.0, 5.0, 5.0]);
        assert_eq!((even.jain, even.least, even.most), (1.0, 1.0, 1.0));
        let alone = shares(&[8.0, 0.0, 0.0, 0.0]);
        assert_eq!((alone.jain, alone.least, alone.most), (0.25, 0.0, 4.0));
        assert_eq!(shares(&[3.0, 1.0]).jain, 0.8);
        assert_eq!(shares(&[0.0, 0.0]).jain, 1.0);
    }
}
