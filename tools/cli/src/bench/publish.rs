//! `waitword bench publish`: generates RESULTS.md and the tables in README and the docs from the
//! stored reports.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use waitword_report::Results;

/// The arguments of `waitword bench publish`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Directory of the reports that --json wrote
    #[arg(long, value_name = "DIRECTORY", default_value = "results")]
    from: PathBuf,

    /// Directory that contains RESULTS.md, README.md and docs
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    to: PathBuf,

    /// Write nothing; fail if a file does not match the reports
    #[arg(long)]
    check: bool,
}

pub(super) fn run(args: &Args) -> ExitCode {
    match publish(args) {
        Ok(differing) if args.check && !differing.is_empty() => {
            for file in differing {
                eprintln!("{}: does not match the reports", file.display());
            }
            eprintln!("run `waitword bench publish` to update");
            ExitCode::FAILURE
        }
        Ok(differing) => {
            for file in differing {
                println!("wrote {}", file.display());
            }
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

/// Returns the files that did not match the reports. Writes them, unless `--check` is given.
fn publish(args: &Args) -> Result<Vec<PathBuf>, String> {
    let results = Results::read(&args.from)?;
    let mut differing = Vec::new();
    for file in texts(&args.to)? {
        // RESULTS.md need not exist yet.
        let is_all = file.file_name().is_some_and(|name| name == RESULTS);
        let old = match std::fs::read_to_string(&file) {
            Err(_) if is_all => String::new(),
            old => old.map_err(|error| format!("cannot read {}: {error}", file.display()))?,
        };
        let new = if is_all {
            results.markdown()
        } else {
            let is_in_docs = file.parent().is_some_and(|parent| parent.ends_with("docs"));
            let filled = results.fill(&old, if is_in_docs { "../" } else { "" });
            filled.map_err(|error| format!("{}: {error}", file.display()))?
        };
        if new == old {
            continue;
        }
        if !args.check {
            std::fs::write(&file, new)
                .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        }
        differing.push(file);
    }
    Ok(differing)
}

const RESULTS: &str = "RESULTS.md";

/// RESULTS.md, README.md, and the Markdown files in docs.
fn texts(to: &Path) -> Result<Vec<PathBuf>, String> {
    let mut all = pages(&to.join("docs"))?;
    all.splice(0..0, [to.join(RESULTS), to.join("README.md")]);
    Ok(all)
}

/// The Markdown files in a directory, sorted by name.
fn pages(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("cannot read {}: {error}", directory.display());
    let mut all = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|ending| ending == "md") {
            all.push(path);
        }
    }
    all.sort();
    Ok(all)
}
