//! The list of bars: each sets a limit for some figures of a workload.

use crate::harness::Better;
use Figure::{
    AtLeast, EveryRatio, EveryValue, Ratio, ToBest, ToCase, ToFastest, ToLeastOf, ToMetric,
    ToMostOf, Value, ValueAtLeast,
};

/// The figure that a bar limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Figure {
    /// The median of the ratio to the baseline.
    Ratio,
    /// The median of the ratio to the baseline, where more is better: *at least* the limit.
    AtLeast,
    /// The greatest ratio to the baseline, for limits that every round must meet.
    EveryRatio,
    /// The greatest of the values, for limits that every round must meet.
    EveryValue,
    /// The median of the values.
    Value,
    /// The median of the values, where more is better: at least the limit.
    ValueAtLeast,
    /// The median of the per-round ratios to the smallest value of these variants.
    ToLeastOf(&'static [&'static str]),
    /// The median of the per-round ratios to the greatest value of these variants: at least the
    /// limit.
    ToMostOf(&'static [&'static str]),
    /// The median of the per-round ratios to the best value of any peer. If more is better, at
    /// least the limit.
    ToBest,
    /// The median of the ratio to the peer whose median of this other metric is the greatest.
    ToFastest(&'static str),
    /// The median of the ratio to another metric of the same variant.
    ToMetric(&'static str),
    /// The median of the ratio to the same variant in another case, whose name contains this.
    ToCase(&'static str),
}

/// One goal.
#[derive(Debug)]
pub(super) struct Bar {
    pub(super) what: &'static str,
    /// Upper or lower limit, depending on `figure`.
    pub(super) limit: f64,
    pub(super) figure: Figure,
    pub(super) workload: &'static str,
    /// Parts of the case's name; all must occur.
    pub(super) case: &'static [&'static str],
    /// Names of the variants.
    pub(super) variants: &'static [&'static str],
    /// Names of the metrics; empty selects all.
    pub(super) metrics: &'static [&'static str],
}

impl Bar {
    /// Whether the limit is a lower one for a metric of this kind.
    pub(super) fn is_at_least(&self, better: Better) -> bool {
        match self.figure {
            AtLeast | ValueAtLeast | ToMostOf(_) => true,
            ToBest => better == Better::More,
            _ => false,
        }
    }
}

const ALL_WIDTHS: &[&str] = &["waitword 8", "waitword 16", "waitword 32", "waitword 64"];
const RECORDER: &[&str] = &["waitword, waiter", "waitword, holder"];
const BOTH: &[&str] = &["waitword 32", "waitword 64"];
const NARROW: &[&str] = &["waitword 32"];
const WIDE: &[&str] = &["waitword 64"];
const SPIN_OFF: &[&str] = &["waitword 32, spin off", "waitword 64, spin off"];
const SPIN_ON: &[&str] = &["waitword 32, spin on", "waitword 64, spin on"];

const OURS: &[&str] = &["waitword"];
/// glibc's objects, served by our drop-in.
const DROP_IN: &[&str] = &["drop-in"];
const OUR_RWLOCKS: &[&str] = &["waitword, readers first", "waitword, writers first"];
/// Our flavours that do not adapt.
const FIXED: &[&str] = &["waitword TO", "waitword WW", "waitword PI"];
/// The peers that our longest waits are compared with.
const FAIR: &[&str] = &["parking_lot", "glibc"];

/// Matches "one CPU" and "two CPUs". If threads are not bound, the scheduler puts them on one CPU
/// or on two, and the figure differs by a factor of eight. Such cases are shown but decide nothing.
const BOUND: &[&str] = &["CPU"];

const fn bar(
    what: &'static str,
    figure: Figure,
    limit: f64,
    (workload, case): (&'static str, &'static [&'static str]),
    variants: &'static [&'static str],
    metrics: &'static [&'static str],
) -> Bar {
    Bar { what, limit, figure, workload, case, variants, metrics }
}

#[rustfmt::skip]
pub(super) const BARS: &[Bar] = &[
    bar("private wait, wrong value", Ratio, 1.0 / 20.0,
        ("calls", &["wait, wrong value, private"]), ALL_WIDTHS, &[]),
    bar("private wake, no waiters", Ratio, 0.1,
        ("calls", &["wake, no waiters, private"]), ALL_WIDTHS, &[]),
    bar("private requeue, no waiters", Ratio, 0.1,
        ("calls", &["requeue, no waiters, private"]), ALL_WIDTHS, &[]),
    bar("private wake_op, no waiters", Ratio, 0.1,
        ("calls", &["wake_op, no waiters, private"]), ALL_WIDTHS, &[]),

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
    bar("wake of 512 on one word, the calls", Ratio, 1.0,
        ("wake", &["t = 512,"]), BOTH, &["wake calls"]),
    bar("wake of 512 on one word, until all run", Ratio, 1.0,
        ("wake", &["t = 512,"]), BOTH, &["all run"]),

    bar("ping-pong, spin off", Ratio, 1.1, ("ping-pong", BOUND), SPIN_OFF, &[]),
    bar("ping-pong, spin on, two CPUs", Ratio, 1.0 / 3.0,
        ("ping-pong", &["two CPUs"]), SPIN_ON, &[]),

    bar("shared wait, wrong value, 32 bits", Ratio, 1.1,
        ("calls", &["wait, wrong value, shared"]), NARROW, &[]),
    bar("shared wake, no waiters, 32 bits", Ratio, 1.1,
        ("calls", &["wake, no waiters, shared"]), NARROW, &[]),
    bar("shared wait/wake ping-pong, 32 bits", Ratio, 1.1, ("shared", BOUND), NARROW, &[]),
    bar("shared wait, wrong value, 64 bits", Ratio, 2.5,
        ("calls", &["wait, wrong value, shared"]), WIDE, &[]),
    bar("shared wake, no waiters, 64 bits", Ratio, 2.5,
        ("calls", &["wake, no waiters, shared"]), WIDE, &[]),
    bar("shared wait/wake ping-pong, 64 bits", Ratio, 2.5, ("shared", BOUND), WIDE, &[]),

    bar("4096 other sleepers, to 16", Ratio, 1.5,
        ("scale", &["other sleepers"]), &["waitword 32, N = 4096"], &[]),
    bar("memory, to 64 KiB + 512 B a thread", EveryRatio, 1.0, ("memory", &[]), &["waitword"], &[]),

    bar("uncontended mutex, to the fastest peer", ToBest, 1.03,
        ("uncontended", &["mutex"]), OURS, &[]),
    bar("uncontended read lock, to the fastest peer", ToBest, 1.03,
        ("uncontended", &["rwlock, reading"]), OUR_RWLOCKS, &[]),
    bar("uncontended rwlock, to glibc's", Ratio, 0.8,
        ("uncontended", &["rwlock"]), OUR_RWLOCKS, &[]),

    bar("mutex: throughput, to the fastest peer", ToBest, 0.97,
        ("mutex", &["D = 1"]), OURS, &["throughput"]),
    bar("mutex: throughput at L = 50, to glibc, 2 threads", AtLeast, 1.3,
        ("mutex", &["t = 2,", "L = 50, D = 1"]), OURS, &["throughput"]),
    bar("mutex: throughput at L = 50, to glibc, 4 threads", AtLeast, 1.3,
        ("mutex", &["t = 4,", "L = 50, D = 1"]), OURS, &["throughput"]),
    bar("mutex: throughput at L = 50, to glibc, 16 threads", AtLeast, 1.3,
        ("mutex", &["t = 16,", "L = 50, D = 1"]), OURS, &["throughput"]),
    bar("mutex: throughput at L = 50, to glibc, 64 threads", AtLeast, 1.1,
        ("mutex", &["t = 64,", "L = 50, D = 1"]), OURS, &["throughput"]),
    bar("mutex: CPU, to the fastest peer's", ToFastest("throughput"), 1.05,
        ("mutex", &["D = 1"]), OURS, &["CPU"]),
    bar("mutex: fairness", ValueAtLeast, 0.95,
        ("mutex", &["D = 1"]), OURS, &["fairness"]),
    bar("mutex: wait p99.9, to glibc's and parking_lot's", ToLeastOf(FAIR), 1.0,
        ("mutex", &["D = 1"]), OURS, &["wait p99.9"]),
    bar("mutex: longest wait, to glibc's and parking_lot's", ToLeastOf(FAIR), 1.0,
        ("mutex", &["D = 1"]), OURS, &["wait max"]),
    bar("worst case: slowest thread, to the fastest", ToMetric("fastest thread"), 1.2,
        ("mutex", &["worst case"]), OURS, &["slowest thread"]),
    bar("worst case: average thread, to wait-wake's", ToLeastOf(&["waitword WW"]), 1.0,
        ("mutex", &["worst case"]), OURS, &["average thread"]),
    bar("shifting load, each phase, to the best fixed flavour", ToMostOf(FIXED), 0.95,
        ("shifting", &["ramp"]), OURS, &[]),
    bar("shifting load, the whole, to the best fixed flavour", ToMostOf(FIXED), 1.0,
        ("shifting", &["ramp"]), OURS, &["whole"]),

    bar("broadcast: switches a woken thread", Value, 1.15,
        ("cond-perf", &["n = "]), OURS, &["switches"]),
    bar("broadcast: CPU, to glibc's", Ratio, 0.6, ("cond-perf", &["n = "]), OURS, &["CPU"]),
    bar("broadcast: time, to the fastest peer's", ToBest, 1.0,
        ("cond-perf", &["n = "]), OURS, &["round"]),
    bar("broadcast: CPU, to the least of the peers'", ToBest, 1.0,
        ("cond-perf", &["n = "]), OURS, &["CPU"]),
    bar("broadcast: time, to parking_lot's", ToLeastOf(&["parking_lot"]), 0.9,
        ("cond-perf", &["n = "]), OURS, &["round"]),
    bar("pairs: time, to glibc's", Ratio, 1.0, ("pp", &["games"]), OURS, &["all ended"]),
    bar("pairs: time, to parking_lot's", ToLeastOf(&["parking_lot"]), 1.0,
        ("pp", &["games"]), OURS, &["all ended"]),
    bar("signal on one CPU: switches a hand-over", Value, 1.02,
        ("signal", &["one CPU"]), OURS, &["switches"]),
    bar("signal on one CPU: time, to glibc's", Ratio, 1.0 / 1.3,
        ("signal", &["one CPU"]), OURS, &["time"]),
    bar("signal on two CPUs: time, to glibc's", Ratio, 1.0 / 3.0,
        ("signal", &["two CPUs"]), OURS, &["time"]),

    bar("rwlock, one thread, to glibc's", Ratio, 0.8,
        ("rwlock", &["t = 1,"]), OUR_RWLOCKS, &["time"]),
    bar("rwlock, two readers, to glibc's", Ratio, 0.25,
        ("rwlock", &["t = 2, no writes"]), OUR_RWLOCKS, &["time"]),
    bar("rwlock, one write in 10, 2 threads, to glibc's", Ratio, 1.0 / 1.5,
        ("rwlock", &["t = 2, one write in 10 operations"]), OUR_RWLOCKS, &["time"]),
    bar("rwlock, one write in 10, 4 threads, to glibc's", Ratio, 1.0 / 1.5,
        ("rwlock", &["t = 4, one write in 10 operations"]), OUR_RWLOCKS, &["time"]),
    bar("rwlock, one write in 10, 8 threads, to glibc's", Ratio, 1.0 / 1.5,
        ("rwlock", &["t = 8, one write in 10 operations"]), OUR_RWLOCKS, &["time"]),
    bar("rwlock, one write in 10, 16 threads, to glibc's", Ratio, 1.0 / 1.5,
        ("rwlock", &["t = 16, one write in 10 operations"]), OUR_RWLOCKS, &["time"]),
    bar("drop-in: uncontended mutex, rwlock, semaphore, once, to glibc's", Ratio, 1.1,
        ("uncontended", &[]), DROP_IN, &[]),
    bar("drop-in: uncontended reading, to glibc's", Ratio, 0.9,
        ("uncontended", &["rwlock, reading"]), DROP_IN, &[]),
    bar("drop-in: broadcast to 200, switches a woken thread", Value, 1.2,
        ("cond-perf", &["n = 200"]), DROP_IN, &["switches"]),
    bar("drop-in: broadcast to 200, CPU, to glibc's", Ratio, 0.65,
        ("cond-perf", &["n = 200"]), DROP_IN, &["CPU"]),
    bar("drop-in: signal on two CPUs, time, to glibc's", Ratio, 1.0 / 2.5,
        ("signal", &["two CPUs"]), DROP_IN, &["time"]),
    bar("drop-in: mutex, throughput, to glibc's", AtLeast, 0.97,
        ("mutex", &["D = 1"]), DROP_IN, &["throughput"]),
    bar("drop-in: mutex at L = 50, to glibc's, 2 threads", AtLeast, 1.3,
        ("mutex", &["t = 2,", "L = 50, D = 1"]), DROP_IN, &["throughput"]),
    bar("drop-in: mutex at L = 50, to glibc's, 4 threads", AtLeast, 1.3,
        ("mutex", &["t = 4,", "L = 50, D = 1"]), DROP_IN, &["throughput"]),
    bar("drop-in: mutex at L = 50, to glibc's, 16 threads", AtLeast, 1.3,
        ("mutex", &["t = 16,", "L = 50, D = 1"]), DROP_IN, &["throughput"]),
    bar("drop-in: mutex at L = 50, to glibc's, 64 threads", AtLeast, 1.1,
        ("mutex", &["t = 64,", "L = 50, D = 1"]), DROP_IN, &["throughput"]),
    bar("drop-in: rwlock, two readers, to glibc's", Ratio, 1.0 / 3.0,
        ("rwlock", &["t = 2, no writes"]), DROP_IN, &["time"]),
    bar("drop-in: rwlock, one write in 10, to glibc's", Ratio, 1.0 / 1.3,
        ("rwlock", &["one write in 10 operations"]), DROP_IN, &["time"]),
    bar("rwlock, reading, 16 threads, to 2", ToCase("t = 2, no writes"), 1.15,
        ("rwlock", &["t = 16, no writes"]), OUR_RWLOCKS, &["time"]),

    bar("whole programs: throughput, to plain", AtLeast, 0.98,
        ("programs", &[]), OURS, &["throughput"]),

    bar("recording: db_bench fillrandom, throughput, to not recording",
        ToMostOf(&["waitword"]), 0.97,
        ("recording", &["db_bench"]), &["recording"], &["throughput"]),
    bar("recording: sysbench threads, throughput, to not recording",
        ToMostOf(&["waitword"]), 0.97,
        ("recording", &["sysbench threads"]), &["recording"], &["throughput"]),
    bar("recording: every operation waits, throughput, to not recording",
        ToMostOf(&["waitword"]), 0.9,
        ("recording", &["holders"]), &["recording"], &["throughput"]),
    bar("recording: one mutex in 16 threads, throughput, to not recording",
        ToMostOf(&["waitword"]), 0.9,
        ("recording", &["sysbench mutex"]), &["recording"], &["throughput"]),
    bar("a recorded wait without its stack, ns", Value, 200.0,
        ("recording", &["wait, 0 frames"]), RECORDER, &["time"]),
    bar("a recorded wait with 32 frames, ns", Value, 1000.0,
        ("recording", &["wait, 32 frames"]), RECORDER, &["time"]),
    bar("recording: memory, to 1 MiB and 64 KiB a thread", Ratio, 1.0,
        ("recording", &["memory"]), &["waitword"], &[]),
];
