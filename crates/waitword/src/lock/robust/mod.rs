//! Robust mutexes: whoever holds one may die, thread or process, and the next to lock it is told.
//!
//! | file | what it knows |
//! |------|---------------|
//! | `mutex.rs` | [`RobustMutex`]: the data, lent to a closure |
//! | `raw.rs` | [`RawRobustMutex`]: kinds, depth, death and recovery; the order of the steps |
//! | `word.rs` | the word: taking, sleeping, waking |
//! | `list.rs` | the thread's list of what it holds, which the kernel walks at its end |
//! | `step.rs` | the places where tests die |
//!
//! All of it is the kernel's doing in the end: a process that is killed can do nothing more, and what the rest
//! of the processes see of it is what the kernel makes of the list that it left behind.

mod error;
#[cfg(not(loom))]
mod list;
#[cfg(loom)]
#[path = "list_model.rs"]
pub(crate) mod list;
#[cfg(not(loom))]
mod mutex;
mod raw;
pub(crate) mod step;
mod word;

#[cfg(all(test, not(loom)))]
mod tests;

pub use error::{RobustError, RobustLocked};
#[cfg(not(loom))]
pub use mutex::{RobustAccess, RobustMutex};
pub use raw::{RawRobustMutex, RobustKind, RobustProtocol};
