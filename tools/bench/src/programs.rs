//! Whole third-party programs, plain and under the pthread drop-in: they must produce the same
//! output, and their cost is measured.
//!
//! | file | contents |
//! |---|---|
//! | `program` | a program: what it needs, how it is set up, how it is run once |
//! | `list`, `tools`, `servers`, `databases`, `written` | the programs themselves |
//! | `need` | commands that programs need, and where they are |
//! | `place` | a working directory, generated input, ports |
//! | `child` | a child process: its start, output, time limit and resource usage |
//! | `hang` | which thread waits where in a process that does not end |
//!
//! The result of a run is `Done`: how many operations in how many seconds, the resources that the
//! program used (for a server: the server, not its load generator), and *the bytes that must be the
//! same in every run*, such as an encoded file or printed results. Programs that print nothing but
//! measurements only have to end successfully.
//!
//! The programs are benchmarks and tools, servers with a load generator, databases, and small
//! programs written for this purpose.

mod child;
mod databases;
mod hang;
mod list;
mod need;
mod place;
mod program;
mod servers;
mod tools;
mod written;

pub(crate) use child::Launcher;
pub(crate) use list::programs;
#[cfg(test)]
pub(crate) use program::Done;
pub(crate) use program::{Job, Program, Size, missing_packages};
