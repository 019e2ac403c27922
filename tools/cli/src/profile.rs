//! `waitword profile`: records where the threads of a program wait, and shows it.

mod running;
mod watcher;

use crate::record_session::Launch;
use crate::report::recording;
use anyhow::{Context as _, Result};
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;
use waitword_profile::export::Recording;
use waitword_profile::profile::USUAL_LISTED;
use waitword_profile::symbols::Files;
use waitword_profile::text::summary;

/// The arguments of `waitword profile`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  waitword profile -- ./server --port 8080
      Ends with the ten places that lost the most time, when the server ends.
  waitword profile -o recording --threshold 100000 -- ./batch
      Keeps the recording; waits below 0.1 ms are not in it.
  waitword profile --watch 5 -- ./server
      Says so on stderr if threads wait for each other once one has waited for 5 seconds.
  waitword profile --pid 4711 --seconds 10
      Records a program that runs already on the drop-in; looks at others from outside.

The recording contains addresses, thread names and file names, and no memory contents. Waits
for mutexes, rwlocks, condition variables, semaphores and barriers are recorded, of the program and
of its children.")]
pub(crate) struct Args {
    /// Keep the recording in this directory, which is made
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Waits that are shorter are not recorded, in nanoseconds
    #[arg(long, value_name = "NS", default_value_t = 10_000)]
    threshold: u64,
    /// Look for a deadlock whenever a thread has waited for a lock for so many seconds, and print
    /// it; the program continues
    #[arg(long, value_name = "SECONDS")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86400))]
    watch: Option<u64>,
    /// Record this process, and start none. If it does not run on waitword, look at it from outside
    #[arg(long, value_name = "N", conflicts_with_all = ["command", "watch"])]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    pid: Option<u32>,
    /// With --pid: for how long
    #[arg(long, value_name = "SECONDS", requires = "pid", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86400))]
    seconds: u64,
    /// With --pid: also record a process with a system call filter of its own, which may kill it
    #[arg(long, requires = "pid")]
    force: bool,
    /// The program and its arguments
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required_unless_present = "pid",
        value_name = "PROGRAM [ARGS]"
    )]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    let profiled = match args.pid {
        Some(pid) => running::profile_pid(pid, args),
        None => profile(args),
    };
    match profiled {
        Ok(code) => code,
        Err(error) => {
            eprintln!("waitword: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// The exit status is the program's.
fn profile(args: &Args) -> Result<ExitCode> {
    let launch = Launch::of(&args.command)?;
    let temporary = crate::scratch::directory()?;
    let directory = match &args.output {
        Some(directory) => {
            make_output(directory)?;
            directory
        }
        None => temporary.path(),
    };
    let mut command = launch.command(directory, args.threshold)?;
    // A Ctrl-C is for the program, which then ends; what it has recorded is shown.
    let _stop = crate::stop::stop_on_signals()?;
    let limit = args.watch.map(Duration::from_secs);
    let status = watcher::status(&mut command, directory, limit).with_context(|| launch.name())?;
    show(directory)?;
    if args.output.is_some() {
        say_where(directory);
    }
    Ok(match (status.code(), status.signal()) {
        (Some(code), _) => ExitCode::from(code as u8),
        (None, signal) => {
            eprintln!("waitword: {}: {status}", launch.name());
            ExitCode::from(128 + signal.unwrap_or_default() as u8)
        }
    })
}

fn make_output(directory: &Path) -> Result<()> {
    let shown = || format!("--output {}", directory.display());
    DirBuilder::new().mode(0o700).create(directory).with_context(shown)
}

fn say_where(directory: &Path) {
    eprintln!("The recording is in {}.", directory.display());
}

fn show(directory: &Path) -> Result<()> {
    let profiles = recording::profiles(directory, USUAL_LISTED)?;
    let files = Rc::new(Files::default());
    eprint!("{}", summary(&mut Recording::new(&profiles, &files)));
    recording::complain(&files);
    Ok(())
}
