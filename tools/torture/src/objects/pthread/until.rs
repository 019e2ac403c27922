//! The times at which waits end, on both clocks.

use crate::actor::Actor;
use crate::fault::kind::Fault;
use libc::{clockid_t, timespec};

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// A time of a clock.
#[derive(Clone, Copy)]
pub(crate) struct Until {
    pub(crate) clock: clockid_t,
    pub(crate) time: timespec,
}

impl Until {
    /// `nanoseconds` from now; a time in the past, if that is negative.
    pub(crate) fn from_now(clock: clockid_t, nanoseconds: i64) -> Self {
        let now = now(clock);
        let sum = now.tv_nsec + nanoseconds;
        let time = timespec {
            tv_sec: now.tv_sec + sum.div_euclid(NANOS_PER_SECOND),
            tv_nsec: sum.rem_euclid(NANOS_PER_SECOND),
        };
        Self { clock, time }
    }

    /// Within the next fraction of a millisecond, or just past, on either clock.
    pub(crate) fn soon(actor: &mut Actor) -> Self {
        let clock = some_clock(&mut actor.dice);
        Self::tiny(&mut actor.dice, clock)
    }

    /// The same, on this clock.
    pub(crate) fn tiny(dice: &mut fastrand::Rng, clock: clockid_t) -> Self {
        let ahead = 1 << dice.u32(0..19);
        match dice.u32(0..8) {
            0 => Self::from_now(clock, -ahead),
            _ => Self::from_now(clock, ahead),
        }
    }

    /// Whether the time has come, or may have, if the clock is being set.
    pub(crate) fn has_passed(&self, actor: &Actor) -> bool {
        if self.clock == libc::CLOCK_REALTIME && actor.has(Fault::Clock) {
            return true;
        }
        let now = now(self.clock);
        (now.tv_sec, now.tv_nsec) >= (self.time.tv_sec, self.time.tv_nsec)
    }
}

/// One of the two clocks, at random.
pub(crate) fn some_clock(dice: &mut fastrand::Rng) -> clockid_t {
    match dice.bool() {
        true => libc::CLOCK_REALTIME,
        false => libc::CLOCK_MONOTONIC,
    }
}

fn now(clock: clockid_t) -> timespec {
    let mut now = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: room for the time, and a clock that exists.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    now
}
