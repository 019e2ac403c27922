//! Faults: what a machine, a scheduler or an administrator may do to threads while they wait and
//! wake.
//!
//! ```text
//!   seed, scenario, slice ──► which faults this slice has                      (chosen)
//!   seed, fault, number   ──► how long until the next one, and what it does    (choices)
//!
//!   in the scenario's own process            outside, in the supervisor
//!     Injector: a thread for each fault        Outside: stops the whole process; steps the clock
//!     Actor::dawdle: holds                     (the process that does this must not be stopped)
//!     SIGSYS handler: memory refused
//! ```
//!
//! So the same seed injects the same faults in the same order. When they strike is up to the
//! scheduler. Each is counted on the board. No fault may break what the library promises: all
//! invariants hold under all faults.

pub(crate) mod choice;
pub(crate) mod clock;
pub(crate) mod flag;
pub(crate) mod hold;
pub(crate) mod injector;
pub(crate) mod kind;
pub(crate) mod memory;
pub(crate) mod priority;
pub(crate) mod shuffle;
pub(crate) mod stop;
pub(crate) mod stutter;
mod tasks;
