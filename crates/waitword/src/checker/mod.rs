//! The checker of a model build: loom (`--cfg loom`) or shuttle (`--cfg loom --cfg shuttle`).
//!
//! Both run the same code, with their own atomics and threads. loom explores every interleaving of
//! a scene of two or three threads, and the stale values that the C11 memory model allows. shuttle
//! picks interleavings at random, with sequentially consistent atomics only, and so can run scenes
//! of any size (`model/stress`).

#[cfg(not(shuttle))]
mod with_loom;
#[cfg(shuttle)]
mod with_shuttle;

#[cfg(not(shuttle))]
pub(crate) use with_loom::*;
#[cfg(shuttle)]
pub(crate) use with_shuttle::*;
