//! The interface through which futexes are measured, and its implementations: the kernel's futex,
//! by itself and behind a spin; ours; `parking_lot_core`; and C++'s atomics.
//!
//! [`Futexes`] is the whole interface. The loops are the same for every peer, and in every peer
//! each operation is one function call ([`Called`]). So two figures differ only in what the peers
//! do. A further peer (a library with its own table, for example) needs only one more `impl`.

mod called;
#[cfg(has_cpp)]
mod cpp;
mod futexes;
mod kernel;
mod ours;
mod parked;
mod spinning;

pub use called::{Called, Inlined};
#[cfg(has_cpp)]
pub use cpp::CppAtomic;
pub use futexes::{BenchWord, Futexes, Waited};
pub use kernel::Kernel;
pub use ours::Ours;
pub use parked::Parked;
pub use spinning::Spinning;
