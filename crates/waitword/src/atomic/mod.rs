//! The atomics, cells, statics and thread-locals that the crate uses: the standard ones
//! (`real.rs`), or the checker's in a model build (`model.rs`, `--cfg loom`).
//!
//! The two files have the same names with the same meaning. Apart from them and from
//! `sys/*_model.rs`, most of the crate is the same code in both builds. `cfg(loom)` marks the
//! exceptions.

#[cfg_attr(loom, path = "model.rs")]
mod real;

pub(crate) use real::*;
