//! `recording`: what it costs that waits are recorded (`waitword profile`).
//!
//! **Work.** Whole programs on the drop-in, without and with a recording. A recorded wait alone:
//! a thread calls the recorder as a lock does, before and after a wait, and as the holder does
//! that releases the lock; in a process of its own, as a recording does not end. Memory of a
//! process with n threads that have each recorded a wait.
//!
//! **Reproduces** nothing; it holds us to promises: 3 % of throughput where locks are used, 10 %
//! where every operation waits; 200 ns for a wait plus its stack, 1 µs with 32 frames; 1 MiB plus
//! 64 KiB for each thread.
//!
//! **Figures.** *throughput* by the program's own clock. *time* for each recorded wait, of the
//! waiter and of the holder: the median of many. It is measured with two depths of the stack, and
//! a straight line through both gives the time with no frame and with 32. The time of the
//! clock readings that measure it is subtracted. *bytes*: what the process has mapped and not from
//! a file of a program, beyond the same process without a recording.

mod child;
mod memory;

pub use child::{Measure, measure_in_child};

use super::programs;
use crate::harness::{Case, Contender, Failure, Measured, Metric, Workload};
use crate::programs::Size;
use crate::settings::Settings;
use crate::usage::Usage;
use std::ffi::OsString;
use std::process::Command;

/// The workload, as selected by name.
pub const WORKLOAD: Workload = Workload {
    name: "recording",
    about: "what recording waits costs: whole programs, one wait, memory",
    patch: None,
    milliseconds: 2000,
    cases,
};

/// The subcommand for the child process: `waitword recording-child MEASURE`.
pub const CHILD: &str = "recording-child";

/// The programs: two with locks and work, and three in which nearly every operation waits.
const PROGRAMS: [&str; 5] = [
    "db_bench fillrandom, 8 threads",
    "sysbench threads",
    "sysbench mutex",
    "recursive mutexes, holders yield",
    "recursive mutexes, holders sleep",
];
/// The contenders of the programs.
const NAMES: &[&str] = &["plain", "waitword", "recording"];
const FRAMES: [f64; 2] = [0.0, 32.0];
/// What a recorded wait may take, in nanoseconds, with so many frames.
const ALLOWED: [f64; 2] = [200.0, 1000.0];
const THREADS: [usize; 2] = [1, 64];

fn cases(settings: &Settings) -> Vec<Case> {
    let size = if settings.full { Size::Long } else { Size::Short };
    let programs = programs::asked_for(settings).filter(|it| PROGRAMS.contains(&it.name));
    let mut cases: Vec<Case> =
        programs.map(|program| programs::case(program, size, NAMES, befores)).collect();
    let asks_for_programs = !settings.programs.is_empty();
    if !asks_for_programs {
        cases.extend((0..FRAMES.len()).map(of_a_wait));
        cases.extend(THREADS.map(of_memory));
    }
    cases
}

/// The words in front of a program, for each contender.
fn befores() -> Result<Vec<Vec<OsString>>, Failure> {
    let command: OsString = std::env::current_exe().map_err(Failure::new)?.into();
    let with = |name: &str| vec![command.clone(), name.into(), "--".into()];
    Ok(vec![Vec::new(), with("run"), with("profile")])
}

fn of_a_wait(which: usize) -> Case {
    let name = format!("a recorded wait, {} frames", FRAMES[which]);
    Case::new(name, &[Metric::less("time", "ns")], 3, move |_| {
        let ours = |name, measure: fn(usize) -> Measure| {
            Contender::named(name, move |_| {
                let [shallow, deep] = [0, 32].map(|calls| ask_a_child(&measure(calls)));
                Ok(measured(on_the_line(&shallow?, &deep?, FRAMES[which])?))
            })
        };
        Ok(vec![
            Contender::named("allowed", move |_| Ok(measured(ALLOWED[which]))),
            ours("waitword, waiter", |calls| Measure::Waiter { calls }),
            ours("waitword, holder", |calls| Measure::Holder { calls }),
        ])
    })
}

/// The time with so many frames. Each point is a time and its number of frames.
fn on_the_line(shallow: &[f64], deep: &[f64], frames: f64) -> Result<f64, Failure> {
    match (shallow, deep) {
        (&[time, few], &[deep_time, many]) if many > few => {
            let of_a_frame = (deep_time - time) / (many - few);
            Ok(time + (frames - few) * of_a_frame)
        }
        _ => Err(Failure::new(format!("two child processes measured {shallow:?}, {deep:?}"))),
    }
}

fn of_memory(threads: usize) -> Case {
    let name = format!("memory, {threads} threads");
    Case::new(name, &[Metric::less("", "bytes")], 2, move |_| {
        let allowed = (1 << 20) + threads * (64 << 10);
        Ok(vec![
            Contender::named("allowed", move |_| Ok(measured(allowed as f64))),
            Contender::named("waitword", move |_| {
                let used = [true, false].map(|recording| {
                    let bytes = ask_a_child(&Measure::Memory { threads, recording })?;
                    bytes.first().copied().ok_or_else(|| Failure::new("no bytes"))
                });
                let [with, without] = used;
                Ok(measured((with? - without?).max(0.0)))
            }),
        ])
    })
}

fn measured(value: f64) -> Measured {
    Measured { values: vec![value], operations: 0, usage: Usage::default() }
}

fn ask_a_child(measure: &Measure) -> Result<Vec<f64>, Failure> {
    let failed = |what: &dyn core::fmt::Display| {
        Failure::new(format!("the child process for {measure:?}: {what}"))
    };
    let program = std::env::current_exe().map_err(|error| failed(&error))?;
    let mut command = Command::new(program);
    let output = command.arg(CHILD).args(measure.words()).output();
    let output = output.map_err(|error| failed(&error))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(failed(&format!("{}: {}", output.status, said.trim())));
    }
    let numbers: Result<Vec<f64>, _> = text.split_whitespace().map(str::parse).collect();
    numbers.map_err(|_| failed(&format!("said {:?}", text.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_frame_is_the_slope_of_a_line() {
        let (shallow, deep) = ([300.0, 8.0], [620.0, 40.0]);
        assert_eq!(on_the_line(&shallow, &deep, 0.0).unwrap(), 220.0);
        assert_eq!(on_the_line(&shallow, &deep, 32.0).unwrap(), 540.0);
        assert!(on_the_line(&shallow, &shallow, 0.0).is_err(), "not deeper");
        assert!(on_the_line(&[], &deep, 0.0).is_err());
    }

    #[test]
    fn the_programs_exist() {
        let known: Vec<_> = crate::programs::programs().iter().map(|it| it.name).collect();
        for name in PROGRAMS {
            assert!(known.contains(&name), "{name}");
        }
    }
}
