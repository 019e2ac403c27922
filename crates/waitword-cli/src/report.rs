//! `waitword report`: a report that was stored as JSON, as a page.

use crate::out_file::OutFile;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use waitword_bench::report::{Report, SCHEMA};

/// What the user can ask for.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A report that `waitword bench --json` wrote
    #[arg(value_name = "JSON")]
    report: PathBuf,

    /// Write it as a page for a browser
    #[arg(long, value_name = "FILE")]
    html: PathBuf,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    match write(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

fn write(args: &Args) -> Result<(), String> {
    let report = read(&args.report)?;
    OutFile::open(&args.html)?.write(&waitword_report::html(&report))
}

fn read(path: &Path) -> Result<Report, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    parse(&text).map_err(|error| format!("{}: {error}", path.display()))
}

fn parse(text: &str) -> Result<Report, String> {
    let json: serde_json::Value =
        serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
    match json["schema"].as_u64() {
        Some(schema) if schema == u64::from(SCHEMA) => {}
        Some(other) => {
            return Err(format!(
                "a report of schema {other}; this waitword reads schema {SCHEMA}: measure again"
            ));
        }
        None => return Err("not a report of `waitword bench --json`".to_owned()),
    }
    serde_json::from_value(json).map_err(|error| format!("not a whole report: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_report_is_told_apart() {
        for (text, answer) in [
            ("<html>", "not JSON"),
            ("[1, 2]", "not a report of"),
            (r#"{"schema": 1}"#, "schema 1; this waitword reads schema 2"),
            (r#"{"schema": 2}"#, "not a whole report: missing field"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(answer), "{text}: {error}");
        }
    }
}
