//! The calling thread's stack, without allocating, without a lock of the program's, and without
//! frame pointers.
//!
//! | file | contents |
//! |------|----------|
//! | `maps.rs` | reads `/proc/self/maps` |
//! | `modules.rs` | the loaded ELF files, and their tables of how to unwind (`.eh_frame`) |
//! | `processor.rs` | the registers of this processor |
//! | `rules.rs` | the rule for one place in the code, and a cache of such rules |
//! | `walk.rs` | follows the rules from frame to frame |
//!
//! # Cost
//!
//! A frame whose rule is in the cache takes some ns. A rule is looked up in `.eh_frame` when a
//! place in the code is seen for the first time, which takes some µs.
//!
//! # Safety
//!
//! Nothing that the program can do to its code or its stack makes a walk read memory that is not
//! mapped. The tables are read from mappings of our own, which `dlclose` does not unmap. The stack
//! is read only above the stack pointer, and below the end of the mapping that it is in.

mod maps;
mod modules;
mod processor;
mod rules;
mod walk;

pub(crate) use maps::copy_to;
#[cfg(test)]
pub(crate) use rules::while_in_use;
pub(crate) use rules::{forget, has_new_modules, write_build_ids, write_modules_again};
pub(crate) use walk::{Bounds, walk};
