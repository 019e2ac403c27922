//! The `waitword` command.

mod bench;
mod cells;
mod compare;
mod completions;
mod costs;
mod deadlock;
mod doctor;
mod drop_in;
mod explain;
mod man_pages;
mod memory_child;
mod metrics;
mod out_file;
mod profile;
mod record_session;
mod recording_child;
mod report;
mod scratch;
mod stop;
mod top;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Futexes of 8 to 64 bits in user space, and locks built on them: run a program on them, measure
/// them, stress them.
#[derive(Debug, Parser)]
#[command(name = "waitword", version = env!("WAITWORD_VERSION"))]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run an unmodified program with its pthread locks on waitword
    Run(drop_in::RunArgs),
    /// Print the path of the library that `run` preloads, for use in your own LD_PRELOAD
    Preload,
    /// Find out which flavour is best for a program: run it plain and on each of them, in turn
    Compare(compare::Args),
    /// Run a program, and show where its threads lost time waiting for locks, and because of whom
    Profile(profile::Args),
    /// Say why the threads of a recording waited, and what to do about it
    Explain(explain::Args),
    /// Look into a running program: do threads of it wait for each other?
    Deadlock(deadlock::Args),
    /// Watch where the threads of a program lose time waiting for locks, while it runs
    Top(top::Args),
    /// Serve the waits of a running program to Prometheus and to collectors of pprof profiles
    Metrics(metrics::Args),
    /// Measure waitword against the kernel's futex and other lock libraries, in one interleaved run
    Bench(Box<bench::Args>),
    /// Show a report of `bench --json` as an HTML page or Markdown, or compare it with an older one
    Report(report::Args),
    /// Count the instructions, atomic operations and system calls of each operation
    Costs(costs::Args),
    /// Show what this machine supports and how waitword uses it
    Doctor(doctor::Args),
    /// Stress futexes and locks under injected faults, and check that no wake-up is lost
    Torture(waitword_torture::Args),
    /// Print the file by which a shell completes this command's words
    Completions(completions::Args),
    /// For packages: write the man pages
    #[command(hide = true)]
    ManPages(man_pages::Args),
    /// Internal: measure memory use in a fresh process
    #[command(name = waitword_bench::workload::memory::CHILD, hide = true)]
    MemoryChild(memory_child::Args),
    /// Internal: measure what recording costs in a fresh process
    #[command(name = waitword_bench::workload::recording::CHILD, hide = true)]
    RecordingChild(recording_child::Args),
    /// Internal: run one random load in its own process
    #[command(name = waitword_bench::any::child::CHILD, hide = true)]
    AnyChild,
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Run(args) => drop_in::run(&args),
        Command::Preload => drop_in::preload(),
        Command::Compare(args) => compare::run(&args),
        Command::Profile(args) => profile::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Deadlock(args) => deadlock::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Metrics(args) => metrics::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Costs(args) => costs::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Torture(args) => waitword_torture::run(&args, &|| {
            drop_in::library::put_in_place().map_err(|error| format!("{error:#}"))
        }),
        Command::Completions(args) => completions::run(&args),
        Command::ManPages(args) => man_pages::run(&args),
        Command::MemoryChild(args) => memory_child::run(&args),
        Command::RecordingChild(args) => recording_child::run(&args),
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
