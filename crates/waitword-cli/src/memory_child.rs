//! `waitword memory-child N`: what the benchmark starts to measure memory in a process whose table is new.

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
