//! Every system call, and what this machine and kernel offer. No policy.
//!
//! Calls go to the kernel directly (`rustix`'s own backend, and `syscalls` for those that `rustix`
//! lacks), never through the C library's `syscall`: a preloaded library may have replaced that, and
//! the caller may be a signal handler or an allocator. None of these functions touches `errno` or
//! the heap.
//!
//! The calls are `#[inline]`, and so is every step from them up to the operation. On processors
//! whose kernels flush the return predictor, each `ret` between a system call and its caller costs
//! about as much again as the call itself (100 ns on an EPYC of 2026; `waitword bench shared` shows
//! `futex(2)` called and inlined).

#[cfg(not(loom))]
pub(crate) mod futex;
#[cfg(loom)]
#[path = "futex_model.rs"]
pub(crate) mod futex;

#[cfg(not(loom))]
pub(crate) mod futex_pi;
#[cfg(loom)]
#[path = "futex_pi_model.rs"]
pub(crate) mod futex_pi;

#[cfg(not(loom))]
pub(crate) mod robust;
#[cfg(loom)]
#[path = "robust_model.rs"]
pub(crate) mod robust;

pub(crate) mod clock;
#[cfg(not(loom))]
pub(crate) mod env;
mod errno;
#[cfg(not(loom))]
pub(crate) mod fork;
#[cfg(not(loom))]
pub(crate) mod generation;
pub(crate) mod interrupts;
#[cfg(not(loom))]
pub(crate) mod mem;
pub(crate) mod moving_time;
pub(crate) mod numa;
#[cfg(not(loom))]
pub mod probe;
pub(crate) mod rseq;
pub(crate) mod sched;
#[cfg(not(loom))]
pub(crate) mod thread_word;
pub(crate) mod tid;

pub use errno::Errno;

/// A raw system call's result in the crate's own error type.
#[cfg(not(loom))]
#[inline]
fn from_raw(result: Result<usize, syscalls::Errno>) -> Result<usize, Errno> {
    result.map_err(|error| Errno::from_raw_os_error(error.into_raw()))
}
