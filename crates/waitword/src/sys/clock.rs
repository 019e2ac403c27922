//! Deadlines: absolute times on one of the two clocks that a futex can wait on.

use super::gettime;
use super::interrupts::Interrupts;
use core::hash::{Hash, Hasher};
use core::time::Duration;
use rustix::time::Timespec;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The clock that a deadline is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Clock {
    /// `CLOCK_MONOTONIC`: cannot be set, and does not run while the machine is suspended.
    Monotonic,
    /// `CLOCK_REALTIME`: wall-clock time; a deadline follows when the clock is set.
    Realtime,
}

/// An absolute time on one of the two clocks. A deadline never ends a wait early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Deadline {
    pub(crate) clock: Clock,
    pub(crate) seconds: i64,
    /// Below 10^9.
    pub(crate) nanoseconds: u32,
    pub(crate) ender: Option<Ender>,
}

/// Brings a deadline forward to now, so that a thread leaves its wait, whatever it waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ender {
    pub(crate) by: &'static Interrupts,
    /// Whether a request by another thread does so, too.
    pub(crate) hears_requests: bool,
}

impl Ender {
    fn has_ended(self) -> bool {
        self.by.is_leaving() || self.hears_requests && self.by.is_asked()
    }
}

/// Equal if both fields are; `by` is compared by address.
impl PartialEq for Ender {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self.by, other.by) && self.hears_requests == other.hears_requests
    }
}

impl Eq for Ender {}

impl Hash for Ender {
    fn hash<H: Hasher>(&self, state: &mut H) {
        core::ptr::from_ref(self.by).hash(state);
    }
}

const NANOS_PER_SECOND: u32 = 1_000_000_000;
/// The last of all times.
const NEVER: i64 = i64::MAX;

impl Deadline {
    /// The time `since_zero` after the clock's zero (boot, or 1970). Times beyond the kernel's
    /// maximum, some 292 billion years from now, are clamped to it.
    pub fn at(clock: Clock, since_zero: Duration) -> Self {
        Self {
            clock,
            seconds: i64::try_from(since_zero.as_secs()).unwrap_or(i64::MAX),
            nanoseconds: since_zero.subsec_nanos(),
            ender: None,
        }
    }

    /// The same deadline, or never if there is none; brought forward if its thread is to leave the
    /// wait.
    ///
    /// # Safety
    /// The deadline and its copies are used no longer than `by` is borrowed.
    pub(crate) unsafe fn brought_forward(
        deadline: Option<&Self>,
        by: &Interrupts,
        hears_requests: bool,
    ) -> Self {
        // SAFETY: the reference is not used once `by` is gone, by this function's contract.
        let by = unsafe { core::mem::transmute::<&Interrupts, &'static Interrupts>(by) };
        let (clock, seconds, nanoseconds) = match deadline {
            Some(deadline) => (deadline.clock, deadline.seconds, deadline.nanoseconds),
            None => (Clock::Monotonic, NEVER, 0),
        };
        let ender = Some(Ender { by, hears_requests });
        Self { clock, seconds, nanoseconds, ender }
    }

    /// Whether it has been brought forward, so that its time has come.
    #[inline]
    pub(crate) fn is_ended(&self) -> bool {
        self.ender.is_some_and(Ender::has_ended)
    }

    /// What the kernel is given: nothing if the deadline does not come by itself.
    #[inline]
    pub(crate) fn in_time(&self) -> Option<&Self> {
        (self.seconds != NEVER).then_some(self)
    }

    /// `duration` from now, on the monotonic clock.
    pub fn after(duration: Duration) -> Self {
        let now = now(Clock::Monotonic);
        Self::at(Clock::Monotonic, now.saturating_add(duration))
    }

    /// This wall-clock time. A time before 1970 has passed.
    pub fn at_system_time(time: SystemTime) -> Self {
        Self::at(Clock::Realtime, time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO))
    }

    /// Whether the time has come.
    pub fn has_passed(&self) -> bool {
        if self.is_ended() {
            return true;
        }
        if self.seconds == NEVER {
            return false;
        }
        let now = now(self.clock);
        (now.as_secs() as i64, now.subsec_nanos()) >= (self.seconds, self.nanoseconds)
    }

    /// The time left until the deadline; zero if it has come.
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
            ender: None,
        })
    }

    #[inline]
    pub(crate) fn to_timespec(self) -> Timespec {
        Timespec { tv_sec: self.seconds, tv_nsec: self.nanoseconds.into() }
    }

    /// From futex(2)'s relative timeout: that long from now, on the monotonic clock.
    pub(crate) fn from_relative(time: Timespec) -> Option<Self> {
        let relative = Self::from_timespec(Clock::Monotonic, time)?;
        let duration = Duration::new(relative.seconds as u64, relative.nanoseconds);
        Some(Self::after(duration))
    }
}

/// An `Instant` is a time on the monotonic clock. The standard library reveals only how far it is
/// from another.
impl From<Instant> for Deadline {
    fn from(instant: Instant) -> Self {
        Self::after(instant.saturating_duration_since(Instant::now()))
    }
}

/// Time since the clock's zero. Through the vDSO: no system call if the machine has a usable clock
/// source.
#[inline]
pub(crate) fn now(clock: Clock) -> Duration {
    match clock {
        Clock::Monotonic => gettime::monotonic(),
        Clock::Realtime => gettime::realtime(),
    }
}

/// The monotonic clock, in nanoseconds.
#[inline]
pub(crate) fn nanoseconds() -> u64 {
    gettime::monotonic().as_nanos() as u64
}

/// The CPU time that all threads of this process have used. A system call.
#[inline]
pub(crate) fn process_cpu_time() -> Duration {
    gettime::process_cpu_time()
}

/// Milliseconds on the kernel's tick (1 to 10 ms coarse): the cheapest clock there is.
#[inline]
pub(crate) fn coarse_milliseconds() -> u64 {
    let now = gettime::monotonic_coarse();
    now.as_secs() * 1000 + u64::from(now.subsec_millis())
}

#[cfg(all(test, not(loom)))]
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
    fn far_deadlines_are_clamped_to_the_maximum() {
        let far = Deadline::after(Duration::MAX);
        assert_eq!(far.seconds, i64::MAX);
        assert!(!far.has_passed());
        assert!(Deadline::at_system_time(UNIX_EPOCH - Duration::from_secs(1)).has_passed());
    }
}
