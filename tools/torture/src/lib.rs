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
//! `objects` holds what is tortured: the library's types, and those of pthread, behind the same
//! traits. A scenario over such a trait is written once, and runs on both. With `--drop-in`, the
//! scenarios call the C library's functions, and so torture the pthread drop-in, which the
//! supervisor loads into their processes (`drop_in.rs`). `parts` holds what several scenarios
//! share: books that reveal two simultaneous holders, turns with nested locks, a store for tokens,
//! teams of processes, storms of signals.
//!
//! Files use only files of their own line, without a circle, and of the lines below:
//!
//! ```text
//!   lib, supervisor                                 the run
//!   args, preflight, summary, record
//!   child, fault/injector, watchdog, report         the process of a scenario
//!   list                                            the scenarios, by name
//!   scenario/*
//!   objects/*, parts/*, tokens
//!   crew, process, actor                            the threads and processes of a scenario
//!   fault/*
//!   context, board, slice, spot, drop_in, choices
//!   fault/kind, count, seed, memory, names, protocol, nap
//! ```
//!
//! A test tool that cannot fail proves nothing. [`Sabotage`] makes the scenarios themselves leave
//! out a wake or misstate a count now and then, and the tests check that this is caught.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod actor;
mod args;
mod board;
mod child;
mod choices;
mod context;
mod count;
mod crew;
mod drop_in;
mod fault;
mod list;
mod memory;
mod names;
mod nap;
mod objects;
mod parts;
mod preflight;
mod process;
mod protocol;
mod record;
mod report;
mod scenario;
mod seed;
mod slice;
mod spot;
mod summary;
mod supervisor;
mod tokens;
mod watchdog;

pub use args::Args;
pub use child::run_if_child;
pub use fault::kind::Fault;
pub use slice::{DropIn, Sabotage};
pub use supervisor::run;

/// The names of all scenarios, of the library or of the drop-in, in the order in which they run.
pub fn scenario_names(drop_in: Option<DropIn>) -> impl Iterator<Item = &'static str> {
    list::all(drop_in).iter().map(|scenario| scenario.name)
}
