//! The operations, a file each. They know words, both worlds, and no lock that is built from them.
//!
//! Each file has two floors: a method of [`Futex`], which the type system keeps from most mistakes, and a
//! function on [`RawFutex`], which the doors (`door`) call too, once they have checked what a C caller passed.

mod error;
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

pub use error::Error;
#[cfg(not(loom))]
pub use handle::Futex;
#[cfg(not(loom))]
pub(crate) use handle::RawFutex;
#[cfg(not(loom))]
pub use wait::WaitOptions;
#[cfg(not(loom))]
pub use wait_any::{Expecting, WAIT_ANY_MAX, wait_any};

/// Who can wait on a word and wake its waiters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The threads of this process.
    Private,
    /// Every process that maps the word, at whatever address.
    Shared,
}
