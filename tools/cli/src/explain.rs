//! `waitword explain`: says why threads waited, and what to do about it.

use crate::out_file::print;
use crate::report::recording::with_progress;
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use waitword_profile::explain;

/// The arguments of `waitword explain`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  waitword profile -o recording -- ./server && waitword explain recording
      Records a program, and says what its threads lost time for.
  waitword explain recording | less
      Each finding has its evidence and what to do about it; the costliest comes first.

The book (book/src/observe/profile.md) has the evidence that each kind of finding needs.")]
pub(crate) struct Args {
    /// The directory of a recording (`waitword profile -o`)
    #[arg(value_name = "DIR")]
    recording: PathBuf,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    match explain(&args.recording) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("waitword: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn explain(recording: &Path) -> Result<()> {
    let explained = with_progress(recording, |progress| explain::explain(recording, progress))?;
    Ok(print(&explain::text(&explained))?)
}
