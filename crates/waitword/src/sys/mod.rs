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
//!
//! A model has a kernel, a clock, CPUs, memory and an environment of its own: the files named
//! `_model.rs`, each in place of the file without that ending. (`thread_word.rs` contains both of
//! its forms.)

#[cfg_attr(loom, path = "call_model.rs")]
mod call;
#[cfg_attr(loom, path = "cpu_model.rs")]
pub(crate) mod cpu;
#[cfg_attr(loom, path = "env_model.rs")]
pub(crate) mod env;
#[cfg_attr(loom, path = "futex_model.rs")]
pub(crate) mod futex;
#[cfg_attr(loom, path = "futex_pi_model.rs")]
pub(crate) mod futex_pi;
#[cfg_attr(loom, path = "gettime_model.rs")]
pub(crate) mod gettime;
#[cfg_attr(loom, path = "mem_model.rs")]
pub(crate) mod mem;
#[cfg_attr(loom, path = "sched_model.rs")]
pub(crate) mod sched;

pub(crate) mod clock;
mod errno;
pub(crate) mod fork;
pub(crate) mod futex_raw;
pub(crate) mod generation;
pub(crate) mod interrupts;
pub(crate) mod moving_time;
pub(crate) mod numa;
pub mod probe;
pub(crate) mod robust;
pub(crate) mod rseq;
pub(crate) mod thread_word;
pub(crate) mod tid;
pub mod time_slice;
#[cfg(not(loom))]
mod vdso;

pub use errno::Errno;

/// A raw system call's result in the crate's own error type.
#[inline]
fn from_raw(result: Result<usize, syscalls::Errno>) -> Result<usize, Errno> {
    result.map_err(|error| Errno::from_raw_os_error(error.into_raw()))
}
