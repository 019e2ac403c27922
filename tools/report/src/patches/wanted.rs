//! The cases that correspond to the rows of each mail.

use super::today::{Column, Figure};
use crate::number::{figure, interval};
use crate::table::{Cell, INTERVAL, Table};
use crate::workload::threads_and_kind;
use waitword_bench::report::{CaseReport, MetricReport, Report};
use waitword_bench::stats::Ratio;
use waitword_bench::workload::{Patch, calls, cond_perf, hand_over, mutex, pp};

/// What a reader must know about today's figures.
pub(crate) fn about(patch: Patch) -> &'static str {
    match patch {
        Patch::Requeue => {
            "cond-perf: the time of one round, multiplied by the mail's number of rounds. pp: its \
             source is lost; the definition is ours. The mail's “default” and “requeue” are \
             rebuilt as “futex(2), wake all” and “futex(2), requeue”. Ratios to glibc."
        }
        Patch::WakeOp => {
            "The program is lost; the definition is ours: one hand-off between two threads. The \
             mail's three methods are rebuilt under their names. Ratios to glibc."
        }
        Patch::Private => {
            "Ratios to the kernel's futex in the same scope. A tick is a tick of the time-stamp \
             counter, which need not be a CPU cycle."
        }
        Patch::Wide => {
            "Time per operation, of all threads together. The mail's old lock is rebuilt as nptl; \
             if that was not measured, glibc's lock is used as the old one. The gain is the share \
             of the old lock's time that a lock saves."
        }
        Patch::ThroughputOptimized => {
            "The mail's columns are rows here: wait-wake is futex(2) and our WW; PI is futex(2) PI \
             and our PI; TO is our TO. Ratios to glibc."
        }
    }
}

pub(super) fn columns(patch: Patch, report: &Report) -> Vec<Column<'_>> {
    match patch {
        Patch::Requeue => requeue(report),
        Patch::WakeOp => wake_op(report),
        Patch::Private => private(report),
        Patch::Wide => Vec::new(),
        Patch::ThroughputOptimized => throughput(report),
    }
}

/// The cases of the workload of this name.
pub(super) fn cases<'a>(
    report: &'a Report,
    workload: &str,
) -> impl Iterator<Item = &'a CaseReport> {
    let of_name = report.workloads.iter().filter(move |of| of.name == workload);
    of_name.flat_map(|workload| &workload.cases)
}

fn requeue(report: &Report) -> Vec<Column<'_>> {
    let mut columns = Vec::new();
    for (workers, rounds) in [(200, 100), (100, 1000)] {
        for how in ["mutex free", "mutex kept"] {
            let of = |case: &&CaseReport| {
                threads_and_kind(&case.name)
                    .is_some_and(|(threads, kind)| threads == f64::from(workers) && kind == how)
            };
            columns.push(Column {
                head: format!("cond-perf -r {rounds} -n {workers}, {how}"),
                case: cases(report, cond_perf::WORKLOAD.name).find(of),
                note: None,
                figures: vec![Figure {
                    head: "s",
                    metric: "round",
                    scale: f64::from(rounds) / 1e6,
                    ratio: true,
                }],
                how: if workers == 200 { "cond-perf" } else { "cond-perf --full" },
            });
        }
    }
    for (games, exchanges) in [(128, 1000), (1024, 10)] {
        let begin = format!("{games} games of ");
        let case = cases(report, pp::WORKLOAD.name).find(|case| case.name.starts_with(&begin));
        let as_the_mail = format!("{begin}{exchanges} exchanges");
        let other = case.filter(|case| case.name != as_the_mail);
        columns.push(Column {
            head: format!("pp -n {games} -i {exchanges} -S 32768"),
            note: other.map(|case| {
                format!("pp -n {games}: this run has {}; --full measures the mail's.", case.name)
            }),
            case,
            figures: vec![Figure { head: "s", metric: "all ended", scale: 1.0, ratio: true }],
            how: "pp",
        });
    }
    columns
}

fn wake_op(report: &Report) -> Vec<Column<'_>> {
    let names = ["one CPU, signal with the mutex held", "one CPU, signal after unlocking"];
    let column = |name: &str| Column {
        head: name.to_owned(),
        case: cases(report, hand_over::WORKLOAD.name).find(|case| case.name == name),
        note: None,
        figures: vec![
            Figure { head: "ns", metric: "time", scale: 1.0, ratio: true },
            Figure { head: "switches", metric: "switches", scale: 1.0, ratio: false },
        ],
        how: "signal",
    };
    names.map(column).into()
}

fn private(report: &Report) -> Vec<Column<'_>> {
    let mut columns = Vec::new();
    for scope in ["shared", "private"] {
        for words in ["mixing two", "one word"] {
            let name = format!("wait, wrong value, {scope}, {words}");
            columns.push(Column {
                case: cases(report, calls::WORKLOAD.name).find(|case| case.name == name),
                head: name,
                note: None,
                figures: vec![
                    Figure { head: "ns", metric: "", scale: 1.0, ratio: true },
                    Figure {
                        head: "ticks",
                        metric: "",
                        scale: report.machine.ticks_per_nanosecond,
                        ratio: false,
                    },
                ],
                how: "calls",
            });
        }
    }
    columns
}

fn throughput(report: &Report) -> Vec<Column<'_>> {
    let case =
        cases(report, mutex::WORKLOAD.name).find(|case| case.name.starts_with("worst case: "));
    let threads = [
        ("max time, s", "slowest thread"),
        ("min time, s", "fastest thread"),
        ("average, s", "average thread"),
    ];
    vec![Column {
        head: case.map_or("the worst case, a sleep of 1 µs in each section".to_owned(), |case| {
            case.name.clone()
        }),
        case,
        note: None,
        figures: threads
            .map(|(head, metric)| Figure { head, metric, scale: 1e-3, ratio: true })
            .into(),
        how: "mutex",
    }]
}

/// The claims about the throughput-optimized futexes, and today's gain of TO over wait-wake.
pub(crate) fn claims(claims: &[(String, f64, String)], report: &Report) -> Table {
    let mut table = Table::new(&["what", "published", "today, TO/WW", INTERVAL, "case"]);
    for (what, published, unit) in claims {
        let text = Cell::text(what);
        let figure = Cell::Numbers(format!("{} {unit}", figure(*published)));
        // "TO over wait-wake, 5 pauses"
        let pauses =
            what.strip_prefix("TO over wait-wake, ").and_then(|rest| rest.strip_suffix(" pauses"));
        let Some(pauses) = pauses else {
            let note = "measured here as sections in a fixed time: see mutex, least and most";
            table.rows.push(vec![text, figure, Cell::Empty, Cell::Empty, Cell::text(note)]);
            continue;
        };
        let part = format!("L = {pauses}, ");
        let rows = cases(report, mutex::WORKLOAD.name)
            .filter(|case| case.name.contains(&part))
            .filter_map(|case| Some((case, gain(case)?)));
        let before = table.rows.len();
        for (case, ratio) in rows {
            table.rows.push(vec![
                text.clone(),
                figure.clone(),
                Cell::Number(ratio.summary.median),
                Cell::Numbers(interval(ratio.interval)),
                Cell::text(&case.name),
            ]);
        }
        if table.rows.len() == before {
            let note = "not measured in this run (waitword bench mutex)";
            table.rows.push(vec![text, figure, Cell::Empty, Cell::Empty, Cell::text(note)]);
        }
    }
    table
}

/// The throughput of our throughput-optimized mutex, relative to ours that sleeps at once.
fn gain(case: &CaseReport) -> Option<Ratio> {
    let throughput = |name: &str| -> Option<&MetricReport> {
        let variant = case.variants.iter().find(|variant| variant.name == name)?;
        variant.metrics.iter().find(|metric| metric.name == "throughput")
    };
    let (new, old) = (throughput("waitword TO")?, throughput("waitword WW")?);
    (new.values.len() == old.values.len()).then(|| Ratio::of(&new.values, &old.values))?
}
