//! Torture of waitword: a wake-up is never lost, whatever else goes on.
//!
//! In the manner of the kernel's locktorture: scenarios drive the futex operations with
//! random choices, each checks an invariant that a lost wake-up, a wrong count or a broken queue
//! would violate, and a watchdog watches that something gets done. If nothing does for a while, it
//! prints who waits for what and ends the run with a failure.
//!
//! ```text
//!   run ── supervisor: draws progress, adds up, knows when a scenario's process is beyond help
//!            │ one process for each scenario: it starts with a fresh table, and may crash
//!            ▼
//!          child: context, watchdog, rounds
//!            │ rounds of a fraction of a second: all threads end, then the books are balanced
//!            ▼
//!          scenario ── crew of threads (or processes), each an Actor that does the waits and wakes,
//!                      counts them, and writes on the Board what it is about
//! ```
//!
//! Meanwhile faults are injected ([`Fault`]): threads are shuffled among CPUs, get other priorities, hold locks for
//! long, are stopped, get no memory. No invariant depends on their absence.
//!
//! All random choices come from the seed: the same seed makes the same choices in each thread, and the same faults
//! in each slice of a scenario. What the scheduler makes of them is not repeatable; a slice that fails says by
//! which command it is run again with the same choices.
//!
//! What several scenarios are made of (books that betray two holders, turns with locks one inside another, a store for tokens, teams of
//! processes, storms of signals) is in `parts`. The scenarios of `pthread` call the C library's functions, and with `--drop-in` so torture the pthread drop-in, which the
//! supervisor has loaded into their processes (`drop_in.rs`).
//!
//! A tool that cannot fail proves nothing: [`Sabotage`] makes the scenarios themselves leave out a wake or
//! misstate a count now and then, and the tests see to it that this is caught.

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
