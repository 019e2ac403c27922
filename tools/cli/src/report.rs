//! `waitword report`: shows a report that was stored as JSON.

use crate::bench::tables;
use crate::out_file::OutFile;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use waitword_bench::any::AnyReport;
use waitword_bench::compare::compare;
use waitword_bench::report::Report;

/// The arguments of `waitword report`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
pub(crate) struct Args {
    /// A report that `waitword bench --json` or `waitword bench any --json` wrote
    #[arg(value_name = "JSON")]
    report: PathBuf,

    /// Write the report as an HTML page
    #[arg(long, value_name = "FILE", group = "what")]
    html: Option<PathBuf>,

    /// Write a summary as Markdown: what is won, what is lost, and why
    #[arg(long, value_name = "FILE", group = "what")]
    markdown: Option<PathBuf>,

    /// Print what has changed since the run of this older report
    #[arg(long, value_name = "OLD.json", group = "what")]
    compare: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    match show(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

/// The random loads in the file; `None` if it is not a report of random loads alone.
fn random_loads(file: &Path) -> Result<Option<AnyReport>, String> {
    let Ok(text) = std::fs::read_to_string(file) else {
        return Ok(None);
    };
    match serde_json::from_str::<serde_json::Value>(&text) {
        Ok(json) if json.get("cells").is_some() => AnyReport::of(json).map(Some),
        _ => Ok(None),
    }
}

fn show(args: &Args) -> Result<(), String> {
    if let Some(report) = random_loads(&args.report)? {
        return match (&args.html, &args.markdown, &args.compare) {
            (Some(file), None, None) => {
                OutFile::open(file)?.write(&waitword_report::any_html(&report))
            }
            _ => Err("random loads can only be shown as a page: use --html".to_owned()),
        };
    }
    let report = Report::read(&args.report)?;
    if let Some(old) = &args.compare {
        let old = Report::read(old)?;
        println!("{}", tables::comparison(&compare(&old, &report)));
    }
    if let Some(file) = &args.html {
        OutFile::open(file)?.write(&waitword_report::html(&report))?;
    }
    if let Some(file) = &args.markdown {
        OutFile::open(file)?.write(&waitword_report::markdown(&report))?;
    }
    Ok(())
}
