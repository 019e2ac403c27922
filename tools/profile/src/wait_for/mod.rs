//! Which thread waits for which lock that which thread holds, in a live process: deadlocks.
//!
//! A *look* is a graph of the threads at one moment. Reading it takes some milliseconds, so it may
//! be torn: it can show a cycle that never was. So there are two looks, and only what is the same
//! in both counts: the same threads, each in the same wait, without having run in between. While
//! none of them runs, none can release a lock.
//!
//! | file | contents |
//! |---|---|
//! | `graph.rs` | a look |
//! | `recorded.rs` | what a process that records says: waits and holders, of every kind of lock |
//! | `calls.rs` | which kind of object a thread waits for, by the functions on its stack |
//! | `glibc.rs` | the owners that glibc's objects contain |
//! | `cycles.rs` | cycles, and locks whose holder has ended |
//! | `examine.rs` | the two looks; writers that readers starve |
//! | `text.rs`, `json.rs` | the answer |

mod calls;
mod cycles;
mod examine;
mod glibc;
mod graph;
pub mod json;

mod recorded;
pub mod text;

pub use cycles::Finding;
pub use examine::{Report, examine};
pub use graph::{Graph, Holders, Node, Source, Wait};
pub use recorded::{Recorded, Recording, Waiting};

#[cfg(test)]
pub(crate) mod tests {
    //! What the tests of other modules use.
    pub(crate) use super::cycles::tests::graph;
    pub(crate) use super::recorded::tests::rings;
}
