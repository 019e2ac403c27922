//! The command `waitword`.

mod bench;
mod costs;
mod doctor;
mod drop_in;
mod memory_child;
mod out_file;
mod report;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Futexes of 8 to 64 bits and the locks on them, in user space: run a program on them, measure them, torture them.
#[derive(Debug, Parser)]
#[command(name = "waitword", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a program, unchanged, with its pthread locks on waitword
    Run(drop_in::RunArgs),
    /// Print the path of the library that `run` loads, for those who set LD_PRELOAD themselves
    Preload,
    /// Measure waitword against the kernel's futex, both in one interleaved run
    Bench(Box<bench::Args>),
    /// Show a report that `bench --json` wrote: as a page with plots, as Markdown, or beside an older one
    Report(report::Args),
    /// Count what each operation costs: instructions, atomic operations, system calls
    Costs(costs::Args),
    /// Show what this machine offers, and what waitword does with it
    Doctor(doctor::Args),
    /// Try to make a wake-up get lost, and see that none is
    Torture(waitword_torture::Args),
    /// A part of the benchmark that needs a process of its own
    #[command(name = waitword_bench::workload::memory::CHILD, hide = true)]
    MemoryChild(memory_child::Args),
    /// The same
    #[command(name = waitword_bench::any::child::CHILD, hide = true)]
    AnyChild,
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Run(args) => drop_in::run(&args),
        Command::Preload => drop_in::preload(),
        Command::Bench(args) => bench::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Costs(args) => costs::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Torture(args) => waitword_torture::run(&args, &|| {
            drop_in::library::put_in_place().map_err(|error| format!("{error:#}"))
        }),
        Command::MemoryChild(args) => memory_child::run(&args),
        Command::AnyChild => any_child(),
    }
}

fn any_child() -> ExitCode {
    match waitword_bench::any::child::child() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}
