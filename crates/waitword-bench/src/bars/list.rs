//! The list of bars: which figures of which workload must stay below what.

use Figure::{EveryRatio, EveryValue, Ratio};

/// What a bar is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Figure {
    /// The median of the ratio to the baseline.
    Ratio,
    /// The median of the ratio to the baseline, where more is better: *at least* the limit.
    #[allow(dead_code)] // Until the first bar of a throughput.
    AtLeast,
    /// The greatest ratio to the baseline: for what must hold in every round.
    EveryRatio,
    /// The greatest of the values themselves.
    EveryValue,
}

/// One thing that must be reached.
#[derive(Debug)]
pub(super) struct Bar {
    pub(super) what: &'static str,
    /// At most this, or at least, as `figure` has it.
    pub(super) limit: f64,
    pub(super) figure: Figure,
    pub(super) workload: &'static str,
    /// Parts of the case's name, all of which must be there.
    pub(super) case: &'static [&'static str],
    /// The variants' names.
    pub(super) variants: &'static [&'static str],
    /// The metrics' names; empty: every one.
    pub(super) metrics: &'static [&'static str],
}

const ALL_WIDTHS: &[&str] = &["waitword 8", "waitword 16", "waitword 32", "waitword 64"];
const BOTH: &[&str] = &["waitword 32", "waitword 64"];
const NARROW: &[&str] = &["waitword 32"];
const WIDE: &[&str] = &["waitword 64"];
const SPIN_OFF: &[&str] = &["waitword 32, spin off", "waitword 64, spin off"];
const SPIN_ON: &[&str] = &["waitword 32, spin on", "waitword 64, spin on"];

/// "one CPU" and "two CPUs". Where threads are not bound, the scheduler puts them on one CPU or on two, and
/// the figure is eight times one way or the other: that is shown, but decides nothing.
const BOUND: &[&str] = &["CPU"];

const fn bar(
    what: &'static str,
    figure: Figure,
    limit: f64,
    (workload, case): (&'static str, &'static [&'static str]),
    variants: &'static [&'static str],
    metrics: &'static [&'static str],
) -> Bar {
    Bar {
        what,
        limit,
        figure,
        workload,
        case,
        variants,
        metrics,
    }
}

#[rustfmt::skip]
pub(super) const BARS: &[Bar] = &[
    bar("private wait, wrong value", Ratio, 1.0 / 20.0,
        ("calls", &["wait, wrong value, private"]), ALL_WIDTHS, &[]),
    bar("private wake, nobody waiting", Ratio, 0.1,
        ("calls", &["wake, nobody waiting, private"]), ALL_WIDTHS, &[]),
    bar("private requeue, nobody waiting", Ratio, 0.1,
        ("calls", &["requeue, nobody waiting, private"]), ALL_WIDTHS, &[]),
    bar("private wake_op, nobody waiting", Ratio, 0.1,
        ("calls", &["wake_op, nobody waiting, private"]), ALL_WIDTHS, &[]),

    bar("requeue of 512 private waiters: system calls", EveryValue, 0.0,
        ("requeue", &["t = 512,"]), BOTH, &["system calls"]),
    bar("requeue of 512, one at a time", Ratio, 1.0 / 3.0,
        ("requeue", &["t = 512,", "one at a time"]), BOTH, &["moving"]),
    bar("requeue of 512, all at once", Ratio, 1.0,
        ("requeue", &["t = 512,", "all at once"]), BOTH, &["moving"]),

    bar("wake of 64 on one word, the calls", Ratio, 1.1,
        ("wake", &["t = 64,"]), BOTH, &["wake calls"]),
    bar("wake of 64 on one word, until all run", Ratio, 1.1,
        ("wake", &["t = 64,"]), BOTH, &["all run"]),
    bar("wake of 512 on one word, the calls", Ratio, 1.1,
        ("wake", &["t = 512,"]), BOTH, &["wake calls"]),
    bar("wake of 512 on one word, until all run", Ratio, 1.1,
        ("wake", &["t = 512,"]), BOTH, &["all run"]),

    bar("ping-pong, spin off", Ratio, 1.1, ("ping-pong", BOUND), SPIN_OFF, &[]),
    bar("ping-pong, spin on, two CPUs", Ratio, 1.0 / 3.0,
        ("ping-pong", &["two CPUs"]), SPIN_ON, &[]),

    bar("shared wait, wrong value, 32 bits", Ratio, 1.1,
        ("calls", &["wait, wrong value, shared"]), NARROW, &[]),
    bar("shared wake, nobody waiting, 32 bits", Ratio, 1.1,
        ("calls", &["wake, nobody waiting, shared"]), NARROW, &[]),
    bar("shared wait/wake ping-pong, 32 bits", Ratio, 1.1, ("shared", BOUND), NARROW, &[]),
    bar("shared wait, wrong value, 64 bits", Ratio, 2.5,
        ("calls", &["wait, wrong value, shared"]), WIDE, &[]),
    bar("shared wake, nobody waiting, 64 bits", Ratio, 2.5,
        ("calls", &["wake, nobody waiting, shared"]), WIDE, &[]),
    bar("shared wait/wake ping-pong, 64 bits", Ratio, 2.5, ("shared", BOUND), WIDE, &[]),

    bar("4096 other sleepers, to 16", Ratio, 1.5,
        ("scale", &["other sleepers"]), &["waitword 32, N = 4096"], &[]),
    bar("memory, to 64 KiB + 512 B a thread", EveryRatio, 1.0, ("memory", &[]), &["waitword"], &[]),
];
