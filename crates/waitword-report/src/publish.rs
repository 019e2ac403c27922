//! What is published of stored reports: RESULTS.md, and the tables of README and the docs between
//! their marks.
//!
//! ```text
//! <!-- results: locks -->
//! whatever stands here is written by `waitword bench publish`
//! <!-- results: end -->
//! ```
//!
//! A table of README or the docs has beneath it by which command it was made, of which commit, and
//! on what. All depends on the stored reports only: made again, it is the same.

use crate::glance;
use crate::markdown::{chapters, random_loads};
use crate::number::{figure, interval, ratio_told};
use crate::table::{Cell, Table};
use crate::{bars_of, machine};
use waitword_bench::any::AnyReport;
use waitword_bench::glance::{Entry, Row, glances, of_futexes, of_locks};
use waitword_bench::locks::marked;
use waitword_bench::machine::Machine;
use waitword_bench::origin::Origin;
use waitword_bench::report::Report;
use waitword_bench::stats::ROUNDS_OF_RANDOM_LOADS;
use waitword_bench::workloads;

/// A stored report.
#[derive(Debug)]
pub struct Run {
    /// As it is shown to a reader.
    pub file: String,
    /// What is in it.
    pub report: Report,
}

/// Stored random loads.
#[derive(Debug)]
pub struct Any {
    /// As it is shown to a reader.
    pub file: String,
    /// What is in it.
    pub report: AnyReport,
}

/// All that is stored, in the order of the files' names.
#[derive(Debug, Default)]
pub struct Results {
    /// Workloads.
    pub runs: Vec<Run>,
    /// Random loads.
    pub any: Vec<Any>,
}

const BEGIN: &str = "<!-- results: ";
const CLOSE: &str = " -->";
const END: &str = "<!-- results: end -->";

impl Results {
    /// One report of all workloads. If two files have the same case of a workload, the first one
    /// counts. `None` if there are none.
    fn merged(&self) -> Option<Report> {
        let mut all = self.runs.first()?.report.clone();
        all.workloads.clear();
        self.runs.iter().for_each(|run| add(&mut all, &run.report));
        Some(all)
    }

    /// What RESULTS.md says.
    pub fn markdown(&self) -> String {
        let mut text = String::from(
            "# Results\n\nMade by `waitword bench publish` of the JSON in [results](results): nothing here is written by hand \
             but the reasons, which are part of the program.\n\
             A ratio is the median of the rounds' ratios. *Same*: the interval in which it lies is within 5 % of 1. *Better*, \
             *worse*: it lies on one side of 1. *Undecided*: neither.\n\n## Measured on\n",
        );
        for run in &self.runs {
            text += &format!("\n### {}\n\n", run.file);
            for note in machine::notes(&run.report) {
                text += &format!("**{note}**\n\n");
            }
            for (what, value) in machine::lines(&run.report) {
                text += &format!("- {what}: {value}\n");
            }
        }
        for run in &self.any {
            let report = &run.report;
            text += &format!("\n### {}\n\n", run.file);
            for note in notes(report) {
                text += &format!("**{note}**\n\n");
            }
            let seeds: Vec<String> = report.seeds().iter().map(u64::to_string).collect();
            for (what, value) in report
                .machine
                .lines()
                .into_iter()
                .chain(report.origin.lines())
            {
                text += &format!("- {what}: {value}\n");
            }
            text += &format!(
                "- measured: {}\n- loads: {}, of the seeds {}, {} rounds of {} ms\n",
                machine::when(report.started),
                report.cells.len(),
                seeds.join(", "),
                report.rounds,
                report.milliseconds
            );
        }
        let random: Vec<&AnyReport> = self.any.iter().map(|run| &run.report).collect();
        match self.merged() {
            Some(report) => text + &not_measured(&report) + &chapters(&report, &random),
            None => text + "\nNothing was measured.\n",
        }
    }

    /// The text with all that stands between marks made anew. `root` leads from the text to the
    /// stored reports' directory's parent: `../` in docs.
    ///
    /// # Errors
    /// A mark that has no end, or asks for what there is not.
    pub fn fill(&self, text: &str, root: &str) -> Result<String, String> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some(start) = rest.find(BEGIN) {
            let after = &rest[start + BEGIN.len()..];
            let close = after.find(CLOSE).ok_or("a mark that is not closed")?;
            let name = &after[..close];
            let body = &after[close + CLOSE.len()..];
            let end = body
                .find(END)
                .ok_or_else(|| format!("`{name}` has no end"))?;
            filled += &rest[..start];
            filled += &format!("{BEGIN}{name}{CLOSE}\n\n{}\n{END}", self.block(name, root)?);
            rest = &body[end + END.len()..];
        }
        Ok(filled + rest)
    }

    fn block(&self, name: &str, root: &str) -> Result<String, String> {
        let text = match name {
            "any" => return Ok(self.random_loads(root)),
            "locks" => self.of(root, |report| {
                rows(&of_locks(report), &["glibc", "std", "parking_lot"])
            }),
            "futexes" => self.of(root, |report| {
                rows(
                    &of_futexes(report),
                    &["futex(2)", "futex(2), spinning", "parking_lot_core"],
                )
            }),
            "glance" => self.of(root, |report| {
                let tables = glances(report).into_iter().map(|glance| {
                    let table = glance::table(&glance.rows).markdown();
                    format!("**{}**\n\n{table}\n", glance.patch.title())
                });
                tables.collect()
            }),
            "goals" => self.of(root, |report| {
                format!("{}.\n", waitword_bench::bars::counted(&report.bars))
            }),
            other => return Err(format!("there are no results called `{other}`")),
        };
        Ok(text)
    }

    /// A table of the workloads, and beneath it the reports that some of it is from.
    fn of(&self, root: &str, table: impl Fn(&Report) -> String) -> String {
        let Some(mut so_far) = self.merged() else {
            return "Nothing was measured.\n".to_owned();
        };
        let mut text = table(&so_far);
        so_far.workloads.clear();
        so_far.bars.clear();
        for Run { file, report } in &self.runs {
            let before = table(&so_far);
            add(&mut so_far, report);
            if table(&so_far) != before {
                text += &source(
                    root,
                    file,
                    &report.origin,
                    &report.machine,
                    report.started,
                    report.rounds,
                    few(report.rounds, report.rounds_to_publish()),
                );
            }
        }
        text
    }

    fn random_loads(&self, root: &str) -> String {
        let mut text = String::new();
        for Any { file, report } in &self.any {
            text += random_loads(report).trim_start();
            text += &source(
                root,
                file,
                &report.origin,
                &report.machine,
                report.started,
                report.rounds,
                notes(report),
            );
        }
        if text.is_empty() {
            text += "Nothing was measured.\n";
        }
        text
    }
}

/// The workloads that no stored report has, and how to measure them.
fn not_measured(all: &Report) -> String {
    let names: Vec<&str> = workloads()
        .iter()
        .map(|workload| workload.name)
        .filter(|name| all.workloads.iter().all(|of| of.name != *name))
        .collect();
    if names.is_empty() {
        return String::new();
    }
    format!(
        "\nNot measured: {} (`waitword bench {}`).\n",
        names.join(", "),
        names.join(" ")
    )
}

/// Adds the workloads and the cases that `all` lacks, and what could not be measured of them.
fn add(all: &mut Report, report: &Report) {
    for workload in &report.workloads {
        let Some(known) = all
            .workloads
            .iter_mut()
            .find(|known| known.name == workload.name)
        else {
            all.workloads.push(workload.clone());
            continue;
        };
        for case in &workload.cases {
            if known.cases.iter().all(|known| known.name != case.name) {
                known.cases.push(case.clone());
            }
        }
        known.missing.extend(workload.missing.iter().cloned());
        known.disturbed.extend(workload.disturbed.iter().cloned());
    }
    all.bars = bars_of(&all.workloads);
}

/// That rounds are a trial if they are not `enough` to be published.
fn few(rounds: usize, enough: usize) -> Option<String> {
    (rounds < enough).then(|| {
        format!("A trial of {rounds} rounds, which shows what the table will look like; not to be quoted.")
    })
}

/// What a reader of random loads must know first.
pub(crate) fn notes(report: &AnyReport) -> Vec<String> {
    let missing = report.missing();
    let all = missing + report.cells.len();
    let incomplete = format!("Not complete: {missing} of {all} loads were not measured.");
    few(report.rounds, ROUNDS_OF_RANDOM_LOADS)
        .into_iter()
        .chain((missing > 0).then_some(incomplete))
        .collect()
}

/// By which command, of which commit, on what.
fn source(
    root: &str,
    file: &str,
    origin: &Origin,
    machine: &Machine,
    started: u64,
    rounds: usize,
    notes: impl IntoIterator<Item = String>,
) -> String {
    let notes: String = notes
        .into_iter()
        .map(|note| format!(" **{note}**"))
        .collect();
    let [(_, commit), (_, command), (_, compiler), (_, peers)] = &origin.lines()[..] else {
        unreachable!("four lines")
    };
    format!(
        "\n<sub>[{file}]({root}{file}): `{command}`, commit {commit}, {}, {rounds} rounds; {}, {} CPUs, Linux {}, {}; {compiler}; \
         {peers}.{notes}</sub>\n",
        machine::when(started),
        machine.cpu,
        machine.cpus_allowed,
        machine.kernel,
        machine.glibc,
    )
}

/// The rows of README: some peers by name, the best of all of them, and ours.
fn rows(rows: &[Row<'_>], named: &[&str]) -> String {
    let names: Vec<String> = named.iter().map(|name| marked(name)).collect();
    let mut head = vec!["", "unit"];
    head.extend(names.iter().map(String::as_str));
    head.extend([
        "best of all others",
        "waitword",
        "ratio to the best",
        "interval",
        "CPU",
        "p99.9",
    ]);
    let mut table = Table::new(&head);
    for row in rows {
        let mut cells = vec![Cell::text(row.label), Cell::text(row.unit)];
        let value = |name: &&str| {
            let entry = row.ranking.iter().find(|entry| entry.name() == *name);
            entry.map_or(Cell::Empty, |entry| Cell::Number(entry.value()))
        };
        cells.extend(named.iter().map(value));
        let best = row.best();
        let ranked = |best: Entry<'_>| Cell::Ranked(best.name().to_owned(), figure(best.value()));
        let quotient = |of: fn(&Entry<'_>) -> Option<f64>| {
            let both = of(&row.ours).zip(best.as_ref().and_then(of));
            // Of a row that goes on with the one above, they stand there.
            let both = both.filter(|_| !row.label.starts_with("..."));
            both.map_or(Cell::Empty, |(ours, best)| Cell::Number(ours / best))
        };
        cells.extend([
            best.map_or(Cell::Empty, ranked),
            Cell::Number(row.ours.value()),
            row.to_best.map_or(Cell::Empty, |ratio| {
                Cell::Numbers(ratio_told(&ratio, row.better))
            }),
            row.to_best
                .map_or(Cell::Empty, |ratio| Cell::Numbers(interval(ratio.interval))),
            quotient(|of| of.cpu()),
            quotient(|of| of.tail()),
        ]);
        table.rows.push(cells);
    }
    table.markdown()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_between_marks_is_made_anew_and_nothing_else() {
        let results = Results::default();
        let text = "one\n<!-- results: locks -->\nold\n<!-- results: end -->\ntwo\n<!-- results: any --><!-- results: end -->";
        let filled = results.fill(text, "").unwrap();
        assert!(filled.starts_with("one\n<!-- results: locks -->\n") && filled.contains("\ntwo\n"));
        assert!(!filled.contains("old") && filled.contains("Nothing was measured."));
        assert_eq!(
            results.fill(&filled, "").unwrap(),
            filled,
            "it is the same again"
        );
        for wrong in [
            "<!-- results: locks",
            "<!-- results: locks -->",
            "<!-- results: x --><!-- results: end -->",
        ] {
            assert!(results.fill(wrong, "").is_err(), "{wrong}");
        }
        assert_eq!(results.fill("nothing of it", "").unwrap(), "nothing of it");
    }

    #[test]
    fn few_rounds_are_a_trial() {
        assert!(few(7, 9).unwrap().contains("not to be quoted"));
        assert_eq!(few(9, 9), None);
    }
}
