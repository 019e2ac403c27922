//! Records why the threads of a process wait: for which object, for how long, and where.
//!
//! The pthread drop-in and the library call [`begin`] and [`end`] around waits. Each thread writes
//! into a ring of its own, in a file that the process maps; full rings are appended to a second
//! file ([`mod@format`]). Recording allocates nothing and takes no lock of the program's, so it may
//! happen in any wait: in an allocator, in a signal handler, in a forked child.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod control;
pub mod format;

mod budget;
mod chain;
mod duty;
mod files;
mod holders;
mod present;
mod priority;
mod recorder;
mod recording;
mod ring;
mod sampling;
mod stacks;
mod sums;
mod switches;
mod ticks;
mod turns;
mod unwind;

pub use control::{follow, start, undisturbed};
pub use holders::is_wanted;
pub use recorder::{
    Began, Take, What, begin, end, end_at_condvar, finish, hold, note_release,
    note_release_at_once, release, release_at_once, take, take_at_once,
};
pub use recording::{Refused, USUAL_THRESHOLD, is_on};

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
