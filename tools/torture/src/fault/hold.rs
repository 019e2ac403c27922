//! Random holds: a thread that dawdles, most often with a lock held, does so for `1 << dice`
//! nanoseconds, and now and then for milliseconds. It spins, or it sleeps like a preempted thread.

use crate::nap::nap;
use std::time::{Duration, Instant};

/// How long to hold, and whether to sleep. Mostly there is no hold.
pub(crate) fn choose(dice: &mut fastrand::Rng) -> Option<(Duration, bool)> {
    match dice.u32(0..512) {
        0 => Some((Duration::from_micros(dice.u64(500..4_000)), dice.bool())),
        1..6 => Some((Duration::from_nanos(1 << dice.u32(10..19)), true)),
        6..80 => Some((Duration::from_nanos(1 << dice.u32(0..13)), false)),
        _ => None,
    }
}

/// Holds for `time`. A signal may end a sleep early.
pub(crate) fn hold(time: Duration, asleep: bool) {
    let until = Instant::now() + time;
    if asleep {
        nap(time.as_micros() as u64);
        return;
    }
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}
