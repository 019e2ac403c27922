//! The benchmark behind `waitword bench`: compares this project's futexes and locks with the
//! kernel's futex and with other locks.
//!
//! A run compares all variants of a case at once. They are *interleaved* over several rounds, each
//! in a newly drawn order, so that a disturbance of the machine affects all of them. Each ratio to
//! the baseline is taken within a round. The baseline is futex(2) itself, called without the C
//! library. A cell in which we lose is printed like any other.
//!
//! The modules from the ground up. A module uses only those above it in this table, and no files
//! use each other in a circle: a type that two files need has a file of its own, a list imports its
//! entries, and no entry imports the list. `scripts/rooms` checks this.
//!
//! | module | contents |
//! |---|---|
//! | [`ticks`], `pause`, `cpus` | a clock cheap enough to time every lock call; short work; CPUs |
//! | [`usage`], [`syscall_count`] | CPU time and switches; system calls |
//! | [`stats`] | medians, ratios, intervals |
//! | `patch`, `names` | the five patches; what a variant's name says |
//! | `settings`, [`machine`] | what the user wants; the header of every report |
//! | [`ops`] | the futex interface ([`ops::Futexes`]); the kernel's futex and ours |
//! | [`locks`] | the lock interface; locks of C, Rust, C++, oneTBB, nsync, absl; old locks |
//! | [`harness`] | cases and variants; rounds, order, disturbed rounds; their results |
//! | [`origin`] | the command, source and peers that produced a report |
//! | [`crew`] | many threads that are put to sleep and are *seen* asleep |
//! | `programs` | whole third-party programs, plain and on the pthread drop-in |
//! | [`watchdog`] | ends a hang with a message |
//! | [`bars`] | the goals |
//! | [`workload`] | one file per workload: what is done, and what its figures mean; their list |
//! | [`any`] | randomly drawn loads, and how our locks do on them |
//! | [`costs`] | counts each operation's instructions, atomic operations and system calls |
//! | [`report`] | the report of a run and its JSON |
//! | [`standing`] | where we win and where we lose |
//! | [`glance`] | for each patch, ours and the best peer |
//! | [`compare`] | changes since an older run |
//! | `run` | carries out the requested workloads |

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod any;
pub mod bars;
pub mod compare;
pub mod costs;
mod cpus;
pub mod crew;
pub mod glance;
pub mod harness;
pub mod locks;
pub mod machine;
mod names;
pub mod ops;
pub mod origin;
mod patch;
mod pause;
mod programs;
pub mod report;
pub mod standing;
pub mod stats;
pub mod syscall_count;
pub mod ticks;
pub mod usage;
pub mod watchdog;
pub mod workload;

mod run;
mod settings;

pub use harness::Workload;
pub use run::{Observer, run};
pub use settings::{Settings, WINDOW, has};
pub use workload::workloads;

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
