//! Computation that takes a known time: a chain of multiplications, each of which depends on the
//! previous one. It does not use `pause`, because a hypervisor may trap it and it yields the CPU to
//! the sibling hyperthread.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::Instant;

/// Computes for this many steps.
#[inline(always)]
pub(super) fn work(steps: u32) {
    let mut value = black_box(u64::from(steps));
    for _ in 0..steps {
        value = value.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 1;
    }
    black_box(value);
}

/// Length of a step: the minimum over several batches, because a preempted batch takes longer.
fn nanoseconds() -> f64 {
    static NANOSECONDS: OnceLock<f64> = OnceLock::new();
    const STEPS: u32 = 20_000;
    *NANOSECONDS.get_or_init(|| {
        let batch = |_| {
            let since = Instant::now();
            work(STEPS);
            since.elapsed().as_nanos() as f64 / f64::from(STEPS)
        };
        (0..50).map(batch).fold(f64::INFINITY, f64::min)
    })
}

/// Number of steps that take `wanted` nanoseconds.
pub(super) fn lasting(wanted: f64) -> u32 {
    (wanted / nanoseconds()).round() as u32
}
