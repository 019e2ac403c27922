//! The table of the process's private waiters, seen from outside: its size, and the waiters in it.
//!
//! The first wait creates it, with 256 buckets or the number in the environment variable
//! `WAITWORD_BUCKETS`, rounded up to a power of two (at least 64 for each NUMA node). It grows as
//! more threads wait at once and never shrinks.

pub use crate::private::{Snapshot, Waiter};

use crate::Error;
use crate::private::waiter_table;

/// The number of buckets over all NUMA nodes; 0 before the first wait.
pub fn buckets() -> usize {
    waiter_table().buckets()
}

/// Makes sure that there are at least `buckets` buckets, so that no thread has to grow the table
/// later. Returns the number of buckets.
///
/// # Errors
/// [`Error::OutOfMemory`]; the present table stays in use.
pub fn reserve(buckets: usize) -> Result<usize, Error> {
    Ok(waiter_table().grow(buckets)?)
}

/// The bytes of address space used by the table, by the smaller tables that it has replaced, and by
/// parkers.
pub fn mapped_bytes() -> usize {
    waiter_table().mapped_bytes()
}

/// Lists the waiters on private words, as far as there is room in `waiters`, and counts them all.
///
/// For debugging a program that hangs. Waiters come and go meanwhile. Takes each bucket's lock for
/// a moment and never waits long for one. Not for signal handlers.
pub fn snapshot(waiters: &mut [Waiter]) -> Snapshot {
    waiter_table().snapshot(waiters)
}
