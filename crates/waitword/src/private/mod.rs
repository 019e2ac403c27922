//! The process's table of waiters on private words: table, buckets, waiters' nodes, growth, fork.
//!
//! The table knows addresses and the waiters on them, never the memory at an address. Whether a
//! word still holds the value that a waiter expects is a check that the operation above makes while
//! it holds the bucket. So one table works with every word size, and with every lock's own change
//! of state.
//!
//! # A wait and a wake
//!
//! ```text
//!   futex::wait                                 futex::wake
//!     parkers.take()                              find_waiters(key): none? no lock, no call
//!     register(key): count, fence, lock           claim(key, n, mask): lock, unlink, unlock
//!     word as expected? push(node), unlock        notify(): give notice, one call a group
//!     parker.park()
//!       (timeout, signal: withdraw(node))
//! ```
//!
//! # Invariants
//!
//! 1. Check and enqueue are one step under the bucket lock.
//! 2. Two buckets are locked in the order of their addresses, once if they are the same; all
//!    buckets (growth) in the same order.
//! 3. Under a bucket lock: no system call, no allocation, no user code. (The caller's word is
//!    loaded there once. It has been loaded just before without the lock, so that its page is
//!    mapped in.)
//! 4. A thread that has locked a bucket checks again that the bucket's table is the current one.
//!    Growth takes every bucket, so from then on the table stays current until the unlock.
//! 5. A bucket's count of waiters is never below the number of nodes in it (`bucket.rs`).

mod awaited;
mod bucket;
mod chain;
mod claimed;
#[cfg(not(loom))]
mod description;
mod grow;
mod inside;
mod key;
mod node;
mod pair;
#[cfg(all(test, not(loom)))]
mod placement;
mod process;
mod section;
mod snapshot;
mod table;
mod waiter_table;

pub(crate) use awaited::Awaited;
pub(crate) use chain::Choice;
pub(crate) use claimed::Claimed;
pub(crate) use grow::OutOfMemory;
pub(crate) use inside::{is_inside, leave_note};
pub(crate) use key::{Key, Place};
pub(crate) use node::Node;
pub(crate) use process::waiter_table;
pub(crate) use section::{Queue, Unparked};
pub use snapshot::{Snapshot, Waiter};
pub(crate) use table::Found;
pub(crate) use waiter_table::WaiterTable;
