//! What the tests and the tools of waitword share.
//!
//! | module | contents |
//! |---|---|
//! | [`watchdog`] | ends a hang, and reports which thread waits on what |
//! | [`child`] | forked processes |
//! | [`command`] | runs programs, and tests in a process of their own |
//! | [`thread`] | threads without std; signals to one thread |
//! | [`mod@until`] | waits for a condition, for a number of waiters |
//! | [`sleep`] | whether a thread sleeps in a futex call |
//! | [`crew`] | threads that execute orders, one step at a time |
//! | [`inside`] | a signal handler inside a bucket section |
//! | [`mapping`], [`arena`] | shared memory; memory for arguments, between inaccessible pages |
//! | [`harm`] | calls that may crash or hang |
//! | [`seccomp`] | system calls that the kernel refuses |
//! | [`raw`], [`answer`] | futex calls to the kernel and to the library; their answers |
//! | [`mod@cases`] | tables of calls to both, with the answers |
//! | [`buckets`] | words in different buckets of the kernel |
//! | [`atomic`] | the four word types behind one trait |
//! | [`event`], `fuzz` | programs of random steps: what a step did; the smallest that fails |

#![cfg_attr(docsrs, feature(doc_cfg))]
#![allow(clippy::missing_errors_doc, reason = "an error is an answer that a test expects")]

pub mod answer;
pub mod arena;
pub mod atomic;
pub mod buckets;
pub mod cases;
pub mod child;
pub mod command;
pub mod crew;
pub mod event;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod harm;
pub mod inside;
pub mod mapping;
pub mod raw;
pub mod seccomp;
pub mod sleep;
pub mod thread;
pub mod until;
pub mod watchdog;

pub use answer::{Answer, kernel, kernel_has, show};
pub use atomic::Atomic;
pub use child::{Child, Ended, Way, fork, in_child};
pub use command::in_fresh_process;
pub use crew::Crew;
pub use mapping::{Mapping, memory_file};
pub use sleep::{SleepProbe, sleeps};
pub use thread::{BareThread, install, signal, thread_number};
pub use until::{until, until_waiting, waiters_at};
pub use watchdog::{Watchdog, limit, watch, watch_for};

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
