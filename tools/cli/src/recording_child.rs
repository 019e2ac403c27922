//! `waitword recording-child MEASURE N`: started by the benchmark, to measure what recording costs
//! in a process that has recorded nothing before.

use std::process::ExitCode;
use waitword_bench::workload::recording::{Measure, measure_in_child};

/// The hidden command's arguments.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    measure: String,
    number: usize,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    let Some(measure) = Measure::from_words(&args.measure, args.number) else {
        eprintln!("waitword: no such measure: {}", args.measure);
        return ExitCode::from(2);
    };
    match measure_in_child(measure) {
        Ok(values) => {
            let values: Vec<String> = values.iter().map(f64::to_string).collect();
            println!("{}", values.join(" "));
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("waitword: {failure}");
            ExitCode::FAILURE
        }
    }
}
