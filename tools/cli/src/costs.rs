//! `waitword costs`: counts what each operation costs, and compares the counts with a stored table.

use anyhow::{Context as _, Result, bail};
use indicatif::{ProgressBar, ProgressDrawTarget};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use waitword_bench::costs::{Change, Counted, Difference, Table, Which, count};

/// The arguments of `waitword costs`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Write the table to FILE
    #[arg(long, value_name = "FILE", conflicts_with = "check")]
    write: Option<PathBuf>,

    /// Count waitword's own operations again and compare them with the table in FILE; exit with
    /// status 1 if they differ
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,

    /// Count only the operations whose names contain TEXT
    #[arg(long, value_name = "TEXT", default_value = "", conflicts_with = "write")]
    only: String,

    /// Also write the rows to FILE as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Instruction counts of an unoptimized build mean nothing and are not compared. The other counts
/// do not depend on optimization.
const IS_OPTIMIZED: bool = !cfg!(debug_assertions);

/// How often operations that differ from the table are counted again.
const AGAIN: usize = 4;

pub(crate) fn run(args: &Args) -> ExitCode {
    let done = match &args.check {
        Some(path) => check(path, &args.only, args.json.as_deref()),
        None => show(args.write.as_deref(), &args.only, args.json.as_deref()),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}

/// Counts everything and writes the table to a file or to stdout.
fn show(write: Option<&Path>, only: &str, json: Option<&Path>) -> Result<ExitCode> {
    if write.is_some() && !IS_OPTIMIZED {
        bail!(
            "only an optimized build may write the table: cargo run --release -- costs --write FILE"
        );
    }
    load_drop_in();
    let counted = count_named(Which::All, only)?;
    say_what_is_missing(&counted);
    if counted.refused.is_some() {
        return Ok(ExitCode::FAILURE);
    }
    match write {
        Some(path) => {
            put(path, &counted.table.to_markdown())?;
            println!("{} rows written to {}", counted.table.rows.len(), path.display());
        }
        None => print!("{}", counted.table.to_markdown()),
    }
    write_json(json, &counted.table)?;
    Ok(ExitCode::SUCCESS)
}

fn check(path: &Path, only: &str, json: Option<&Path>) -> Result<ExitCode> {
    let file = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {file}"))?;
    let mut old = Table::from_markdown(&text).with_context(|| file.to_string())?;
    old.rows.retain(|row| row.what.contains(only));
    load_drop_in();
    let counted = count_named(Which::Ours, only)?;
    say_what_is_missing(&counted);
    write_json(json, &counted.table)?;
    let mut differences = differences_from(&old, &counted);
    // If the machine interrupts a thread at a bad moment, the thread may take another path. That
    // does not happen every time.
    for _ in 0..AGAIN {
        let differs = |chapter: &str, what: &str| {
            let mut differences = differences.iter();
            differences.any(|one| one.chapter == chapter && one.what == what)
        };
        let again = differences_from(&old, &count(Which::Ours, differs, |_, _| ()));
        differences.retain(|one| again.iter().any(|other| one.is_about_the_same_as(other)));
    }
    if !IS_OPTIMIZED {
        println!("instructions are not compared: this build is not optimized");
    }
    if counted.table.rows.is_empty() && differences.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    if differences.is_empty() {
        println!("{} rows, all as in {file}", counted.table.rows.len());
        return Ok(ExitCode::SUCCESS);
    }
    println!("{} differences from {file}:", differences.len());
    for difference in differences {
        println!("  {difference}");
    }
    if old.counted_with != counted.table.counted_with {
        println!(
            "the table was counted with {}, this run with {}",
            old.counted_with, counted.table.counted_with
        );
    }
    println!("if the change is intended: cargo run --release -- costs --write {file}");
    Ok(ExitCode::FAILURE)
}

fn differences_from(old: &Table, counted: &Counted) -> Vec<Difference> {
    let mut differences = counted.table.differences_from(old, IS_OPTIMIZED);
    if counted.refused.is_some() {
        // A row that this machine does not let us count is not a difference.
        differences.retain(|difference| difference.change != Change::Gone);
    }
    differences
}

fn load_drop_in() {
    if let Err(error) = crate::drop_in::library::load_beside_the_c_library() {
        eprintln!("waitword: the drop-in's operations are not counted: {error:#}");
    }
}

fn count_named(which: Which, only: &str) -> Result<Counted> {
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
    let counted = count(
        which,
        |_, what| what.contains(only),
        |done, of| {
            bar.set_length(of as u64);
            bar.set_position(done as u64);
        },
    );
    bar.finish_and_clear();
    if counted.refused.is_none() && counted.table.rows.is_empty() {
        bail!("no operation that can be counted here has '{only}' in its name");
    }
    Ok(counted)
}

fn say_what_is_missing(counted: &Counted) {
    if let Some(why) = &counted.refused {
        println!("not counted: {why}");
    }
    for (operation, why) in &counted.left_out {
        println!("not counted: \"{operation}\": {why}");
    }
}

fn write_json(path: Option<&Path>, table: &Table) -> Result<()> {
    path.map_or(Ok(()), |path| put(path, &(serde_json::to_string_pretty(table)? + "\n")))
}

fn put(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
