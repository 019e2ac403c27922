//! `memory`: the memory used by the waiter table and the parkers.
//!
//! **Work.** n threads sleep on one word each, in a process of their own (a table never shrinks),
//! and are woken.
//!
//! **Reproduces** nothing; it holds us to a promise: 64 KiB, plus 512 bytes for each thread that
//! ever waited.
//!
//! **Figures.** Bytes mapped for table and parkers; the ratio is to the allowed number. The
//! kernel's own memory for its sleepers is not counted on either side.

use crate::crew::Crew;
use crate::harness::{Case, Contender, Context, Failure, Measured, Metric, Workload, check};
use crate::ops::Futexes;
use crate::settings::Settings;
use crate::usage::Usage;
use crate::watchdog;
use crate::workload::futexes::OURS;
use crate::workload::herd::Herd;
use crate::workload::words::{Spacing, Words};
use std::process::Command;
use std::sync::Arc;
use waitword::table;

/// The workload, as selected by name.
pub const WORKLOAD: Workload = Workload {
    name: "memory",
    about: "bytes of the table and parkers after n threads have waited",
    patch: Some(crate::patch::Patch::Private),
    milliseconds: 280,
    cases,
};

/// The subcommand for the child process: `waitword memory-child N`.
pub const CHILD: &str = "memory-child";

const METRICS: &[Metric] = &[Metric::less("", "bytes")];
const THREADS: [usize; 3] = [16, 512, 4096];

/// The bytes that `threads` waiters may use.
pub fn allowed(threads: usize) -> usize {
    64 * 1024 + 512 * threads
}

fn cases(_: &Settings) -> Vec<Case> {
    let case = |threads: usize| {
        let name = format!("after {threads} threads");
        Case::new(name, METRICS, 2, move |_| {
            Ok(vec![
                Contender::named("allowed", move |_| Ok(measured(allowed(threads)))),
                Contender::named("waitword", move |_| Ok(measured(ask_a_child(threads)?))),
            ])
        })
    };
    THREADS.into_iter().map(case).collect()
}

fn measured(bytes: usize) -> Measured {
    Measured { values: vec![bytes as f64], operations: 0, usage: Usage::default() }
}

fn ask_a_child(threads: usize) -> Result<usize, Failure> {
    let failed = |what: &dyn core::fmt::Display| {
        Failure::new(format!("the child process that measures memory: {what}"))
    };
    let program = std::env::current_exe().map_err(|error| failed(&error))?;
    let output = Command::new(program)
        .args([CHILD, &threads.to_string()])
        .output()
        .map_err(|error| failed(&error))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(failed(&format!("{}: {}", output.status, said.trim())));
    }
    text.trim().parse().map_err(|_| failed(&format!("said {:?}", text.trim())))
}

/// The work of the child process: `threads` threads sleep on one word each and are woken. Returns
/// the bytes mapped for that. The process should not have waited on anything before.
///
/// # Errors
/// If so many threads cannot be started, or a wake went wrong.
pub fn bytes_after(threads: usize) -> Result<usize, Failure> {
    let context = Context::new(Settings::default(), Arc::default());
    let _watchdog = watchdog::start(CHILD, &context).map_err(Failure::new)?;
    bytes_after_waiting(OURS, threads, &context)
}

pub(super) fn bytes_after_waiting<F: Futexes>(
    futex: F,
    threads: usize,
    context: &Context,
) -> Result<usize, Failure> {
    check(futex.queued().is_some(), || "these futexes have no table to be measured".to_owned())?;
    let words = Arc::new(Words::new(threads, Spacing::Apart, true));
    let crew = Crew::new(threads, context)?;
    let herd = Herd::asleep(&crew, futex, &words, threads, context)?;
    let woken = (0..threads).map(|index| futex.wake(&words[index], 1)).sum();
    herd.finish(woken, context)?;
    Ok(table::mapped_bytes())
}
