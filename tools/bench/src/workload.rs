//! The kinds of work that are measured, one file each, and what they share.
//!
//! Each file begins with the definition of the work, the public benchmark that it reproduces, and
//! the meaning of its figures. The definition is ours if the original program is lost, or if it
//! relies on something that no futex guarantees.

pub mod barrier;
pub mod calls;
pub mod cond_perf;
pub mod event;
pub mod hand_over;
pub mod hash;
pub mod lockhammer;
pub mod memory;
pub mod mutex;
pub mod ping_pong;
pub mod pp;
pub mod programs;
pub mod queue;
pub mod rates;
pub mod requeue;
pub mod rwlock;
pub mod scale;
pub mod semaphore;
pub mod shared;
pub mod shifting;
pub mod uncontended;
pub mod wake;
pub mod wake_parallel;

mod crowd;
#[cfg(test)]
mod faults;
mod game;
mod guarded;
mod herd;
mod pairs;
mod patch;
pub(crate) mod pause;
mod proof;
mod race;
mod spread;
mod words;

pub use patch::Patch;
pub use words::{Spacing, Words};

use crate::harness::{Context, Failure};
use crate::ops::{Called, Kernel, Ours};
use rustix::thread::CpuSet;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Instant;

/// Calls `$build` with the kernel's futex and with ours at each width, and collects the contenders.
macro_rules! kernel_and_all_widths {
    ($private:ident, $build:expr) => {{
        use crate::ops::{Called, Kernel, Ours};
        use std::sync::atomic;
        vec![
            $build(Called(Kernel::<$private>)),
            $build(Called(Ours::<atomic::AtomicU8, $private>::new())),
            $build(Called(Ours::<atomic::AtomicU16, $private>::new())),
            $build(Called(Ours::<atomic::AtomicU32, $private>::new())),
            $build(Called(Ours::<atomic::AtomicU64, $private>::new())),
        ]
    }};
}
pub(crate) use kernel_and_all_widths;

/// The kernel's futex on private words: the baseline of most workloads.
pub(crate) const KERNEL: Called<Kernel<true>> = Called(Kernel);
/// Our futex on private words of the same width as the kernel's.
pub(crate) const OURS: Called<Ours<AtomicU32, true>> = Called(Ours::new());
/// Our futex on private words of 64 bits.
pub(crate) const OURS_WIDE: Called<Ours<AtomicU64, true>> = Called(Ours::new());

/// Nanoseconds between two moments.
pub(crate) fn nanoseconds(from: Instant, to: Instant) -> f64 {
    to.duration_since(from).as_nanos() as f64
}

/// Finds how many repetitions take `target` nanoseconds, by doing more and more of them. `batch`
/// does as many as it is told and returns how many nanoseconds they took.
pub(crate) fn calibrate(
    target: f64,
    first: u64,
    context: &Context,
    mut batch: impl FnMut(u64) -> Result<f64, Failure>,
) -> Result<u64, Failure> {
    let mut repetitions = first;
    loop {
        let took = batch(repetitions)?;
        context.progressed();
        if took >= target / 8.0 {
            let one = took / repetitions as f64;
            return Ok(((target / one) as u64).max(1));
        }
        repetitions *= 4;
    }
}

/// The CPUs that this process may use, in ascending order.
pub(crate) fn allowed_cpus() -> Vec<usize> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else {
        return vec![0];
    };
    (0..CpuSet::MAX_CPU)
        .filter(|&cpu| set.is_set(cpu))
        .collect()
}

/// Binds the calling thread to these CPUs.
///
/// # Panics
/// If the system refuses, because the figures would then mean something else.
pub(crate) fn run_on(cpus: &[usize]) {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu);
    }
    rustix::thread::sched_setaffinity(None, &set).expect("binding a thread to CPUs it may use");
}
