//! Torture tests for waitword: no wake-up is ever lost, whatever else goes on.
//!
//! Modelled on the kernel's locktorture. Scenarios drive the futex operations with random choices.
//! Each checks an invariant that a lost wake-up, a wrong count or a broken queue would violate. A
//! watchdog checks for progress. If there is none for a while, it prints which thread waits for
//! what and ends the run with a failure.
//!
//! ```text
//!   run ── supervisor: draws progress, adds up counts, detects a process that no longer responds
//!            │ one process per scenario: it starts with a fresh table, and may crash
//!            ▼
//!          child: context, watchdog, rounds
//!            │ rounds of a fraction of a second: threads are joined and counters checked
//!            ▼
//!          scenario ── crew of threads (or processes). Each is an Actor: it waits and wakes,
//!                      counts its operations, and writes to the Board what it is doing
//! ```
//!
//! Meanwhile faults are injected ([`Fault`]): threads are moved between CPUs, change priority, hold
//! locks for a long time, are stopped, and are refused memory. No invariant depends on the absence
//! of faults.
//!
//! All random choices come from the seed. The same seed makes the same choices in each thread, and
//! injects the same faults in each slice of a scenario. How the scheduler interleaves the threads
//! is not repeatable. A slice that fails prints the command that runs it again with the same
//! choices.
//!
//! `parts` holds what several scenarios share: books that reveal two simultaneous holders, turns
//! with nested locks, a store for tokens, teams of processes, storms of signals. The scenarios of
//! `pthread` call the C library's functions. With `--drop-in` they torture the pthread drop-in,
//! which the supervisor loads into their processes (`drop_in.rs`).
//!
//! A test tool that cannot fail proves nothing. [`Sabotage`] makes the scenarios themselves leave
//! out a wake or misstate a count now and then, and the tests check that this is caught.

mod actor;
mod args;
mod board;
mod child;
mod choices;
mod context;
mod count;
mod drop_in;
mod fault;
mod parts;
mod preflight;
mod process;
mod pthread;
mod record;
mod report;
mod scenario;
mod slice;
mod spot;
mod summary;
mod supervisor;
mod tokens;
mod watchdog;

pub use args::{Args, Sabotage};
pub use child::run_if_child;
pub use drop_in::DropIn;
pub use fault::Fault;
pub use supervisor::run;

/// The names of all scenarios, of the library or of the drop-in, in the order in which they run.
pub fn scenario_names(drop_in: Option<DropIn>) -> impl Iterator<Item = &'static str> {
    scenario::all(drop_in).iter().map(|scenario| scenario.name)
}
