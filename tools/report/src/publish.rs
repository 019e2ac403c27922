//! The texts that are published from stored reports: RESULTS.md, and the tables in README and the
//! docs, between these marks:
//!
//! ```text
//! <!-- results: locks -->
//! `waitword bench publish` replaces this text
//! <!-- results: end -->
//! ```
//!
//! Below each table in README and the docs are the command, the commit and the machine that
//! produced it. The texts depend only on the stored reports, so generating them again gives the
//! same texts.

use crate::glance;
use crate::markdown::{chapters, introduction, random_loads};
use crate::number::{figure, interval, ratio_told};
use crate::table::{Cell, Table};
use crate::{any, machine};
use std::path::{Path, PathBuf};
use waitword_bench::any::AnyReport;
use waitword_bench::glance::{Entry, Row, glances, of_futexes, of_locks};
use waitword_bench::locks::marked;
use waitword_bench::machine::Machine;
use waitword_bench::origin::Origin;
use waitword_bench::report::Report;
use waitword_bench::workloads;

/// A stored report of workloads.
#[derive(Debug)]
pub struct Run {
    /// The file's name, as readers see it.
    pub file: String,
    /// Its contents.
    pub report: Report,
}

/// A stored report of random loads.
#[derive(Debug)]
pub struct Any {
    /// The file's name, as readers see it.
    pub file: String,
    /// Its contents.
    pub report: AnyReport,
}

/// All stored reports, sorted by file name.
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
const NOTHING: &str = "Nothing was measured.\n";

impl Results {
    /// The reports in a directory, which `--json` wrote.
    ///
    /// # Errors
    /// A file cannot be read, is no report, or was measured despite other load.
    pub fn read(from: &Path) -> Result<Self, String> {
        let mut results = Self::default();
        for path in reports(from)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let file = format!("results/{name}");
            let failed = |error: String| format!("{}: {error}", path.display());
            let text = std::fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?;
            let json: serde_json::Value =
                serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
            if json.get("cells").is_some() {
                let report = AnyReport::of(json).map_err(failed)?;
                results.any.push(Any { file, report });
            } else {
                let report = Report::read(&path)?;
                let cases = report.workloads.iter().flat_map(|workload| &workload.cases);
                if cases.into_iter().any(|case| case.disturbed > 0) {
                    return Err(failed("it was measured despite other load".to_owned()));
                }
                results.runs.push(Run { file, report });
            }
        }
        Ok(results)
    }

    /// All workloads as one report. If two files have the same case of a workload, the first one
    /// counts. `None` if there are no reports.
    pub(crate) fn merged(&self) -> Option<Report> {
        let mut all = self.runs.first()?.report.clone();
        all.workloads.clear();
        self.runs.iter().for_each(|run| add(&mut all, &run.report));
        Some(all)
    }

    /// The text of RESULTS.md.
    pub fn markdown(&self) -> String {
        let by = "`waitword bench publish` from the JSON in [results](results)";
        let mut text = introduction(by) + "\n## Measured on\n";
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
            for note in machine::notes_of_random_loads(report) {
                text += &format!("**{note}**\n\n");
            }
            let seeds: Vec<String> = report.seeds().iter().map(u64::to_string).collect();
            for (what, value) in report.machine.lines().into_iter().chain(report.origin.lines()) {
                text += &format!("- {what}: {value}\n");
            }
            text += &format!(
                "- measured: {}\n- loads: {}, from the seeds {}, {} rounds of {} ms\n",
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

    /// Returns the text with everything between the marks replaced. `root` is the path from the
    /// text to the parent of the directory of the stored reports: `../` in docs.
    ///
    /// # Errors
    /// A mark has no end, or names results that do not exist.
    pub fn fill(&self, text: &str, root: &str) -> Result<String, String> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some(start) = rest.find(BEGIN) {
            let after = &rest[start + BEGIN.len()..];
            let close = after.find(CLOSE).ok_or("a mark is not closed")?;
            let name = &after[..close];
            let body = &after[close + CLOSE.len()..];
            let end = body.find(END).ok_or_else(|| format!("`{name}` has no end"))?;
            filled += &rest[..start];
            filled += &format!("{BEGIN}{name}{CLOSE}\n\n{}\n{END}", self.block(name, root)?);
            rest = &body[end + END.len()..];
        }
        Ok(filled + rest)
    }

    /// The text between the marks of this name.
    ///
    /// # Errors
    /// There are no such results.
    pub fn block(&self, name: &str, root: &str) -> Result<String, String> {
        let text = match name {
            "any" => {
                return Ok(
                    self.random_loads(root, |report| random_loads(report).trim_start().to_owned())
                );
            }
            "random" => {
                return Ok(self.random_loads(root, |report| any::overall(report).markdown()));
            }
            "locks" => {
                self.of(root, |report| rows(&of_locks(report), &["glibc", "std", "parking_lot"]))
            }
            "futexes" => self.of(root, |report| {
                rows(&of_futexes(report), &["futex(2)", "futex(2), spinning", "parking_lot_core"])
            }),
            "glance" => self.of(root, |report| {
                let tables = glances(report).into_iter().map(|glance| {
                    let table = glance::table(&glance.rows).markdown();
                    format!("**{}**\n\n{table}\n", glance.patch.title())
                });
                tables.collect()
            }),
            // RESULTS.md names the reports.
            "goals" => match self.merged() {
                Some(report) => format!("{}.\n", waitword_bench::bars::counted(&report.bars)),
                None => NOTHING.to_owned(),
            },
            other => return Err(format!("there are no results called `{other}`")),
        };
        Ok(text)
    }

    /// A table of the workloads, and below it the reports that its figures come from.
    fn of(&self, root: &str, table: impl Fn(&Report) -> String) -> String {
        let Some(mut so_far) = self.merged() else {
            return NOTHING.to_owned();
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
                    machine::few(report.rounds, report.rounds_to_publish()),
                );
            }
        }
        text
    }

    fn random_loads(&self, root: &str, table: impl Fn(&AnyReport) -> String) -> String {
        let mut text = String::new();
        for Any { file, report } in &self.any {
            text += &table(report);
            text += &source(
                root,
                file,
                &report.origin,
                &report.machine,
                report.started,
                report.rounds,
                machine::notes_of_random_loads(report),
            );
        }
        if text.is_empty() {
            text += NOTHING;
        }
        text
    }
}

/// The JSON files in a directory, sorted by name.
fn reports(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("cannot read {}: {error}", directory.display());
    let mut all = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|ending| ending == "json") {
            all.push(path);
        }
    }
    all.sort();
    Ok(all)
}

/// The workloads that no stored report contains, with the command that measures them.
fn not_measured(all: &Report) -> String {
    let names: Vec<&str> = workloads()
        .iter()
        .map(|workload| workload.name)
        .filter(|name| all.workloads.iter().all(|of| of.name != *name))
        .collect();
    if names.is_empty() {
        return String::new();
    }
    format!("\nNot measured: {} (`waitword bench {}`).\n", names.join(", "), names.join(" "))
}

/// Adds to `all` the workloads and cases that it lacks, and what could not be measured of them.
fn add(all: &mut Report, report: &Report) {
    for workload in &report.workloads {
        let Some(known) = all.workloads.iter_mut().find(|known| known.name == workload.name) else {
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
    all.bars = waitword_bench::bars::judge(&all.workloads);
}

/// The command, the commit, the machine and the versions that a table comes from.
pub(crate) fn source(
    root: &str,
    file: &str,
    origin: &Origin,
    machine: &Machine,
    started: u64,
    rounds: usize,
    notes: impl IntoIterator<Item = String>,
) -> String {
    let notes: String = notes.into_iter().map(|note| format!(" **{note}**")).collect();
    let [(_, commit), (_, command), (_, compiler), (_, peers)] = &origin.lines()[..] else {
        unreachable!("four lines")
    };
    format!(
        "\n<sub>[{file}]({root}{file}): `{command}`, commit {commit}, {}, {rounds} rounds; \
         {}, {} CPUs, Linux {}, {}; {compiler}; {peers}.{notes}</sub>\n",
        machine::when(started),
        machine.cpu,
        machine.cpus_allowed,
        machine.kernel,
        machine.glibc,
    )
}

/// A table for README: some peers by name, the best peer, and ours.
fn rows(rows: &[Row<'_>], named: &[&str]) -> String {
    let names: Vec<String> = named.iter().map(|name| marked(name)).collect();
    let mut head = vec!["", "unit"];
    head.extend(names.iter().map(String::as_str));
    head.extend(["best peer", "waitword", "ratio to best peer", "interval", "CPU", "p99.9"]);
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
            // A row that continues the row above has them there.
            let both = both.filter(|_| !row.label.starts_with("..."));
            both.map_or(Cell::Empty, |(ours, best)| Cell::Number(ours / best))
        };
        cells.extend([
            best.map_or(Cell::Empty, ranked),
            Cell::Number(row.ours.value()),
            row.to_best.map_or(Cell::Empty, |ratio| Cell::Numbers(ratio_told(&ratio, row.better))),
            row.to_best.map_or(Cell::Empty, |ratio| Cell::Numbers(interval(ratio.interval))),
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
        let text = "one\n<!-- results: locks -->\nold\n<!-- results: end -->\ntwo\n\
                    <!-- results: any --><!-- results: end -->";
        let filled = results.fill(text, "").unwrap();
        assert!(filled.starts_with("one\n<!-- results: locks -->\n") && filled.contains("\ntwo\n"));
        assert!(!filled.contains("old") && filled.contains("Nothing was measured."));
        assert_eq!(results.fill(&filled, "").unwrap(), filled, "it is the same again");
        for wrong in [
            "<!-- results: locks",
            "<!-- results: locks -->",
            "<!-- results: x --><!-- results: end -->",
        ] {
            assert!(results.fill(wrong, "").is_err(), "{wrong}");
        }
        assert_eq!(results.fill("nothing of it", "").unwrap(), "nothing of it");
    }
}
