//! Every system call, and what this machine and kernel offer. No policy.
//!
//! Calls go to the kernel directly (`rustix`'s own backend, and `syscalls` for what `rustix` lacks), never
//! through the C library's `syscall`: a preloaded library may have replaced that, and a handler or an
//! allocator may be running above us. None of these functions touches `errno` or the heap.

#[cfg(not(loom))]
pub(crate) mod futex;
#[cfg(loom)]
#[path = "futex_model.rs"]
pub(crate) mod futex;

pub(crate) mod clock;
#[cfg(not(loom))]
pub(crate) mod env;
#[cfg(not(loom))]
pub(crate) mod mem;
pub(crate) mod numa;
#[cfg(not(loom))]
pub mod probe;
pub(crate) mod sched;

pub(crate) use rustix::io::Errno;

/// A raw system call's result in the type that the rest of the crate speaks.
#[cfg(not(loom))]
fn from_raw(result: Result<usize, syscalls::Errno>) -> Result<usize, Errno> {
    result.map_err(|error| Errno::from_raw_os_error(error.into_raw()))
}
