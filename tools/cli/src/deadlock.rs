//! `waitword deadlock`: which threads of a live process wait for each other.

use crate::out_file::print;
use anyhow::{Result, bail};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use waitword_profile::remote::Remote;
use waitword_profile::wait_for::{Recording, Report, examine, json::json, text::text};

/// The exit status if something was found.
const FOUND: u8 = 1;

/// The arguments of `waitword deadlock`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  waitword deadlock --pid 4711
      Says whether threads wait for each other, for a lock whose holder has ended, or for readers
      that never leave an rwlock free, with the stacks.
  waitword deadlock --pid $(pgrep -n server) --all --json | jq .waits
      Every thread that waits, for what, and who holds it.

The program need not have been started by waitword. Of a program that waitword does not record, it
knows the owners of glibc's mutexes, of rwlocks locked to write, and of priority-inheriting locks.
The program goes on meanwhile, and notices nothing. It must belong to the same user, and the kernel
must permit ptrace.

Exit status: 0 if nothing was found, 1 if something was, 2 for an error. Where holders are unknown,
the first line says of how many threads, and the status is 0 all the same.")]
pub(crate) struct Args {
    /// The process
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    pid: u32,
    /// Where it records, if that cannot be seen from outside (`waitword profile -o DIR`)
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Show every thread that waits
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    match deadlock(args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("waitword: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn deadlock(args: &Args) -> Result<ExitCode> {
    let remote = Remote::open(args.pid)?;
    let recording = Recording::find(&remote, args.dir.as_deref())?;
    if let (Some(denied), None) = (remote.denied(), &recording) {
        bail!("{denied}");
    }
    let mut symbols = remote.symbols();
    let report = examine(&remote, recording.as_ref(), &mut symbols)?;
    if args.json {
        print(&format!("{}\n", json(args.pid, &report, &mut symbols)))?;
    } else {
        print(&text(&report, &mut symbols, args.all))?;
        print(&notes(&remote, recording.is_some(), &report))?;
    }
    Ok(ExitCode::from(if report.findings.is_empty() { 0 } else { FOUND }))
}

/// What the answer lacks, and how to have it.
fn notes(remote: &Remote, records: bool, report: &Report) -> String {
    let mut text = String::new();
    if let Some(denied) = remote.denied() {
        text += &format!("No stacks: {denied}.\n");
    }
    if report.findings.is_empty() && !records && !report.without_holder().is_empty() {
        text += "To see the holders of all locks, run the program with:\n";
        text += &format!("  waitword profile --watch 5 -- {}\n", shell(&remote.command_line()));
    }
    text
}

/// A command line that a shell reads as these words.
pub(crate) fn shell(words: &[OsString]) -> String {
    let word = |word: &OsString| {
        let word = word.to_string_lossy();
        let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_./=:,+@%".contains(it);
        if !word.is_empty() && word.chars().all(is_plain) {
            word.into_owned()
        } else if word.contains(char::is_control) {
            // Also a shell's way: a terminal must not obey what another program has chosen.
            format!("$'{}'", word.escape_default())
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_the_words_again() {
        let words = ["./a", "--b=c", "it's", "", "x y"].map(OsString::from);
        assert_eq!(shell(&words), r"./a --b=c 'it'\''s' '' 'x y'");
        assert_eq!(shell(&["a\nb'c".into()]), r"$'a\nb\'c'");
    }
}
