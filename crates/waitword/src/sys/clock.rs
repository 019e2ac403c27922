//! Deadlines: absolute times on one of the two clocks that a futex can wait on.

use core::time::Duration;
use rustix::time::{ClockId, Timespec};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The clock that a deadline is read against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Clock {
    /// `CLOCK_MONOTONIC`: never set, does not run while the machine is suspended.
    Monotonic,
    /// `CLOCK_REALTIME`: wall-clock time; a deadline follows when the clock is set.
    Realtime,
}

/// An absolute time on one of the two clocks; a wait never ends early on its account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Deadline {
    pub(crate) clock: Clock,
    pub(crate) seconds: i64,
    /// Below 10^9.
    pub(crate) nanoseconds: u32,
}

const NANOS_PER_SECOND: u32 = 1_000_000_000;

impl Deadline {
    /// The time `since_zero` after the clock's zero (boot, or 1970). Times beyond what the kernel can
    /// hold are held at its maximum, some 292 billion years on.
    pub fn at(clock: Clock, since_zero: Duration) -> Self {
        Self {
            clock,
            seconds: i64::try_from(since_zero.as_secs()).unwrap_or(i64::MAX),
            nanoseconds: since_zero.subsec_nanos(),
        }
    }

    /// `duration` from now, on the monotonic clock.
    pub fn after(duration: Duration) -> Self {
        let now = now(Clock::Monotonic);
        Self::at(Clock::Monotonic, now.saturating_add(duration))
    }

    /// This wall-clock time. A time before 1970 has passed.
    pub fn at_system_time(time: SystemTime) -> Self {
        Self::at(
            Clock::Realtime,
            time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO),
        )
    }

    /// Whether the time has come.
    pub fn has_passed(&self) -> bool {
        let now = now(self.clock);
        (now.as_secs() as i64, now.subsec_nanos()) >= (self.seconds, self.nanoseconds)
    }

    /// How long it is until then; zero if the time has come.
    pub(crate) fn time_left(&self) -> Duration {
        let at = Duration::new(u64::try_from(self.seconds).unwrap_or(0), self.nanoseconds);
        at.saturating_sub(now(self.clock))
    }

    /// From a C caller's time; `None` if the kernel would refuse it.
    pub(crate) fn from_timespec(clock: Clock, time: Timespec) -> Option<Self> {
        let nanoseconds = u32::try_from(time.tv_nsec).ok()?;
        (time.tv_sec >= 0 && nanoseconds < NANOS_PER_SECOND).then_some(Self {
            clock,
            seconds: time.tv_sec,
            nanoseconds,
        })
    }

    #[inline]
    pub(crate) fn to_timespec(self) -> Timespec {
        Timespec {
            tv_sec: self.seconds,
            tv_nsec: self.nanoseconds.into(),
        }
    }

    /// From futex(2)'s relative timeout: that long from now, on the monotonic clock.
    pub(crate) fn from_relative(time: Timespec) -> Option<Self> {
        let relative = Self::from_timespec(Clock::Monotonic, time)?;
        let duration = Duration::new(relative.seconds as u64, relative.nanoseconds);
        Some(Self::after(duration))
    }
}

/// An `Instant` is a time on the monotonic clock, of which the standard library tells only how far it is from another.
impl From<Instant> for Deadline {
    fn from(instant: Instant) -> Self {
        Self::after(instant.saturating_duration_since(Instant::now()))
    }
}

/// Time since the clock's zero. Through the vDSO: no system call where the machine has a usable
/// clock source.
pub(crate) fn now(clock: Clock) -> Duration {
    let id = match clock {
        Clock::Monotonic => ClockId::Monotonic,
        Clock::Realtime => ClockId::Realtime,
    };
    let now = rustix::time::clock_gettime(id);
    // Before 1970 by a clock set so; the monotonic clock is never negative.
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    Duration::new(seconds, now.tv_nsec as u32)
}

/// Milliseconds on the kernel's tick (1 to 10 ms coarse): the cheapest clock there is.
pub(crate) fn coarse_milliseconds() -> u64 {
    let now = rustix::time::clock_gettime(ClockId::MonotonicCoarse);
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_the_kernel_would_refuse_is_refused() {
        let bad = [(0, 1_000_000_000), (0, -1), (-1, 0)];
        for (tv_sec, tv_nsec) in bad {
            let time = Timespec { tv_sec, tv_nsec };
            assert_eq!(Deadline::from_timespec(Clock::Monotonic, time), None);
            assert_eq!(Deadline::from_relative(time), None);
        }
    }

    #[test]
    fn absurdly_far_deadlines_are_held_at_the_maximum() {
        let far = Deadline::after(Duration::MAX);
        assert_eq!(far.seconds, i64::MAX);
        assert!(!far.has_passed());
        assert!(Deadline::at_system_time(UNIX_EPOCH - Duration::from_secs(1)).has_passed());
    }
}
