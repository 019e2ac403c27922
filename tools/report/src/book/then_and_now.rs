//! The figures of a patch in one table: at the left what its mail published, at the right what was
//! measured here. Absolute figures of two machines two decades apart say nothing together; what can
//! be compared is the gain, the old way's time divided by the new way's.
//!
//! The old ways are rebuilt by the benchmark, so today's gain is not against a memory.

use super::{cases, metric};
use crate::number::figure;
use crate::patches::claims_table;
use crate::published::{Grouped, Published};
use crate::table::{Cell, Table};
use crate::workload::threads_and_kind;
use waitword_bench::report::{CaseReport, MetricReport, Report};
use waitword_bench::stats::Ratio;
use waitword_bench::workload::{calls, cond_perf, hand_over, mutex, pp, rwlock};

/// A table, and where its measured figures come from.
pub(super) struct Both {
    pub(super) text: String,
    pub(super) workload: &'static str,
    pub(super) cases: Vec<String>,
}

/// The table of one patch.
pub(super) fn of(patch: &str, report: &Report) -> Result<Both, String> {
    let published = Published::load();
    match patch {
        "requeue" => requeue(&published, report),
        "pp" => ping_pong(&published, report),
        "wake-op" => wake_op(&published, report),
        "private" => private(&published, report),
        "wide" => wide(&published, report),
        "throughput" => throughput(&published, report),
        "claims" => claims(&published, report),
        other => Err(format!("there is no patch `{other}`")),
    }
}

/// The columns of the mail that has figures for 1, 2 and 4 CPUs: 2, as in the stored reports.
const TWO_CPUS: usize = 1;

fn requeue(published: &Published, report: &Report) -> Result<Both, String> {
    let mut table = Table::new(&[
        "",
        "then: wake all, s",
        "requeue, s",
        "gain",
        "now, mutex",
        "wake all, s",
        "requeue, s",
        "gain",
        "waitword, s",
        "gain",
    ]);
    let mut used = Vec::new();
    for (program, rounds, workers) in
        [("cond-perf -r 100 -n 200", 100.0, 200.0), ("cond-perf -r 1000 -n 100", 1000.0, 100.0)]
    {
        let then = grouped(&published.requeue.rows, program, ["default", "requeue"], TWO_CPUS)?;
        for (how, kept) in [("kept", "mutex kept"), ("free", "mutex free")] {
            let case = case(report, cond_perf::WORKLOAD.name, |name| {
                threads_and_kind(name).is_some_and(|(of, kind)| of == workers && kind == kept)
            })?;
            let [all, requeue, ours] = ["futex(2), wake all", "futex(2), requeue", "waitword"]
                .map(|variant| of_variant(case, variant, "round"));
            let (all, requeue, ours) = (all?, requeue?, ours?);
            let scale = rounds / 1e6;
            let mut cells = vec![Cell::text(program)];
            cells.extend(then.iter().map(|seconds| Cell::Numbers(format!("{seconds:.3}"))));
            cells.push(times(then[0] / then[1]));
            cells.push(Cell::text(how));
            cells.extend([all, requeue].map(|of| Cell::Number(of.summary.median * scale)));
            cells.push(gain(all, requeue)?);
            cells.push(Cell::Number(ours.summary.median * scale));
            cells.push(gain(all, ours)?);
            table.rows.push(cells);
            used.push(case.name.clone());
        }
    }
    both(&table, &source(&published.requeue), cond_perf::WORKLOAD.name, used)
}

fn ping_pong(published: &Published, report: &Report) -> Result<Both, String> {
    let program = "pp -v -n 128 -i 1000 -S 32768";
    let then = grouped(&published.requeue.rows, program, ["default", "requeue"], TWO_CPUS)?;
    let case = case(report, pp::WORKLOAD.name, |name| name.starts_with("128 games"))?;
    let mut table = Table::new(&["", "wake all, s", "requeue, s", "gain"]);
    let mut cells = vec![Cell::text(format!("then: {program}"))];
    cells.extend(then.iter().map(|seconds| Cell::Numbers(format!("{seconds:.3}"))));
    cells.push(times(then[0] / then[1]));
    table.rows.push(cells);
    let all = of_variant(case, "futex(2), wake all", "all ended")?;
    for (what, name) in [("futex(2), requeue", "kernel"), ("waitword", "waitword")] {
        let new = of_variant(case, what, "all ended")?;
        table.rows.push(vec![
            Cell::text(format!("now: {}, {name}", case.name)),
            Cell::Number(all.summary.median),
            Cell::Number(new.summary.median),
            gain(all, new)?,
        ]);
    }
    both(&table, &source(&published.requeue), pp::WORKLOAD.name, vec![case.name.clone()])
}

fn wake_op(published: &Published, report: &Report) -> Result<Both, String> {
    const VARIANTS: [&str; 5] = ["nptl-orig", "nptl-requeue", "nptl-wake_op", "glibc", "waitword"];
    let mut table = Table::new(&[
        "", "unit", "original", "requeue", "wake_op", "gain", "glibc", "waitword", "gain",
    ]);
    for row in published.wake_op.rows.iter().filter(|row| row.0 == VARIANTS[0]) {
        let run = |name: &str| {
            let of = |other: &&Grouped| other.0 == name && other.1 == row.1;
            let found = published.wake_op.rows.iter().find(of);
            found.and_then(|row| row.2[0]).ok_or_else(|| format!("no {name}"))
        };
        let (old, requeue, new) = (run(VARIANTS[0])?, run(VARIANTS[1])?, run(VARIANTS[2])?);
        let seconds = |of: f64| Cell::Numbers(format!("{of:.3}"));
        table.rows.push(vec![
            Cell::text(format!("then, {}", row.1)),
            Cell::text("s"),
            seconds(old),
            seconds(requeue),
            seconds(new),
            times(old / new),
            Cell::Empty,
            Cell::Empty,
            Cell::Empty,
        ]);
    }
    let mut used = Vec::new();
    for (name, what) in [
        ("one CPU, signal with the mutex held", "now, signal with the mutex held"),
        ("one CPU, signal after unlocking", "now, signal after unlocking"),
    ] {
        let case = case(report, hand_over::WORKLOAD.name, |of| of == name)?;
        let of = |variant: &str| of_variant(case, variant, "time");
        let median = |variant: &str| Ok::<_, String>(Cell::Number(of(variant)?.summary.median));
        table.rows.push(vec![
            Cell::text(what),
            Cell::text("ns"),
            median(VARIANTS[0])?,
            median(VARIANTS[1])?,
            median(VARIANTS[2])?,
            gain(of(VARIANTS[0])?, of(VARIANTS[2])?)?,
            median(VARIANTS[3])?,
            median(VARIANTS[4])?,
            gain(of(VARIANTS[0])?, of(VARIANTS[4])?)?,
        ]);
        used.push(case.name.clone());
    }
    both(&table, &source(&published.wake_op), hand_over::WORKLOAD.name, used)
}

fn private(published: &Published, report: &Report) -> Result<Both, String> {
    let mut table =
        Table::new(&["", "unit", "shared", "private", "gain", "waitword, private", "gain"]);
    let mut used = Vec::new();
    for (mail, words) in [("mixing 2 futexes", "mixing two"), ("one futex", "one word")] {
        let then = |call: &str| {
            let of = published.private.rows.iter().find(|row| row.0 == call && row.1 == mail);
            of.map(|row| row.2).ok_or_else(|| format!("no {call}"))
        };
        let old = then("FUTEX_WAIT, value differs")?;
        let new = then("FUTEX_WAIT_PRIVATE, value differs")?;
        table.rows.push(vec![
            Cell::text(format!("then, {mail}")),
            Cell::text("cycles"),
            Cell::Numbers(old.to_string()),
            Cell::Numbers(new.to_string()),
            times(old / new),
            Cell::Empty,
            Cell::Empty,
        ]);
        let of = |scope: &str| {
            let name = format!("wait, wrong value, {scope}, {words}");
            case(report, calls::WORKLOAD.name, |of| of == name)
        };
        let (shared, private) = (of("shared")?, of("private")?);
        let old = of_variant(shared, "futex(2)", "")?;
        let new = of_variant(private, "futex(2)", "")?;
        let ours = of_variant(private, "waitword 32", "")?;
        table.rows.push(vec![
            Cell::text(format!("now, {words}")),
            Cell::text("ns"),
            Cell::Number(old.summary.median),
            Cell::Number(new.summary.median),
            times(old.summary.median / new.summary.median),
            Cell::Number(ours.summary.median),
            times(old.summary.median / ours.summary.median),
        ]);
        used.extend([shared.name.clone(), private.name.clone()]);
    }
    both(&table, &source(&published.private), calls::WORKLOAD.name, used)
}

fn wide(published: &Published, report: &Report) -> Result<Both, String> {
    let mut table = Table::new(&[
        "threads",
        "then: old rwlock",
        "64-bit",
        "gain",
        "now: old, ns/op",
        "waitword, ns/op",
        "gain",
    ]);
    let mut used = Vec::new();
    for row in &published.wide.rows {
        let measured = case(report, rwlock::WORKLOAD.name, |name| {
            threads_and_kind(name)
                .is_some_and(|(of, kind)| of == f64::from(row.0) && kind == "no writes")
        });
        // The mail has rows that are not measured here.
        let Ok(case) = measured else { continue };
        let old = of_variant(case, "nptl", "time")?;
        let new = of_variant(case, "waitword, readers first", "time")?;
        table.rows.push(vec![
            Cell::Numbers(row.0.to_string()),
            Cell::Numbers(format!("{:.2}G", row.1 / 1e9)),
            Cell::Numbers(format!("{:.2}G", row.2 / 1e9)),
            times(row.1 / row.2),
            Cell::Number(old.summary.median),
            Cell::Number(new.summary.median),
            gain(old, new)?,
        ]);
        used.push(case.name.clone());
    }
    if used.is_empty() {
        return Err("no case of the rwlock's table was measured".to_owned());
    }
    both(&table, &source(&published.wide), rwlock::WORKLOAD.name, used)
}

fn throughput(published: &Published, report: &Report) -> Result<Both, String> {
    let mut table = Table::new(&[
        "thread",
        "then: wait-wake, s",
        "PI, s",
        "TO, s",
        "now: futex(2), ms",
        "futex(2) PI, ms",
        "waitword TO, ms",
        "waitword, ms",
    ]);
    let case = case(report, mutex::WORKLOAD.name, |name| name.starts_with("worst case: "))?;
    for (row, metric) in published.throughput_optimized.rows.iter().zip([
        "slowest thread",
        "fastest thread",
        "average thread",
    ]) {
        let mut cells = vec![Cell::text(metric.trim_end_matches(" thread"))];
        cells.extend(row.2.iter().map(|seconds| {
            seconds.map_or(Cell::Empty, |seconds| Cell::Numbers(format!("{seconds:.2}")))
        }));
        for variant in ["futex(2)", "futex(2) PI", "waitword TO", "waitword"] {
            cells.push(Cell::Number(of_variant(case, variant, metric)?.summary.median));
        }
        table.rows.push(cells);
    }
    let mail = source(&published.throughput_optimized);
    both(&table, &mail, mutex::WORKLOAD.name, vec![case.name.clone()])
}

/// What the mail of the throughput-optimized futexes says in its text.
fn claims(published: &Published, report: &Report) -> Result<Both, String> {
    let mail = &published.throughput_optimized;
    let table = claims_table(&mail.claims, report);
    let used = cases(report, mutex::WORKLOAD.name)
        .filter(|case| case.name.contains("L = 5, ") || case.name.contains("L = 50, "))
        .map(|case| case.name.clone());
    both(&table, &source(mail), mutex::WORKLOAD.name, used.collect())
}

fn both(
    table: &Table,
    mail: &str,
    workload: &'static str,
    cases: Vec<String>,
) -> Result<Both, String> {
    let text = format!("{}\n<sub>Then: {mail}. Now: medians of:</sub>\n", table.markdown());
    Ok(Both { text, workload, cases })
}

fn source<Row>(mail: &crate::published::Mail<Row>) -> String {
    let machine = mail.machine.as_deref().unwrap_or("machine not stated");
    format!("{}; {machine}; {}", mail.mail, mail.unit)
}

/// One column of the two rows of a program.
fn grouped(
    rows: &[Grouped],
    program: &str,
    variants: [&str; 2],
    column: usize,
) -> Result<[f64; 2], String> {
    let of = |variant: &str| {
        let row = rows.iter().find(|row| row.0 == program && row.1 == variant);
        let figure = row.and_then(|row| *row.2.get(column)?);
        figure.ok_or_else(|| format!("the mail has no {program}, {variant}"))
    };
    Ok([of(variants[0])?, of(variants[1])?])
}

fn case<'a>(
    report: &'a Report,
    workload: &'a str,
    is_it: impl Fn(&str) -> bool,
) -> Result<&'a CaseReport, String> {
    let found = cases(report, workload).find(|case| is_it(&case.name));
    found.ok_or_else(|| format!("a case of {workload} was not measured"))
}

fn of_variant<'a>(case: &'a CaseReport, name: &str, of: &str) -> Result<&'a MetricReport, String> {
    let variant = case.variants.iter().find(|variant| variant.name == name);
    let found = variant.and_then(|variant| metric(variant, of));
    found.ok_or_else(|| format!("{}: no `{of}` of {name}", case.name))
}

/// The old way's time divided by the new way's, of two variants of one case: the median of the
/// rounds' ratios.
fn gain(old: &MetricReport, new: &MetricReport) -> Result<Cell, String> {
    let are_pairs = old.values.len() == new.values.len();
    let ratio = are_pairs.then(|| Ratio::of(&old.values, &new.values)).flatten();
    let gain = ratio.map(|ratio| ratio.summary.median).filter(|gain| gain.is_finite());
    gain.map(times).ok_or_else(|| format!("{}: there is no gain", old.name))
}

fn times(ratio: f64) -> Cell {
    Cell::Numbers(format!("{}\u{a0}×", figure(ratio)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use waitword_bench::harness::Better;
    use waitword_bench::stats::Summary;

    #[test]
    fn a_gain_is_taken_round_by_round() {
        let of = |values: &[f64]| MetricReport {
            name: "time".to_owned(),
            unit: "ns".to_owned(),
            better: Better::Less,
            values: values.to_vec(),
            summary: Summary::of(values).unwrap(),
            ratio: None,
        };
        let told = |old: &[f64], new: &[f64]| match gain(&of(old), &of(new)) {
            Ok(Cell::Numbers(text)) => text,
            other => panic!("{other:?}"),
        };
        // The ratios are 2, 4 and 1; those of the medians would give 4 / 2.
        assert_eq!(told(&[2.0, 8.0, 4.0], &[1.0, 2.0, 4.0]), "2\u{a0}×");
        assert!(gain(&of(&[1.0]), &of(&[0.0])).is_err());
        assert!(gain(&of(&[1.0]), &of(&[1.0, 2.0])).is_err());
    }
}
