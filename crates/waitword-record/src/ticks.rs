//! The time, for what happens at each contended unlock.
//!
//! `clock_gettime` takes 23 ns, even without a system call: it orders its reading of the
//! processor's time-stamp counter, and copes with changes of the clock. A plain reading takes 10
//! ns. So a thread remembers a reading of both, and adds the ticks since then; after a millisecond
//! at most it reads both again. In that time the error of the rate ([`RATE`]) makes some
//! nanoseconds.
//!
//! That holds where the kernel itself trusts the counter on all CPUs: its clock source is `tsc`.
//! Elsewhere this is `clock_gettime`.

use crate::files::{begin_of, time};
use core::cell::Cell;
use core::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// Nanoseconds in 2^20 ticks, as all threads measure it together.
static RATE: Rate = Rate::new();

#[derive(Debug)]
struct Rate {
    /// The rate; 0: unknown, or the counter is not used.
    known: AtomicU64,
    /// A thread compares or writes the two fields below: without that, one could find the time of
    /// one reading with the ticks of another, and the rate would be wrong for good.
    is_busy: AtomicBool,
    /// A reading of both: from it until a later one, the rate is measured. 0: none yet; [`UNUSED`].
    first_ticks: AtomicU64,
    first_at: AtomicU64,
}

const RATE_SHIFT: u32 = 20;
const UNUSED: u64 = u64::MAX;
/// The rate is measured over so many nanoseconds, at least: each reading is exact to some 30.
const LONG_ENOUGH: u64 = 20_000_000;
/// Over more, the clock may have been set.
const TOO_LONG: u64 = 1_000_000_000;
/// For so many ticks a reading is good: half a millisecond, with 4 in a nanosecond, to 2.
const GOOD: u64 = 1 << 21;
/// A reading of both that takes more ticks was interrupted.
const INTERRUPTED: u64 = 1 << 10;

/// A thread's clock.
#[derive(Debug)]
pub(crate) struct Clock {
    ticks: Cell<u64>,
    at: Cell<u64>,
}

impl Clock {
    pub(crate) const fn new() -> Self {
        Self { ticks: Cell::new(0), at: Cell::new(0) }
    }

    /// The time of `CLOCK_MONOTONIC` in nanoseconds, to within some nanoseconds.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        // Relaxed: a number. Until it is known, the clock is read.
        let rate = RATE.known.load(Relaxed);
        let passed = ticks().wrapping_sub(self.ticks.get());
        if rate != 0 && passed < GOOD {
            return self.at.get() + ((passed * rate) >> RATE_SHIFT);
        }
        self.read()
    }

    #[cold]
    fn read(&self) -> u64 {
        let before = ticks();
        let at = time(libc::CLOCK_MONOTONIC);
        let after = ticks();
        if after.wrapping_sub(before) < INTERRUPTED {
            self.ticks.set(after);
            self.at.set(at);
            RATE.measure(after, at);
        }
        at
    }
}

impl Rate {
    const fn new() -> Self {
        Self {
            known: AtomicU64::new(0),
            is_busy: AtomicBool::new(false),
            first_ticks: AtomicU64::new(0),
            first_at: AtomicU64::new(0),
        }
    }

    /// Measures the rate once, if the counter can be used, from readings of both. (A thread that is
    /// left in the middle, or was in the parent of a fork, keeps others from it: then the clock is
    /// read.)
    fn measure(&self, ticks: u64, at: u64) {
        // Acquire, and Release below: a thread finds what the last one wrote.
        if self.known.load(Relaxed) == 0 && !self.is_busy.swap(true, Acquire) {
            self.measure_alone(ticks, at);
            self.is_busy.store(false, Release);
        }
    }

    fn measure_alone(&self, ticks: u64, at: u64) {
        let first_at = self.first_at.load(Relaxed);
        let passed = at.saturating_sub(first_at);
        match first_at {
            UNUSED => {}
            0 if !is_trusted() => self.first_at.store(UNUSED, Relaxed),
            0 => self.begin(ticks, at),
            _ if passed > TOO_LONG => self.begin(ticks, at),
            _ if passed < LONG_ENOUGH => {}
            _ => {
                let ticks = ticks.wrapping_sub(self.first_ticks.load(Relaxed));
                let rate = (passed << RATE_SHIFT) / ticks.max(1);
                // 0.2 to 20 ticks in a nanosecond.
                match (1 << RATE_SHIFT) / 20 < rate && rate < 5 << RATE_SHIFT {
                    true => self.known.store(rate, Relaxed),
                    false => self.first_at.store(0, Relaxed),
                }
            }
        }
    }

    fn begin(&self, ticks: u64, at: u64) {
        self.first_ticks.store(ticks, Relaxed);
        self.first_at.store(at, Relaxed);
    }
}

/// Whether the kernel's own clock reads the counter.
fn is_trusted() -> bool {
    const NAME: &core::ffi::CStr =
        c"/sys/devices/system/clocksource/clocksource0/current_clocksource";
    cfg!(target_arch = "x86_64") && begin_of(NAME, &mut [0; 16]) == Some(b"tsc\n")
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has the instruction. (A process that forbids itself to use it,
    // by PR_SET_TSC, cannot read the C library's clock either.)
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn it_agrees_with_the_kernel_s_clock() {
        let clock = Clock::new();
        let began = Instant::now();
        let mut worst = 0;
        while began.elapsed() < Duration::from_millis(300) {
            // A reading between two of the kernel's lies between them, but for the rate's error.
            let before = time(libc::CLOCK_MONOTONIC);
            let now = clock.now();
            let after = time(libc::CLOCK_MONOTONIC);
            worst = worst.max(before.saturating_sub(now)).max(now.saturating_sub(after));
        }
        println!("rate {}, off by {worst} ns at most", RATE.known.load(Relaxed));
        assert!(worst < 2000, "{worst} ns");
        assert!(RATE.first_at.load(Relaxed) == UNUSED || RATE.known.load(Relaxed) != 0);
    }

    #[test]
    fn a_rate_is_measured_between_two_readings_of_which_none_is_torn() {
        let rate = Rate::new();
        rate.begin(1000, 5_000_000_000);
        // Another thread is between two writes: its time is there, its ticks are not.
        rate.is_busy.store(true, Relaxed);
        rate.first_at.store(5_008_000_000, Relaxed);
        rate.measure(1000 + 84_000_000, 5_028_000_000);
        assert_eq!(rate.known.load(Relaxed), 0);
        rate.first_ticks.store(1000 + 24_000_000, Relaxed);
        rate.is_busy.store(false, Relaxed);
        rate.measure(1000 + 84_000_000, 5_028_000_000);
        assert_eq!(rate.known.load(Relaxed), (1 << RATE_SHIFT) / 3);
        assert!(!rate.is_busy.load(Relaxed));
    }
}
