//! The end of the output: a small table for each patch, one for random loads, and where to find the
//! rest.
//!
//! It has at most 60 lines of at most [`WIDTH`] columns: five tables of at most six rows, one of
//! seven, and the notes.

use super::any;
use waitword_bench::glance::{Entry, Glance, Row, glances};
use waitword_bench::locks::{marked, remarks};
use waitword_bench::report::Report;
use waitword_bench::stats::Ratio;
use waitword_bench::workload::Patch;
use waitword_report::{figure, how_sure, told};

/// The greatest width, in columns.
pub(super) const WIDTH: usize = 100;
/// The width of a case's name with its unit.
const CASE: usize = 30;
/// The width of the best peer's name.
const PEER: usize = 16;

/// All tables and notes.
pub(crate) fn glance(report: &Report) -> String {
    let glances = glances(report);
    let mut text = String::new();
    if !glances.is_empty() {
        text += &format!(
            "Medians. Ratio, CPU and p99.9 are waitword's divided by the best peer's.\n{}\n",
            how_sure(report.rounds)
        );
    }
    for glance in &glances {
        text += &table(glance);
    }
    if let Some(report) = &report.any {
        text += &any::glance(report);
    }
    let best = glances.iter().flat_map(|glance| &glance.rows);
    let best = best.filter_map(|row| Some(row.best()?.name()));
    for remark in remarks(best) {
        text += &format!("{remark}\n");
    }
    text + &rest(report)
}

fn table(glance: &Glance<'_>) -> String {
    let base = match glance.rows.iter().find_map(|row| row.baseline) {
        Some(base) => base.name(),
        None => "",
    };
    let mut text = line(
        &short_title(glance.patch),
        ["waitword", "best peer", base],
        "",
        ["ratio", "CPU", "p99.9"],
    );
    for row in &glance.rows {
        text += &row_line(row);
    }
    text + "\n"
}

/// The patch's name and year.
fn short_title(patch: Patch) -> String {
    let title = patch.title();
    let (name, by) = title.split_once(" (").unwrap_or((title, ""));
    let year = by.trim_end_matches(')').rsplit(' ').next().unwrap_or("");
    format!("{} ({year})", name.trim_end_matches(" futexes"))
}

fn row_line(row: &Row<'_>) -> String {
    let value = |entry: Option<Entry<'_>>| entry.map_or_else(String::new, |of| figure(of.value()));
    let best = row.best();
    let quotient = |of: fn(&Entry<'_>) -> Option<f64>| {
        let quotient = of(&row.ours).zip(best.as_ref().and_then(of));
        quotient.map_or_else(String::new, |(ours, best)| figure(ours / best))
    };
    let ratio = row.to_best.as_ref();
    let ratio = ratio.map_or_else(String::new, |ratio| short(ratio, row));
    line(
        &with_unit(row.label, row.unit),
        [&value(Some(row.ours)), &value(best), &value(row.baseline)],
        &best.map_or_else(String::new, |best| marked(best.name())),
        [&ratio, &quotient(|of| of.cpu()), &quotient(|of| of.tail())],
    )
}

/// The ratio and a one-word verdict.
fn short(ratio: &Ratio, row: &Row<'_>) -> String {
    let told = match told(ratio, row.better) {
        "better" => "won",
        "worse" => "lost",
        "undecided" => "open",
        "too few rounds" => "?",
        other => other,
    };
    format!("{} {told}", figure(ratio.summary.median))
}

/// The name, cut so that it fits beside the unit.
fn with_unit(name: &str, unit: &str) -> String {
    let unit = match unit {
        "" => String::new(),
        unit => format!(", {unit}"),
    };
    let room = CASE - unit.chars().count();
    format!("{}{unit}", cut(name, room))
}

fn cut(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let kept: String = text.chars().take(room - 1).collect();
    format!("{kept}…")
}

fn line(case: &str, values: [&str; 3], peer: &str, ratios: [&str; 3]) -> String {
    let [ours, best, base] = values;
    let [ratio, cpu, tail] = ratios;
    let case = cut(case, CASE);
    let peer = cut(peer, PEER);
    let line = format!(
        "{case:CASE$}{ours:>8}{best:>10}{base:>9} {peer:PEER$} {ratio:>11} {cpu:>6} {tail:>6}"
    );
    format!("{}\n", line.trim_end())
}

/// The machine, what was not measured, and where to find everything else.
fn rest(report: &Report) -> String {
    let machine = &report.machine;
    let cases = || report.workloads.iter().flat_map(|workload| &workload.cases);
    let repeated: usize = cases().map(|case| case.repeated).sum();
    let mut text = cut(
        &format!(
            "{}, {} CPUs, Linux {}, {}; {} rounds, {repeated} more discarded",
            machine.cpu, machine.cpus_allowed, machine.kernel, machine.glibc, report.rounds
        ),
        WIDTH,
    ) + "\n";
    let disturbed: usize = report.workloads.iter().map(|of| of.disturbed.len()).sum();
    if disturbed > 0 {
        text += &format!(
            "{disturbed} cases were not measured: other processes used the CPUs throughout.\n"
        );
    }
    let kept: usize = cases().map(|case| case.disturbed).sum();
    if kept > 0 {
        text += &format!("{kept} rounds were kept despite other load: do not quote them.\n");
    }
    let failed: Vec<&str> = report
        .workloads
        .iter()
        .filter(|workload| workload.error.is_some())
        .map(|workload| workload.name.as_str())
        .collect();
    if !failed.is_empty() {
        text += &cut(&format!("FAILED: {} (--all shows why)", failed.join(", ")), WIDTH);
        text.push('\n');
    }
    let enough = report.rounds_to_publish();
    if report.rounds < enough {
        text += &format!("Fewer than {enough} rounds: enough for a look, not for publication.\n");
    }
    text + "Every row: --all. HTML page with plots: --html FILE. Won, lost and why: --markdown \
            FILE.\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_room_for_the_longest_of_everything() {
        let long = "x".repeat(200);
        let number = "1234567";
        // The longest figure below a million, which a quotient of extremes may be.
        let longest = figure(0.0199);
        let ratio = format!("{longest} lost");
        let text = line(&long, [number; 3], &long, [&ratio, &longest, &longest]);
        assert!(text.trim_end().chars().count() <= WIDTH, "{text}");
        assert!(text.contains('…') && text.ends_with("0.0199 0.0199\n"), "{text}");
        assert_eq!(with_unit(&long, "ops/s").chars().count(), CASE);
    }
}
