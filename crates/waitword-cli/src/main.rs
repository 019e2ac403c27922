//! The command `waitword`.

mod bench;
mod doctor;
mod memory_child;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Futexes of 8 to 64 bits in user space: measure them, torture them, see what this machine offers.
#[derive(Debug, Parser)]
#[command(name = "waitword", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure waitword against the kernel's futex, both in one interleaved run
    Bench(bench::Args),
    /// Show what this machine offers, and what waitword does with it
    Doctor(doctor::Args),
    /// Try to make a wake-up get lost, and see that none is
    Torture(waitword_torture::Args),
    /// A part of the benchmark that needs a process of its own
    #[command(name = waitword_bench::workload::memory::CHILD, hide = true)]
    MemoryChild(memory_child::Args),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Bench(args) => bench::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Torture(args) => waitword_torture::run(&args),
        Command::MemoryChild(args) => memory_child::run(&args),
    }
}
