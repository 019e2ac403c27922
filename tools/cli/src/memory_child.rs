//! `waitword memory-child N`: started by the benchmark, to measure memory use in a process whose
//! waiter table is new.

use std::process::ExitCode;
use waitword_bench::workload::memory;

/// The hidden command's arguments.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    threads: usize,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    match memory::bytes_after(args.threads) {
        Ok(bytes) => {
            println!("{bytes}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}
