//! The results of runs, for the table in the documentation: one line of JSON per run, appended to a
//! file.

use crate::count::{Count, Totals};
use crate::fault::kind::Fault;
use crate::slice::DropIn;
use crate::summary::Line;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

/// One run.
#[derive(Debug, Serialize, Deserialize, PartialEq)]
pub(crate) struct Record {
    /// UTC, to the minute.
    pub(crate) date: String,
    pub(crate) version: String,
    /// The commit of the source that the program was built from, if that was in a repository; with
    /// a `+` if the source had been changed since.
    pub(crate) commit: String,
    /// What was tortured: "library", "drop-in", or "C library".
    pub(crate) tortured: String,
    pub(crate) seed: u64,
    pub(crate) seconds: f64,
    pub(crate) scenarios: usize,
    pub(crate) operations: u64,
    /// How many faults of each kind were injected.
    pub(crate) faults: BTreeMap<String, u64>,
    /// The scenarios that failed, and why; hopefully empty.
    pub(crate) found: Vec<String>,
}

impl Record {
    pub(crate) fn new(drop_in: Option<DropIn>, seed: u64, lines: &[Line]) -> Self {
        let mut totals = Totals::default();
        lines.iter().for_each(|line| totals.add(&line.totals));
        let faults = Fault::all().iter().map(|&fault| (fault.name(), totals.of(fault.count())));
        let fail = |line: &Line| Some(format!("{}: {}", line.scenario, line.failure.as_ref()?));
        Self {
            date: now(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: env!("WAITWORD_COMMIT").to_owned(),
            tortured: match drop_in {
                None => "library",
                Some(DropIn::On) => "drop-in",
                Some(DropIn::Off) => "C library",
            }
            .to_owned(),
            seed,
            seconds: lines.iter().map(|line| line.took.as_secs_f64()).sum(),
            scenarios: lines.len(),
            operations: totals.of(Count::Operations),
            faults: faults.filter(|&(_, count)| count > 0).collect(),
            found: lines.iter().filter_map(fail).collect(),
        }
    }

    /// # Errors
    /// The file can no longer be written. Then the error contains the record, so that it is not
    /// lost.
    pub(crate) fn append_to(&self, file: &Path) -> Result<(), String> {
        let line = serde_json::to_string(self).map_err(|error| error.to_string())?;
        let opened = OpenOptions::new().create(true).append(true).open(file);
        let written = opened.and_then(|mut file| writeln!(file, "{line}"));
        written.map_err(|error| format!("{}: {error}; not recorded: {line}", file.display()))
    }
}

/// Checks that runs can be appended to this file, and creates it if it does not exist.
///
/// # Errors
/// The file cannot be written, or holds something else.
pub(crate) fn check(file: &Path) -> Result<(), String> {
    can_be_written(file)?;
    records_of(file).map(drop)
}

/// Creates the file if it does not exist.
///
/// # Errors
/// The error, with the file's name.
pub(crate) fn can_be_written(file: &Path) -> Result<(), String> {
    let opened = OpenOptions::new().create(true).append(true).open(file);
    opened.map(drop).map_err(|error| format!("{}: {error}", file.display()))
}

/// The records of a file as a Markdown table, with totals.
///
/// # Errors
/// The file cannot be read, or one of its lines is not a record.
pub(crate) fn table_of(file: &Path) -> Result<String, String> {
    records_of(file).map(|records| table(&records))
}

fn records_of(file: &Path) -> Result<Vec<Record>, String> {
    let name = file.display();
    let text = std::fs::read_to_string(file).map_err(|error| format!("{name}: {error}"))?;
    let records = text.lines().enumerate().map(|(index, line)| {
        serde_json::from_str(line)
            .map_err(|error| format!("{name}:{}: not the record of a run: {error}", index + 1))
    });
    records.collect()
}

fn table(records: &[Record]) -> String {
    let mut text =
        "| date (UTC) | commit | tortured | seed | hours | operations | faults injected | found |\n"
            .to_owned();
    text += "|---|---|---|---|---|---|---|---|\n";
    let (mut seconds, mut operations, mut found) = (0.0, 0, 0);
    let mut all = BTreeMap::new();
    for record in records {
        seconds += record.seconds;
        operations += record.operations;
        found += record.found.len();
        for (name, count) in &record.faults {
            *all.entry(name.clone()).or_insert(0) += count;
        }
        let what = match &record.found[..] {
            [] => "nothing".to_owned(),
            failures => failures.join("; "),
        };
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {:.2} | {} | {} | {what} |",
            record.date,
            record.commit,
            record.tortured,
            record.seed,
            record.seconds / 3600.0,
            grouped(record.operations),
            list(&record.faults),
        );
    }
    let _ = writeln!(
        text,
        "| **all** | | | {} runs | {:.2} | {} | {} | {found} |",
        records.len(),
        seconds / 3600.0,
        grouped(operations),
        list(&all),
    );
    text
}

fn list(faults: &BTreeMap<String, u64>) -> String {
    let each: Vec<_> =
        (faults.iter()).map(|(name, &count)| format!("{} {name}", grouped(count))).collect();
    each.join(", ")
}

fn grouped(number: u64) -> String {
    indicatif::HumanCount(number).to_string()
}

/// The date and time, UTC.
fn now() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seconds = since.map_or(0, |since| since.as_secs()) as libc::time_t;
    // SAFETY: zeros are overwritten; whole structures.
    let time = unsafe {
        let mut time: libc::tm = std::mem::zeroed();
        libc::gmtime_r(&raw const seconds, &raw mut time);
        time
    };
    let (year, month) = (time.tm_year + 1900, time.tm_mon + 1);
    let (day, hour, minute) = (time.tm_mday, time.tm_hour, time.tm_min);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record in the first format.
    const OLD: &str = concat!(
        r#"{"date":"2026-11-22 06:25","version":"0.1.0","commit":"5ae7954","tortured":"library","#,
        r#""seed":6001,"seconds":9.5,"scenarios":26,"operations":7,"faults":{"stop":1},"#,
        r#""found":[]}"#,
    );

    #[test]
    fn old_records_can_be_read() {
        let record: Record = serde_json::from_str(OLD).expect("a record");
        assert_eq!((record.seed, record.commit.as_str()), (6001, "5ae7954"));
    }

    #[test]
    fn records_come_back_as_a_table() {
        let record = Record {
            date: now(),
            version: "1".to_owned(),
            commit: "abc".to_owned(),
            tortured: "library".to_owned(),
            seed: 7,
            seconds: 5400.0,
            scenarios: 26,
            operations: 1_234_567,
            faults: BTreeMap::from([("stop".to_owned(), 12)]),
            found: vec!["ring: hung".to_owned()],
        };
        let file = std::env::temp_dir().join(format!("waitword-records-{}", std::process::id()));
        record.append_to(&file).expect("a line");
        record.append_to(&file).expect("another");
        let text = table_of(&file).expect("a table");
        assert!(text.contains("| abc | library | 7 | 1.50 | 1,234,567 | 12 stop | ring: hung |"));
        assert!(text.contains("| **all** | | | 2 runs | 3.00 | 2,469,134 | 24 stop | 2 |"));
        std::fs::write(&file, "no record\n").expect("a file");
        let said = table_of(&file).expect_err("no record");
        assert!(said.contains(":1: not the record of a run"), "{said}");
        assert_eq!(check(&file), Err(said));
        std::fs::remove_file(&file).expect("removed");
    }
}
