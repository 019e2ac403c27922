//! A small report with everything that is hard to show: names that are markup, figures that are not
//! numbers, missing items and failures.

use waitword_bench::any::cell::{Beside, CellId, Family};
use waitword_bench::any::child::Figures;
use waitword_bench::any::contender::Contender;
use waitword_bench::any::{self, AnyReport};
use waitword_bench::bars::{BarReport, CellReport, Verdict};
use waitword_bench::harness::Better;
use waitword_bench::machine::Machine;
use waitword_bench::origin::{Origin, Peer};
use waitword_bench::report::{
    CaseReport, MetricReport, MissingPeer, Report, SCHEMA, VariantReport, WorkloadReport,
};
use waitword_bench::stats::{Interval, Ratio, Summary};
use waitword_bench::usage::Usage;
use waitword_bench::workload::Patch;

pub(crate) const ROUNDS: usize = 21;
/// A name that is markup, in HTML and in SVG.
pub(crate) const HOSTILE: &str = "<script>alert(\"1\")</script> & </svg> 'co'";

const MUTEXES: [&str; 10] = [
    "glibc",
    "glibc, adaptive",
    "std",
    "parking_lot",
    "waitword",
    "waitword TO",
    "waitword WW",
    "waitword PI",
    "drop-in",
    HOSTILE,
];
const CONDVARS: [&str; 4] = ["glibc", "std", "waitword", "drop-in"];
const RWLOCKS: [&str; 3] = ["glibc", "waitword, readers first", "absl, Debian's"];
const FUTEXES: [&str; 3] = ["futex(2)", "waitword 32", "waitword 64"];

const OF_TIME: [(&str, &str, Better); 9] = [
    ("throughput", "ops/s", Better::More),
    ("CPU", "ns/op", Better::Less),
    ("fairness", "", Better::More),
    ("least", "", Better::More),
    ("most", "", Better::Neither),
    ("wait p50", "ns", Better::Less),
    ("wait p99", "ns", Better::Less),
    ("wait p99.9", "ns", Better::Less),
    ("wait max", "ns", Better::Less),
];

const OF_PROGRAM: [(&str, &str, Better); 4] = [
    ("throughput", "MB/s", Better::More),
    ("CPU", "ns/op", Better::Less),
    ("switches", "/op", Better::Less),
    ("output compared", "bytes", Better::Neither),
];

/// A report with everything that the page can show.
pub(crate) fn whole() -> Report {
    let time = ("time", "ns/op", Better::Less);
    Report {
        workloads: vec![
            workload(
                "calls",
                Some(Patch::Private),
                ["wait, wrong value, shared, mixing two", "wait, wrong value, private, one word"]
                    .map(|name| case(name, &FUTEXES, &[("", "ns", Better::Less)]))
                    .into(),
            ),
            workload("mutex", Some(Patch::ThroughputOptimized), mutex()),
            workload(
                "rwlock",
                Some(Patch::Wide),
                [1, 2, 4, 16]
                    .map(|threads| case(&format!("t = {threads}, no writes"), &RWLOCKS, &[time]))
                    .into(),
            ),
            workload(
                "signal",
                Some(Patch::WakeOp),
                ["one CPU, signal with the mutex held", "one CPU, signal after unlocking"]
                    .map(|name| {
                        case(
                            name,
                            &CONDVARS,
                            &[
                                ("time", "ns", Better::Less),
                                ("switches", "/hand-over", Better::Less),
                            ],
                        )
                    })
                    .into(),
            ),
            workload(
                "cond-perf",
                Some(Patch::Requeue),
                vec![case(
                    "n = 200, 25 rounds, mutex free",
                    &CONDVARS,
                    &[("round", "µs", Better::Less)],
                )],
            ),
            WorkloadReport {
                missing: vec!["x264 (apt-get install x264)".to_owned()],
                error: Some(format!("it broke: {HOSTILE}")),
                ..workload(
                    "programs",
                    None,
                    vec![case("xz, 4 threads", &["plain", "waitword"], &OF_PROGRAM), odd()],
                )
            },
        ],
        any: Some(random_loads()),
        ..empty()
    }
}

/// Two families with two cells each, in which the drop-in was not measured, and one disturbed cell.
fn random_loads() -> AnyReport {
    let cell = |family, number: u32| {
        let figures = |who: f64, round: f64| Figures {
            throughput: 1e6 / (who + f64::from(number)) * round,
            cpu: 100.0 * who,
            p50: 10.0,
            p99: 100.0,
            p999: 1000.0 / who,
            longest: 1e4,
            spread: 0.9,
            switches: 0.5,
        };
        let rounds = |who| [1.0, 1.1, 1.2, 1.0, 1.1, 1.2].map(|round| figures(who, round)).into();
        let id = CellId { family, seed: 4711, number, beside: Beside::Quiet };
        any::rounds::CellReport {
            cell: any::draw::cell(id),
            repeated: 1,
            disturbed: 0,
            quota: None,
            contenders: vec![
                (Contender::Glibc, rounds(2.0)),
                (Contender::Absl, rounds(1.0)),
                (Contender::Waitword, rounds(1.5)),
                (Contender::WaitwordWaitWake, rounds(1.25)),
            ],
        }
    };
    AnyReport {
        schema: any::SCHEMA,
        version: "0.1.0".to_owned(),
        started: 1_767_225_600,
        origin: Origin {
            peers: vec![Peer {
                name: "absl, Debian's".to_owned(),
                version: "20220623.1".to_owned(),
                remark: Some("with its assertions".to_owned()),
            }],
            ..Origin::default()
        },
        order_seed: 1,
        machine: empty().machine,
        rounds: 6,
        milliseconds: 300,
        cells: [Family::Mutex, Family::Queue]
            .into_iter()
            .flat_map(|family| [0, 1].map(|number| cell(family, number)))
            .collect(),
        disturbed: vec!["pool/quiet/4711/3".to_owned()],
    }
}

/// A run without any workload.
pub(crate) fn empty() -> Report {
    Report {
        schema: SCHEMA,
        version: "0.1.0".to_owned(),
        started: 1_767_225_600,
        seconds: 71.5,
        complete: true,
        rounds: ROUNDS,
        seed: 1234,
        window_milliseconds: 300,
        origin: Origin {
            command: "waitword bench --full".to_owned(),
            commit: Some("0123456789abcdef".to_owned()),
            changed: true,
            compiler: "rustc 1.95.0".to_owned(),
            peers: Vec::new(),
        },
        machine: Machine {
            cpu: format!("Some CPU {HOSTILE}"),
            cpus_allowed: 2,
            cpus_online: 2,
            numa_nodes: 1,
            kernel: "6.18.0".to_owned(),
            preemption: "full".to_owned(),
            glibc: "glibc 2.36".to_owned(),
            idle_governor: None,
            pause_nanoseconds: 20.0,
            ticks_per_nanosecond: 2.5,
            perf_event_paranoid: None,
            private_hash_slots: [Some(16), None],
        },
        missing_peers: vec![MissingPeer {
            name: "nsync".to_owned(),
            install: "apt-get install libnsync-dev".to_owned(),
        }],
        workloads: Vec::new(),
        any: None,
        bars: vec![
            bar("that is met", Verdict::Met, &[(0.5, Verdict::Met)]),
            bar(
                "that is not met",
                Verdict::NotMet,
                &[(3.0, Verdict::NotMet), (2.0, Verdict::NotMet), (0.5, Verdict::Met)],
            ),
            bar("that is not measured", Verdict::NotMeasured, &[]),
        ],
    }
}

fn mutex() -> Vec<CaseReport> {
    let mut cases: Vec<_> = [1, 2, 16]
        .map(|threads| case(&format!("t = {threads}, L = 5, D = 1"), &MUTEXES, &OF_TIME))
        .into();
    cases[1].repeated = 3;
    cases[1].disturbed = 1;
    cases.push(case(
        "worst case: t = 16, 100 sections a thread, each a nap of 1 µs",
        &MUTEXES,
        &["slowest thread", "fastest thread", "average thread"]
            .map(|name| (name, "ms", Better::Less)),
    ));
    cases
}

/// A case with figures that cannot be plotted.
fn odd() -> CaseReport {
    let mut case = case(HOSTILE, &["plain", "waitword"], &[("throughput", "op/s", Better::More)]);
    let mut values = vec![0.0; ROUNDS];
    values[1] = f64::INFINITY;
    values[2] = f64::NAN;
    let metric = &mut case.variants[1].metrics[0];
    metric.ratio = Ratio::of(&values, &[0.0; ROUNDS]);
    metric.summary = Summary { median: f64::NAN, min: 0.0, max: f64::INFINITY };
    metric.values = values;
    case.variants[1].operations = 0;
    case
}

fn workload(name: &str, patch: Option<Patch>, cases: Vec<CaseReport>) -> WorkloadReport {
    WorkloadReport {
        name: name.to_owned(),
        about: format!("the work of {name}"),
        patch,
        cases,
        missing: Vec::new(),
        disturbed: Vec::new(),
        error: None,
    }
}

/// A case whose first variant is the baseline. All figures are different.
fn case(name: &str, variants: &[&str], metrics: &[(&str, &str, Better)]) -> CaseReport {
    let values = |variant: usize, metric: usize| -> Vec<f64> {
        let seed: usize = name.bytes().map(usize::from).sum();
        let size = (seed % 97 + 1) as f64 * 1.37 * (metric * 10 + 1) as f64;
        let spread = |round: usize| 1.0 + 0.01 * ((round * 3 + variant) % ROUNDS) as f64;
        (0..ROUNDS).map(|round| size * (1.0 + variant as f64 / 3.0) * spread(round)).collect()
    };
    let metric = |variant: usize, number: usize, (name, unit, better): (&str, &str, Better)| {
        let values = values(variant, number);
        let baseline = (variant > 0).then(|| Ratio::of(&values, &values_of(&values, variant)));
        MetricReport {
            name: name.to_owned(),
            unit: unit.to_owned(),
            better,
            summary: Summary::of(&values).unwrap(),
            ratio: baseline.flatten(),
            values,
        }
    };
    let variant = |(number, name): (usize, &&str)| VariantReport {
        name: (*name).to_owned(),
        baseline: (number > 0).then(|| variants[0].to_owned()),
        metrics: metrics.iter().enumerate().map(|(n, m)| metric(number, n, *m)).collect(),
        cpu: None,
        operations: 1000,
        usage: Usage {
            cpu_seconds: 1e-3 * (number + 1) as f64,
            voluntary_switches: 100 * number as u64,
            involuntary_switches: 7,
        },
    };
    CaseReport {
        seconds: 1.0,
        name: name.to_owned(),
        rounds: ROUNDS,
        repeated: 0,
        disturbed: 0,
        variants: variants.iter().enumerate().map(variant).collect(),
    }
}

/// A baseline's values in the same rounds: higher for some variants, lower for others.
fn values_of(values: &[f64], variant: usize) -> Vec<f64> {
    values.iter().map(|value| value * (0.4 + 0.21 * variant as f64)).collect()
}

fn bar(what: &str, verdict: Verdict, cells: &[(f64, Verdict)]) -> BarReport {
    let cell = |&(median, verdict): &(f64, Verdict)| CellReport {
        label: format!("somebody: {median}"),
        figure: Summary { median, min: median, max: median },
        interval: Some(Interval { low: median, high: median }),
        verdict,
    };
    BarReport {
        what: what.to_owned(),
        limit: 1.0,
        at_least: false,
        verdict,
        cells: cells.iter().map(cell).collect(),
    }
}
