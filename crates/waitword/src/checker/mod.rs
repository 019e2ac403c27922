//! The checker that a model build is for: loom (`--cfg loom`), or shuttle (`--cfg loom --cfg shuttle`).
//!
//! Both run the same code, with atomics and threads of their own. loom explores every interleaving of a scene of two or three
//! threads, and the stale values that the C11 memory model allows. shuttle takes interleavings by chance, of sequentially
//! consistent atomics only, and so can run scenes of any size (`model/stress`).

#[cfg(not(shuttle))]
mod with_loom;
#[cfg(shuttle)]
mod with_shuttle;

#[cfg(not(shuttle))]
pub(crate) use with_loom::*;
#[cfg(shuttle)]
pub(crate) use with_shuttle::*;
