//! What the policy knows of the machine: the clock, and which CPUs are busy.

use super::policy::{Recheck, Surroundings};
use crate::park::idle_cpus::are_idle;
use crate::park::spin;
use crate::sys::clock::{Clock, Deadline, now};
use core::time::Duration;

pub(super) struct Machine;

impl Surroundings for Machine {
    fn now(&self) -> Duration {
        now(Clock::Monotonic)
    }

    fn others_compete(&self) -> bool {
        spin::is_beside_others()
    }

    fn cpus_are_idle(&self) -> bool {
        are_idle()
    }
}

impl Machine {
    /// When the timer wakes its waiter, if ever.
    pub(super) fn deadline(&self, recheck: &Recheck) -> Option<Deadline> {
        timer::fires(recheck).then(|| Self::at(recheck.next()))
    }

    pub(super) fn at(time: Duration) -> Deadline {
        Deadline::at(Clock::Monotonic, time)
    }
}

/// The earlier of two deadlines.
///
/// An interrupter of the first deadline can end the wait whichever deadline is earlier.
pub(super) fn sooner(one: Option<Deadline>, other: Option<Deadline>) -> Option<Deadline> {
    match (one, other) {
        (Some(one), Some(other)) if one.time_left() > other.time_left() => {
            Some(Deadline { ender: one.ender, ..other })
        }
        (one, other) => one.or(other),
    }
}

#[cfg(not(loom))]
mod timer {
    use super::Recheck;

    #[inline]
    pub(super) fn fires(_: &Recheck) -> bool {
        true
    }
}

/// The timers of a model: every deadline has passed, so the timer of a wait fires once, if the
/// model is about that.
#[cfg(loom)]
mod timer {
    use super::Recheck;
    use core::cell::Cell;
    use std::thread_local;

    thread_local! {
        /// For the model that this OS thread runs. (All threads of a model run on it.)
        static TIMERS_FIRE: Cell<bool> = const { Cell::new(false) };
    }

    pub(crate) fn let_timers_fire(fire: bool) {
        TIMERS_FIRE.set(fire);
    }

    pub(super) fn fires(recheck: &Recheck) -> bool {
        !recheck.has_fired() && TIMERS_FIRE.get()
    }
}

#[cfg(loom)]
pub(crate) use timer::let_timers_fire;
