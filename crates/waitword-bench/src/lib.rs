//! The benchmark behind `waitword bench`: how the futexes of this project compare with the kernel's.
//!
//! One run compares all: the variants of a case are *interleaved* over several rounds, each in an
//! order drawn anew, so that whatever the machine does meanwhile happens to all of them, and each
//! ratio to the baseline is taken within a round. The baseline is futex(2) itself, called without
//! the C library. A cell in which we lose is printed like any other.
//!
//! | room | what lives there |
//! |---|---|
//! | [`ops`] | what a peer must offer ([`ops::Futexes`]); the kernel's futex and ours |
//! | [`locks`] | what a lock must offer; the C library's, Rust's, C++'s, oneTBB's, nsync's and absl's locks, and the old ways |
//! | [`workload`] | one file an idea: what is done, and what its figures mean |
//! | [`any`] | loads drawn at random, and how ours stand on them |
//! | [`harness`] | rounds, order, disturbed rounds, what a case and a variant are |
//! | [`costs`] | instructions, atomic operations and system calls of each operation, counted by single-stepping |
//! | `programs` | whole programs of others, plain and on the pthread drop-in |
//! | [`crew`] | many threads that are put to sleep and are *seen* asleep |
//! | [`stats`], [`report`], [`bars`] | medians and ratios; the report and its JSON; what must be reached |
//! | [`standing`] | where ours wins and where it loses |
//! | [`glance`] | for each patch, ours beside the best peer |
//! | [`compare`] | what has changed since an older run |
//! | [`usage`], [`machine`], [`syscall_count`] | CPU time and switches; the header; system calls made |
//! | [`origin`] | by which command, from which source, with which peers a report was made |
//! | [`ticks`] | a clock that is cheap enough to time every lock call |
//! | [`watchdog`] | a hang ends with a message |

pub mod any;
pub mod bars;
pub mod compare;
pub mod costs;
pub mod crew;
pub mod glance;
pub mod harness;
pub mod locks;
pub mod machine;
pub mod ops;
pub mod origin;
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

pub use run::{Observer, Settings, WINDOW, Workload, has, run, workloads};
