//! `waitword report`: a report that was stored as JSON, shown anew.

use crate::bench::tables;
use crate::out_file::OutFile;
use std::path::PathBuf;
use std::process::ExitCode;
use waitword_bench::compare::compare;
use waitword_bench::report::Report;

/// What the user can ask for.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
pub(crate) struct Args {
    /// A report that `waitword bench --json` wrote
    #[arg(value_name = "JSON")]
    report: PathBuf,

    /// Write it as a page for a browser
    #[arg(long, value_name = "FILE", group = "what")]
    html: Option<PathBuf>,

    /// Write what is won and what is lost, and why, as Markdown
    #[arg(long, value_name = "FILE", group = "what")]
    markdown: Option<PathBuf>,

    /// Say what has changed since the run whose report this is
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

fn show(args: &Args) -> Result<(), String> {
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
