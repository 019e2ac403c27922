//! The futex operations, one file each. They know words and both scopes, but no lock that is built
//! on them.
//!
//! Each file has two layers: a method of [`Futex`], in which the type system rules out most
//! mistakes, and a function on [`RawFutex`]. The raw futex interface (`raw`) also calls the
//! latter, after it has checked what a C caller passed.

#[cfg(not(loom))]
mod handle;
#[cfg(not(loom))]
pub(crate) mod requeue;
#[cfg(not(loom))]
pub(crate) mod wait;
#[cfg(not(loom))]
pub(crate) mod wait_any;
#[cfg(not(loom))]
pub(crate) mod wake;
#[cfg(not(loom))]
pub(crate) mod wake_op;

pub(crate) mod parking;
pub(crate) mod private;

pub(crate) use crate::error::Error;
#[cfg(not(loom))]
pub use handle::Futex;
#[cfg(not(loom))]
pub(crate) use handle::RawFutex;
#[cfg(not(loom))]
pub use wait::WaitOptions;
#[cfg(not(loom))]
pub use wait_any::{Expecting, WAIT_ANY_MAX, wait_any};

/// Which threads can wait on a word and wake its waiters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The threads of this process.
    Private,
    /// Every process that maps the word, at whatever address.
    Shared,
}
