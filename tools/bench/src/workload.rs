//! The kinds of work that are measured, one file each, and what they share.
//!
//! Each file begins with the definition of the work, the public benchmark that it reproduces, and
//! the meaning of its figures. The definition is ours if the original program is lost, or if it
//! relies on something that no futex guarantees.

pub mod barrier;
pub mod calls;
pub mod cond_perf;
pub mod event;
pub mod hand_over;
pub mod hash;
pub mod lockhammer;
pub mod memory;
pub mod mutex;
pub mod ping_pong;
pub mod pp;
pub mod programs;
pub mod queue;
pub mod rates;
pub mod recording;
pub mod requeue;
pub mod rwlock;
pub mod scale;
pub mod semaphore;
pub mod shared;
pub mod shifting;
pub mod uncontended;
pub mod wake;
pub mod wake_parallel;

mod crowd;
#[cfg(test)]
mod faults;
mod futexes;
mod game;
mod guarded;
mod herd;
mod list;
mod pairs;
mod proof;
mod race;
mod spread;
#[cfg(test)]
mod testing;
pub(crate) mod timing;
mod words;

pub use crate::patch::Patch;
pub use list::workloads;
pub use words::{Spacing, Words};
