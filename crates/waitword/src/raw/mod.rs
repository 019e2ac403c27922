//! The raw futex interface: the operations with the arguments and results of futex(2) and futex2,
//! that is, raw addresses, numbers, flags, and the kernel's errors in the kernel's order. For a C
//! ABI, a drop-in or an emulator.
//!
//! * [`futex`] takes what the system call `futex` takes. Wait, wake, requeue and wake_op on a
//!   private word are served here. Everything else (shared words, the PI family, unknown
//!   operations) goes to the kernel. As in the kernel, an operation of the PI family refuses a
//!   plain waiter on the same private word, and the other way round.
//! * [`futex_wait`], [`futex_wake`], [`futex_requeue`], [`futex_waitv`] take what the futex2 calls
//!   take, for words of all four sizes. [`futex_wake_op`] is missing in futex2. Shared words go to
//!   the kernel as described at [`Futex::shared`](crate::Futex::shared).
//!
//! # Differences from the kernel
//!
//! * A bad address is read like any other: the process gets SIGSEGV where the kernel returns
//!   `EFAULT`. Only addresses in the first page and in the kernel's half are detected; they get
//!   `EFAULT`.
//! * `FUTEX_WAKE_OP` with an unknown comparison leaves the word alone; the kernel changes it first.
//!   Both return `ENOSYS`.
//! * Sizes other than 32 bits work.
//! * futex2's `MPOL` flag is accepted for private words and has no effect: it only sets where
//!   waiters are queued.
//! * If PI waiters and plain waiters are queued on one private word, the kernel goes by their order
//!   and refuses an operation that reaches a waiter of the other kind. Here each operation finds
//!   its own kind first.
//! * A handler that has interrupted this library in a bucket section gets `EINTR` from a wait. From
//!   a wake it gets 0; the wake is made as the section ends.
//!
//! All functions are safe to call in a forked child, and all but the waits in signal handlers. None
//! touches `errno` or the heap.

mod arguments;
mod call;
pub(crate) mod classic;
mod futex2;
mod named;
mod pi;

pub use crate::sys::Errno;
pub use crate::sys::futex_raw::Waitv;
pub use arguments::Timespec;
pub use classic::futex;
pub use futex2::{futex_requeue, futex_wait, futex_waitv, futex_wake, futex_wake_op};
pub use named::{MPOL, NUMA, PRIVATE, SIZE_U8, SIZE_U16, SIZE_U32, SIZE_U64};
