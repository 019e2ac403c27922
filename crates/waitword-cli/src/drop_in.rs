//! Programs on the pthread drop-in: `waitword run`, `waitword preload`.

pub(crate) mod library;
mod program;

use anyhow::Context as _;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

/// What `waitword run` is told.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// The program, and what it is to be told
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true,
        value_name = "PROGRAM [ARGS]"
    )]
    command: Vec<OsString>,
}

/// As a shell: the program was found and cannot be run; it was not found.
const CANNOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Becomes the program. Returns only if that fails.
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
    let library = match library::put_in_place() {
        Ok(library) => library,
        Err(error) => {
            eprintln!("waitword: {error:#}");
            return ExitCode::from(CANNOT_RUN);
        }
    };
    let error = Command::new(&path)
        .arg0(name)
        .args(arguments)
        .env("LD_PRELOAD", before_others(library.as_os_str()))
        .exec();
    eprintln!("waitword: {}: {error}", name.display());
    ExitCode::from(CANNOT_RUN)
}

/// `LD_PRELOAD` with ours in front of what is there: the first one defines a name. Once, if it is there already.
fn before_others(library: &OsStr) -> OsString {
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

/// Prints where the library is, for those who set `LD_PRELOAD` themselves.
pub(crate) fn preload() -> ExitCode {
    match library::put_in_place().context("the drop-in has no place") {
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
