//! The futexes that most workloads measure: the kernel's and ours.

use crate::ops::{Called, Kernel, Ours};
use std::sync::atomic::{AtomicU32, AtomicU64};

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
