//! `waitword report`: shows a report that was stored as JSON, or a recording.

pub(crate) mod recording;

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
#[command(after_help = "\
Examples:
  waitword report results.json --html page.html
      The report of `waitword bench --json` as a page.
  waitword report recording --html page.html
      The recording of `waitword profile -o recording`: what lost the most time, and why.
  waitword report recording --text --json waits.json
      The places that lost the most time; all sites and locks for scripts.
  waitword report recording --pprof waits.pb.gz && go tool pprof -top waits.pb.gz
      In the format of Go's mutex profiles.
  waitword report recording --flamegraph locks.svg
      Where threads waited for locks: an SVG for a browser. With --idle: where they waited for work.
  waitword report recording --folded waits.folded
      One line for each stack, for other flame graph tools.
  waitword report recording --trace waits.pftrace
      Open it at https://ui.perfetto.dev: threads, waits, and who ended them.
  waitword report recording --symbols debug --text
      On another machine: `debug` has the programs or their files with debug information.")]
pub(crate) struct Args {
    /// A report that `waitword bench --json` or `waitword bench any --json` wrote, or the directory
    /// of a recording (`waitword profile -o`)
    #[arg(value_name = "JSON|DIR")]
    report: PathBuf,

    #[command(flatten)]
    recording: recording::Wanted,

    /// Write the report or the recording as an HTML page
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
    if args.report.is_dir() {
        if args.markdown.is_some() || args.compare.is_some() {
            return Err(
                "--markdown and --compare are for a report of `waitword bench`; a recording \
                        can be shown by --text, --html, --flamegraph, --trace, --pprof, --folded \
                        and --json"
                    .to_owned(),
            );
        }
        return recording::show(&args.report, &args.recording, &args.html)
            .map_err(|error| format!("{error:#}"));
    }
    if let Some(option) = args.recording.first() {
        return Err(format!("{option} is for the directory of a recording"));
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
