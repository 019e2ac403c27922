//! The table of the process's private waiters, from outside: how large it is, and who stands in it.
//!
//! The first wait makes it, with 256 buckets or what the environment variable `WAITWORD_BUCKETS` says, rounded up
//! to a power of two (at least 64 for each NUMA node). It grows as more threads wait at once and never
//! shrinks.

pub use crate::private::{Snapshot, Waiter};

use crate::Error;
use crate::private::waiter_table;

/// How many buckets there are, over all NUMA nodes; 0 before the first wait.
pub fn buckets() -> usize {
    waiter_table().buckets()
}

/// Sees to it that there are at least `buckets`, so that no thread has to make the table grow later; how
/// many there are then.
///
/// # Errors
/// [`Error::OutOfMemory`]; the present table goes on.
pub fn reserve(buckets: usize) -> Result<usize, Error> {
    Ok(waiter_table().grow(buckets)?)
}

/// Bytes of address space taken by the table, by the smaller tables it has replaced, and by parkers.
pub fn mapped_bytes() -> usize {
    waiter_table().mapped_bytes()
}

/// Lists those who wait on private words, as far as there is room in `waiters`, and counts them all.
///
/// For somebody who looks at a program that hangs. Waiters come and go meanwhile. Takes each bucket's
/// lock for a moment, never waits for one for long, and is not for signal handlers.
pub fn snapshot(waiters: &mut [Waiter]) -> Snapshot {
    waiter_table().snapshot(waiters)
}
