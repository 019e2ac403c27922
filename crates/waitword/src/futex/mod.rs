//! The futex operations, one file each. They know words and both scopes, but no lock that is built
//! on them.
//!
//! Each file has two layers: a method of [`Futex`], in which the type system rules out most
//! mistakes, and a function on [`RawFutex`]. The raw futex interface (`raw`) also calls the
//! latter, after it has checked what a C caller passed.

mod handle;
pub(crate) mod parking;
pub(crate) mod private;
pub(crate) mod requeue;
mod scope;
pub(crate) mod wait;
pub(crate) mod wait_any;
pub(crate) mod wake;
pub(crate) mod wake_op;

pub(crate) use crate::error::Error;
pub use handle::Futex;
pub(crate) use handle::RawFutex;
pub use scope::Scope;
pub use wait::WaitOptions;
pub use wait_any::{Expecting, WAIT_ANY_MAX, wait_any};
