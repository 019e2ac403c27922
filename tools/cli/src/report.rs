//! `waitword report`: shows a report that was stored as JSON, or a recording.

use crate::bench::tables;
use crate::out_file::OutFile;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use waitword_bench::any::AnyReport;
use waitword_bench::compare::compare;
use waitword_bench::report::Report;
use waitword_profile::export::{folded::folded, json::json, pprof::pprof};

/// The arguments of `waitword report`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
#[command(after_help = "\
Examples:
  waitword report results.json --html page.html
      The report of `waitword bench --json` as a page.
  waitword report recording --pprof waits.pb.gz && go tool pprof -top waits.pb.gz
      The recording of `waitword profile -o recording`, in the format of Go's mutex profiles.")]
pub(crate) struct Args {
    /// A report that `waitword bench --json` or `waitword bench any --json` wrote, or the directory
    /// of a recording (`waitword profile -o`)
    #[arg(value_name = "JSON|DIR")]
    report: PathBuf,

    /// Of a recording: print the places that lost the most time
    #[arg(long, group = "what")]
    text: bool,

    /// Of a recording: write a compressed profile for `go tool pprof`
    #[arg(long, value_name = "FILE", group = "what")]
    pprof: Option<PathBuf>,

    /// Of a recording: write folded stacks, with microseconds, for flame graphs
    #[arg(long, value_name = "FILE", group = "what")]
    folded: Option<PathBuf>,

    /// Of a recording: write all sites as JSON
    #[arg(long, value_name = "FILE", group = "what")]
    json: Option<PathBuf>,

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

/// Shows a recording.
fn show_recording(args: &Args) -> Result<(), String> {
    if args.html.is_some() || args.markdown.is_some() || args.compare.is_some() {
        return Err("a recording can be shown by --text, --pprof, --folded and --json".to_owned());
    }
    let processes = waitword_profile::read::read(&args.report);
    let processes = processes.map_err(|error| format!("{error:#}"))?;
    if args.text {
        print!("{}", waitword_profile::text::summary(&processes));
    }
    if let Some(file) = &args.pprof {
        let bytes = pprof(&processes).map_err(|error| error.to_string())?;
        OutFile::open(file)?.write_bytes(&bytes)?;
    }
    if let Some(file) = &args.folded {
        OutFile::open(file)?.write(&folded(&processes))?;
    }
    if let Some(file) = &args.json {
        OutFile::open(file)?.write(&(json(&processes).to_string() + "\n"))?;
    }
    Ok(())
}

fn show(args: &Args) -> Result<(), String> {
    if args.report.is_dir() {
        return show_recording(args);
    }
    if args.text || args.pprof.is_some() || args.folded.is_some() || args.json.is_some() {
        return Err("--text, --pprof, --folded and --json show a recording's directory".to_owned());
    }
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
