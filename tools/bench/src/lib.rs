//! The benchmark behind `waitword bench`: compares this project's futexes and locks with the
//! kernel's futex and with other locks.
//!
//! A run compares all variants of a case at once. They are *interleaved* over several rounds, each
//! in a newly drawn order, so that a disturbance of the machine affects all of them. Each ratio to
//! the baseline is taken within a round. The baseline is futex(2) itself, called without the C
//! library. A cell in which we lose is printed like any other.
//!
//! | module | contents |
//! |---|---|
//! | [`ops`] | the futex interface ([`ops::Futexes`]); the kernel's futex and ours |
//! | [`locks`] | the lock interface; locks of C, Rust, C++, oneTBB, nsync, absl; old locks |
//! | [`workload`] | one file per workload: what is done, and what its figures mean |
//! | [`any`] | randomly drawn loads, and how our locks do on them |
//! | [`harness`] | rounds, order, disturbed rounds; cases and variants |
//! | [`costs`] | counts each operation's instructions, atomic operations and system calls |
//! | `programs` | whole third-party programs, plain and on the pthread drop-in |
//! | [`crew`] | many threads that are put to sleep and are *seen* asleep |
//! | [`stats`], [`report`], [`bars`] | medians and ratios; the report and its JSON; the goals |
//! | [`standing`] | where we win and where we lose |
//! | [`glance`] | for each patch, ours and the best peer |
//! | [`compare`] | changes since an older run |
//! | [`usage`], [`machine`], [`syscall_count`] | CPU time and switches; the header; system calls |
//! | [`origin`] | the command, source and peers that produced a report |
//! | [`ticks`] | a clock that is cheap enough to time every lock call |
//! | [`watchdog`] | ends a hang with a message |

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
