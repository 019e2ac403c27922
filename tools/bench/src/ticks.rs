//! A very cheap clock, for timing *every* lock call. A lock call takes no longer than two readings
//! of the usual clock.
//!
//! On x86-64 this is the time-stamp counter, read after an `lfence`; otherwise the CPU reads it
//! while the preceding call is still in progress. The counter runs at a constant rate and in step
//! on all CPUs only where the kernel itself takes the time from it. This is not checked. On other
//! architectures it is the monotonic clock. A tick is calibrated once against the monotonic clock.

use hdrhistogram::Histogram;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Length of the calibration. Both clocks are read within 100 ns of each other, which gives five
/// digits.
const CALIBRATION: Duration = Duration::from_millis(10);

/// The time, in ticks since some moment. Makes no system call on x86-64. Never goes backwards
/// within a thread.
#[inline(always)]
#[cfg(target_arch = "x86_64")]
pub fn now() -> u64 {
    use core::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: both instructions are part of x86-64 and touch no memory.
    unsafe {
        _mm_lfence();
        _rdtsc()
    }
}

/// The time, in ticks since some moment; a tick is a nanosecond here.
#[inline(always)]
#[cfg(not(target_arch = "x86_64"))]
pub fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Like [`now`], but may be reordered with surrounding instructions: cheaper, and some nanoseconds
/// inaccurate. For long times, or for times that are rarely looked at individually.
#[inline(always)]
pub fn now_unordered() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction is part of x86-64 and touches no memory.
    return unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    now()
}

/// Nanoseconds per tick. The first call takes 10 ms.
pub fn nanoseconds_per_tick() -> f64 {
    static NANOSECONDS: OnceLock<f64> = OnceLock::new();
    *NANOSECONDS.get_or_init(|| {
        let (since, from) = (Instant::now(), now());
        std::thread::sleep(CALIBRATION);
        let (took, to) = (since.elapsed(), now());
        took.as_nanos() as f64 / (to - from) as f64
    })
}

/// An empty histogram of waits, in ticks. It distinguishes waits of up to a quarter of an hour at 1
/// GHz, to two digits: those of a hundred threads take a megabyte or two together, and a thread
/// touches only a few lines of its own.
pub(crate) fn histogram() -> Histogram<u32> {
    Histogram::new_with_bounds(1, 1 << 40, 2).expect("constant bounds that are in order")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_measure_time() {
        let per_tick = nanoseconds_per_tick();
        let (since, from) = (Instant::now(), now());
        while since.elapsed() < Duration::from_millis(20) {}
        let ticks = (now() - from) as f64 * per_tick;
        // Another thread may have had the CPU between the two readings.
        assert!((19e6..1e9).contains(&ticks), "{ticks} ns");
    }

    #[test]
    fn a_thread_never_sees_it_go_back() {
        let mut last = now();
        for _ in 0..100_000 {
            let next = now();
            assert!(next >= last);
            last = next;
        }
    }
}
