//! The kinds of work that are measured, one file each, and what they share.
//!
//! Each file opens with the definition of the work, which public benchmark it redraws, and what its figures
//! mean. The definitions are ours where the original program is lost or counts on something that no futex
//! promises.

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

/// One contender for the kernel's futex and for ours at each width: calls `$build` with each.
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

/// The kernel's futex on private words: the baseline of most.
pub(crate) const KERNEL: Called<Kernel<true>> = Called(Kernel);
/// Ours, on private words as wide as the kernel's.
pub(crate) const OURS: Called<Ours<AtomicU32, true>> = Called(Ours::new());
/// Ours, on private words of 64 bits.
pub(crate) const OURS_WIDE: Called<Ours<AtomicU64, true>> = Called(Ours::new());

/// Nanoseconds between two moments.
pub(crate) fn nanoseconds(from: Instant, to: Instant) -> f64 {
    to.duration_since(from).as_nanos() as f64
}

/// How many repetitions make `target` nanoseconds, found by doing ever more of them. `batch` does as many
/// as it is told and returns how many nanoseconds they took.
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

/// The CPUs that this process was given, in ascending order.
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
/// If the system refuses: the figures would be of something else.
pub(crate) fn run_on(cpus: &[usize]) {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu);
    }
    rustix::thread::sched_setaffinity(None, &set).expect("binding a thread to CPUs it may run on");
}
