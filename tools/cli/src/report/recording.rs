//! A recording of waits, summed once and written in each format that is wanted.

use crate::out_file::OutFile;
use anyhow::{Context as _, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use waitword_profile::export::flame::{Waits, flamegraph};
use waitword_profile::export::{
    Recording, folded::folded, json::json, page::page, pprof::pprof, trace::trace,
};
use waitword_profile::profile::{Profile, USUAL_LISTED};
use waitword_profile::symbols::Files;
use waitword_profile::{read, text};

/// Shorter files, in bytes, are read before a progress bar could be seen.
const LONG: u64 = 50 << 20;
/// How many waits for locks, and how many others, a trace has at most. A trace of these is 50 MB
/// long, which Perfetto shows without delay.
const TRACED: usize = 50_000;
/// How many of the files without symbols are named.
const NAMED: usize = 8;

/// What is wanted of a recording.
#[derive(Debug, clap::Args)]
pub(super) struct Wanted {
    /// Of a recording: print the places that lost the most time
    #[arg(long, group = "what")]
    text: bool,

    /// Of a recording: write a compressed profile for `go tool pprof`
    #[arg(long, value_name = "FILE", group = "what")]
    pprof: Option<PathBuf>,

    /// Of a recording: write folded stacks, with microseconds, for flame graphs
    #[arg(long, value_name = "FILE", group = "what")]
    folded: Option<PathBuf>,

    /// Of a recording: write a flame graph (SVG) of the time lost waiting for locks
    #[arg(long, value_name = "FILE", group = "what")]
    flamegraph: Option<PathBuf>,

    /// With --flamegraph and --folded: the waits for work or an event instead
    #[arg(long)]
    idle: bool,

    /// Of a recording: write a trace for https://ui.perfetto.dev
    #[arg(long, value_name = "FILE", group = "what")]
    trace: Option<PathBuf>,

    /// Of a recording: write all sites and locks as JSON
    #[arg(long, value_name = "FILE", group = "what")]
    json: Option<PathBuf>,

    /// Of a recording: look in this directory for files with debug information, by build ID as in
    /// /usr/lib/debug, or by name. May be repeated
    #[arg(long, value_name = "DIR")]
    symbols: Vec<PathBuf>,
}

impl Wanted {
    /// The first of these options that is there.
    pub(super) fn first(&self) -> Option<&'static str> {
        [
            (self.text, "--text"),
            (self.pprof.is_some(), "--pprof"),
            (self.folded.is_some(), "--folded"),
            (self.flamegraph.is_some(), "--flamegraph"),
            (self.idle, "--idle"),
            (self.trace.is_some(), "--trace"),
            (self.json.is_some(), "--json"),
            (!self.symbols.is_empty(), "--symbols"),
        ]
        .into_iter()
        .find_map(|(is_there, name)| is_there.then_some(name))
    }
}

/// Shows a recording, also as a page if that is wanted.
pub(super) fn show(directory: &Path, wanted: &Wanted, html: &Option<PathBuf>) -> Result<()> {
    if wanted.idle && wanted.flamegraph.is_none() && wanted.folded.is_none() {
        bail!("--idle goes with --flamegraph or --folded");
    }
    // A mistyped path fails before the recording is read.
    let to = [&wanted.pprof, &wanted.folded, &wanted.flamegraph, &wanted.trace, &wanted.json, html];
    let mut files = Vec::new();
    for file in to {
        files.push(file.as_deref().map(OutFile::open).transpose().map_err(anyhow::Error::msg)?);
    }
    for directory in &wanted.symbols {
        std::fs::read_dir(directory)
            .with_context(|| format!("--symbols {}", directory.display()))?;
    }
    let listed = if wanted.trace.is_some() { TRACED } else { USUAL_LISTED };
    let profiles = profiles(directory, listed)?;
    let symbols = Rc::new(Files::new(&wanted.symbols));
    let mut recording = Recording::new(&profiles, &symbols);
    if wanted.text {
        print!("{}", text::summary(&mut recording));
    }
    write(files, &mut recording, wanted).map_err(anyhow::Error::msg)?;
    complain(&symbols);
    Ok(())
}

/// Writes the files: pprof, folded stacks, flame graph, trace, JSON, page.
fn write(
    files: Vec<Option<OutFile<'_>>>,
    recording: &mut Recording<'_>,
    wanted: &Wanted,
) -> Result<(), String> {
    let waits = if wanted.idle { Waits::Work } else { Waits::Locks };
    for (number, file) in files.into_iter().enumerate() {
        let Some(file) = file else {
            continue;
        };
        match number {
            0 => file.write_bytes(&pprof(recording).map_err(|error| error.to_string())?)?,
            1 => file.write(&folded(recording, waits))?,
            2 => file.write(&flamegraph(recording, waits))?,
            3 => {
                let mut left_out = 0;
                file.write_by(|to| trace(recording, to).map(|count| left_out = count))?;
                if left_out > 0 {
                    eprintln!("waitword: {left_out} shorter waits are not in the trace");
                }
            }
            4 => file.write_by(|to| json(recording, to))?,
            _ => file.write(&page(recording))?,
        }
    }
    Ok(())
}

/// The processes of a recording.
pub(crate) fn profiles(directory: &Path, listed: usize) -> Result<Vec<Profile>> {
    with_progress(directory, |progress| Profile::read(directory, listed, progress))
}

/// Reads a recording. While a long one is read, shows how far.
pub(crate) fn with_progress<T>(
    directory: &Path,
    read_it: impl FnOnce(&mut dyn FnMut(u64)) -> Result<T>,
) -> Result<T> {
    let size = read::size(directory)?;
    // On a terminal only; indicatif sees to that.
    let bar = if size > LONG { ProgressBar::new(size) } else { ProgressBar::hidden() };
    bar.set_style(ProgressStyle::with_template("{bar:30} {bytes} of {total_bytes}, {eta} left")?);
    let read = read_it(&mut |bytes| bar.inc(bytes));
    bar.finish_and_clear();
    read
}

/// Says which files could not be used for names.
pub(crate) fn complain(files: &Files) {
    let complaints = files.complaints();
    if complaints.is_empty() {
        return;
    }
    eprintln!("waitword: addresses in these files have no names (see --symbols of `report`):");
    for complaint in complaints.iter().take(NAMED) {
        eprintln!("    {complaint}");
    }
    if complaints.len() > NAMED {
        eprintln!("    and {} more", complaints.len() - NAMED);
    }
}
