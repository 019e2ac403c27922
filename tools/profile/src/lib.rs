//! Reads what `waitword-record` has recorded, and says where threads waited and for which thread.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod attach;
pub mod calls;
pub mod explain;
pub mod export;
pub mod live;
pub mod locks;
pub mod longest;
pub mod profile;
pub mod read;
pub mod remote;
pub mod sampled;
pub mod sites;
pub mod symbols;
pub mod text;
pub mod top;
pub mod wait_for;
pub mod watch;

/// The time, in nanoseconds of `CLOCK_MONOTONIC`, as in recordings.
pub(crate) fn now() -> u64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC);
    now.map_or(0, |now| core::time::Duration::from(now).as_nanos() as u64)
}

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
