//! Robust mutexes: a holder, thread or process, may die, and the next thread to lock the mutex
//! learns of the death.
//!
//! | file | contents |
//! |------|----------|
//! | `api.rs` | [`RobustMutex`]: the data, lent to a closure |
//! | `raw.rs` | [`RawRobustMutex`]: kinds, depth, death and recovery; the order of the steps |
//! | `word.rs` | the word: taking, sleeping, waking |
//! | `list.rs` | the thread's list of held mutexes, which the kernel walks when the thread ends |
//! | `step.rs` | the points at which the tests kill a thread |
//!
//! Recovery is the kernel's work in the end. A killed process can do nothing more; the other
//! processes see only what the kernel makes of the list that it left behind.

#[cfg(not(loom))]
mod api;
mod error;
#[cfg(not(loom))]
mod list;
#[cfg(loom)]
#[path = "list_model.rs"]
pub(crate) mod list;
mod raw;
pub(crate) mod step;
mod word;

#[cfg(all(test, not(loom)))]
mod tests;

#[cfg(not(loom))]
pub use api::{RobustAccess, RobustMutex};
pub use error::{RobustError, RobustLocked};
pub use raw::{RawRobustMutex, RobustKind, RobustProtocol};
