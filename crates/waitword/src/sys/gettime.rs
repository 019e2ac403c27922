//! The clocks, as the kernel keeps them. `gettime_model.rs` has a model's clock.

use core::time::Duration;
use rustix::time::{ClockId, clock_gettime};

fn since_zero(clock: ClockId) -> Duration {
    let now = clock_gettime(clock);
    // Negative if the clock was set to before 1970; no other clock is ever negative.
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    Duration::new(seconds, now.tv_nsec as u32)
}

/// Time since boot, while the machine is not suspended. Through the vDSO, as are all but the last
/// of these: no system call if the machine has a usable clock source.
#[inline]
pub(super) fn monotonic() -> Duration {
    since_zero(ClockId::Monotonic)
}

/// Time since 1970.
#[inline]
pub(super) fn realtime() -> Duration {
    since_zero(ClockId::Realtime)
}

/// The monotonic clock at the kernel's last tick, 1 to 10 ms ago: the cheapest clock there is.
#[inline]
pub(super) fn monotonic_coarse() -> Duration {
    since_zero(ClockId::MonotonicCoarse)
}

/// The CPU time that all threads of this process have used. A system call.
#[inline]
pub(super) fn process_cpu_time() -> Duration {
    since_zero(ClockId::ProcessCPUTime)
}
