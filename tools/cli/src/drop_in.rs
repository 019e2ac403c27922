//! `waitword run` and `waitword preload`: programs on the pthread drop-in.

mod check;
#[cfg(target_arch = "x86_64")]
mod inlined;
pub(crate) mod library;
pub(crate) mod program;

use anyhow::{Context as _, Result};
use clap::ValueEnum as _;
use program::{CANNOT_RUN, NOT_FOUND};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// The arguments of `waitword run`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  waitword run -- ./server --port 8080
      The server's locks, and those of its child processes, are waitword's.
  waitword run --summary -- ./batch
      Says at the end how many locks it took, and how many waits slept.
  waitword run --check -- ./batch
      Says whether the program can be served.

Served are pthread mutexes, condition variables, rwlocks, semaphores and barriers, and the futex
calls made through the C library. What several processes share stays with the C library and the
kernel. The program's files are not changed; a library is preloaded.")]
pub(crate) struct RunArgs {
    /// Leave raw futex calls (those made through the C library's `syscall`) to the kernel
    #[arg(long)]
    no_futex: bool,
    /// How threads wait for mutexes
    #[arg(long, value_name = "FLAVOUR", value_enum)]
    mutex: Option<Flavour>,
    /// Longest time in nanoseconds that a thread spins before it sleeps; 0: it sleeps at once
    #[arg(long, value_name = "NS")]
    spin: Option<u64>,
    /// At exit, write a line of lock statistics to stderr, or append it to FILE
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true,
    )]
    summary: Option<Option<PathBuf>>,
    /// Do not run the program; report whether it can be served, and which futex calls of the
    /// program and its libraries waitword will not see
    #[arg(long)]
    check: bool,
    /// The program and its arguments
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true,
        value_name = "PROGRAM [ARGS]"
    )]
    command: Vec<OsString>,
}

/// The flavours, under the names that `WAITWORD_MUTEX` accepts.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Flavour {
    /// The lock chooses whether to spin, to sleep and to hand off
    Adaptive,
    /// Running threads may take the lock ahead of sleepers; waiters stay awake for some µs
    Throughput,
    /// A thread that finds the lock taken sleeps at once
    WaitWake,
}

impl Flavour {
    /// Its name in `WAITWORD_MUTEX`.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

impl RunArgs {
    /// The options as environment variables for the drop-in (see its `mode.rs`).
    fn environment(&self) -> Result<Vec<(&'static str, OsString)>> {
        let mut variables = Vec::new();
        if self.no_futex {
            variables.push(("WAITWORD_FUTEX", "off".into()));
        }
        if let Some(flavour) = self.mutex {
            variables.push(("WAITWORD_MUTEX", flavour.name().into()));
        }
        if let Some(nanoseconds) = self.spin {
            variables.push(("WAITWORD_SPIN_NS", nanoseconds.to_string().into()));
        }
        match &self.summary {
            None => {}
            Some(None) => variables.push(("WAITWORD_SUMMARY", "1".into())),
            Some(Some(file)) => {
                // Absolute: the program may change its working directory.
                let path = std::path::absolute(file)?;
                File::options()
                    .append(true)
                    .create(true)
                    .open(&path)
                    .with_context(|| format!("--summary={}", file.display()))?;
                variables.push(("WAITWORD_SUMMARY", path.into()));
            }
        }
        Ok(variables)
    }
}

/// Executes the program in this process. Returns only if that fails, or for `--check`.
pub(crate) fn run(args: &RunArgs) -> ExitCode {
    let [name, arguments @ ..] = args.command.as_slice() else {
        unreachable!("clap asks for a program");
    };
    let Some(path) = program::find(name) else {
        eprintln!("waitword: {}: not found", name.display());
        return ExitCode::from(NOT_FOUND);
    };
    if let Err(error) = program::can_be_served(&path) {
        eprintln!("waitword: {}: {error:#}", name.display());
        return ExitCode::from(CANNOT_RUN);
    }
    if args.check {
        return check::report(&path);
    }
    let prepared = library::put_in_place().and_then(|library| Ok((library, args.environment()?)));
    let (library, environment) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            eprintln!("waitword: {error:#}");
            return ExitCode::from(CANNOT_RUN);
        }
    };
    let error = Command::new(&path)
        .arg0(name)
        .args(arguments)
        .env("LD_PRELOAD", before_others(library.as_os_str()))
        .envs(environment)
        .exec();
    eprintln!("waitword: {}: {error}", name.display());
    ExitCode::from(CANNOT_RUN)
}

/// The value of `LD_PRELOAD` with our library in front: the first library that defines a name wins.
/// If the library is in the list already, it is not repeated.
pub(crate) fn before_others(library: &OsStr) -> OsString {
    let mut list = library.to_owned();
    let others = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    let others = others.to_string_lossy().into_owned();
    for other in others.split([':', ' ']).filter(|other| !other.is_empty()) {
        if OsStr::new(other) != library {
            list.push(":");
            list.push(other);
        }
    }
    list
}

/// Prints the path of the library, for users who set `LD_PRELOAD` themselves.
pub(crate) fn preload() -> ExitCode {
    match library::put_in_place().context("cannot install the drop-in") {
        Ok(library) => {
            println!("{}", library.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("waitword: {error:#}");
            ExitCode::FAILURE
        }
    }
}
