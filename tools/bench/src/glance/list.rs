//! The cases that are shown, by patch; and README's rows.

use crate::patch::Patch;

/// A case to show: its label, the workload, parts of the case's name, and the metric.
pub(super) type Chosen = (&'static str, &'static str, &'static [&'static str], &'static str);

#[rustfmt::skip]
const REQUEUE: &[Chosen] = &[
    ("broadcast to 200, mutex held", "cond-perf", &["n = 200", "mutex kept"], "round"),
    ("broadcast to 200, free", "cond-perf", &["n = 200", "mutex free"], "round"),
    ("pp, 128 pairs", "pp", &["128 games"], "all ended"),
    ("pp, 1024 pairs", "pp", &["1024 games"], "all ended"),
    ("requeue 512 at once", "requeue", &["t = 512", "all at once"], "moving"),
    ("wake 512, until all run", "wake", &["t = 512", "all at once"], "all run"),
];

#[rustfmt::skip]
const WAKE_OP: &[Chosen] = &[
    ("signal, one CPU, held", "signal", &["one CPU", "held"], "time"),
    ("signal, one CPU, unlocked", "signal", &["one CPU", "after unlocking"], "time"),
    ("signal, two CPUs, held", "signal", &["two CPUs", "held"], "time"),
    ("signal, two CPUs, unlocked", "signal", &["two CPUs", "after unlocking"], "time"),
    ("signal, 16 pairs, unlocked", "signal", &["16 pairs", "after unlocking"], "time"),
];

#[rustfmt::skip]
const PRIVATE: &[Chosen] = &[
    ("wait, wrong value", "calls", &["wait, wrong value, private, one word"], ""),
    ("wake, no waiters", "calls", &["wake, no waiters, private, one word"], ""),
    ("requeue, no waiters", "calls", &["requeue, no waiters, private"], ""),
    ("wait, wrong value, shared", "calls", &["wait, wrong value, shared, one word"], ""),
    ("hand-off, one CPU", "ping-pong", &["one CPU"], ""),
    ("hand-off, two CPUs", "ping-pong", &["two CPUs"], ""),
];

#[rustfmt::skip]
const WIDE: &[Chosen] = &[
    ("2 threads read", "rwlock", &["t = 2, no writes"], "time"),
    ("16 threads read", "rwlock", &["t = 16, no writes"], "time"),
    ("2 threads, 10 % writes", "rwlock", &["t = 2, one write in 10 "], "time"),
    ("the same, 1 µs apart", "rwlock", &["t = 2, 1000 ns apart"], "time"),
    ("16 threads, 10 % writes", "rwlock", &["t = 16, one write in 10 "], "time"),
    ("writes with 9 readers", "rwlock", &["9 readers, 1 writer"], "writes"),
];

#[rustfmt::skip]
const THROUGHPUT: &[Chosen] = &[
    ("mutex, uncontended", "uncontended", &["mutex"], ""),
    ("2 threads, 5 pauses inside", "mutex", &["t = 2, L = 5, D = 1"], "throughput"),
    ("16 threads, 50 pauses", "mutex", &["t = 16, L = 50, D = 1"], "throughput"),
    ("64 threads, 50 pauses", "mutex", &["t = 64, L = 50, D = 1"], "throughput"),
    ("16 threads sleep inside", "mutex", &["worst case"], "average thread"),
    ("shifting load", "shifting", &["ramp"], "whole"),
];

/// The locks' rows in README.
#[rustfmt::skip]
pub(super) const OF_LOCKS: &[Chosen] = &[
    ("mutex, uncontended", "uncontended", &["mutex"], ""),
    ("read lock, uncontended", "uncontended", &["rwlock, reading"], ""),
    ("2 threads, 5 pauses inside", "mutex", &["t = 2, L = 5, D = 1"], "throughput"),
    ("16 threads, 50 pauses", "mutex", &["t = 16, L = 50, D = 1"], "throughput"),
    ("... fairness (Jain), 1 is best", "mutex", &["t = 16, L = 50, D = 1"], "fairness"),
    ("... longest wait", "mutex", &["t = 16, L = 50, D = 1"], "wait max"),
    ("2 threads read", "rwlock", &["t = 2, no writes"], "time"),
    ("2 threads, 10 % writes", "rwlock", &["t = 2, one write in 10 "], "time"),
    ("the same, 1 µs apart", "rwlock", &["t = 2, 1000 ns apart"], "time"),
    ("16 threads, 10 % writes", "rwlock", &["t = 16, one write in 10 "], "time"),
    ("writes with 9 readers", "rwlock", &["9 readers, 1 writer"], "writes"),
    ("broadcast to 200, mutex held", "cond-perf", &["n = 200", "mutex kept"], "round"),
    ("broadcast to 200, free", "cond-perf", &["n = 200", "mutex free"], "round"),
    ("signal, one CPU, unlocked", "signal", &["one CPU", "after unlocking"], "time"),
    ("signal, two CPUs, held", "signal", &["two CPUs", "held"], "time"),
    ("pp, 128 pairs", "pp", &["128 games"], "all ended"),
];

#[rustfmt::skip]
pub(super) const OF_FUTEXES: &[Chosen] = &[
    ("wait, wrong value", "calls", &["wait, wrong value, private, one word"], ""),
    ("wake, no waiters", "calls", &["wake, no waiters, private, one word"], ""),
    ("wake_op, no waiters", "calls", &["wake_op, no waiters, private"], ""),
    ("requeue 512, one at a time", "requeue", &["t = 512", "one at a time"], "moving"),
    ("wake 512, until all run", "wake", &["t = 512", "all at once"], "all run"),
    ("hand-off, two CPUs", "ping-pong", &["two CPUs"], ""),
    ("hand-off, one CPU", "ping-pong", &["one CPU"], ""),
];

/// The cases of a patch.
pub(super) fn chosen(patch: Patch) -> &'static [Chosen] {
    match patch {
        Patch::Requeue => REQUEUE,
        Patch::WakeOp => WAKE_OP,
        Patch::Private => PRIVATE,
        Patch::Wide => WIDE,
        Patch::ThroughputOptimized => THROUGHPUT,
    }
}
