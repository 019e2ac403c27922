//! Random holds: whoever dawdles, most often with a lock in hand, does so for `1 << dice` nanoseconds, and now
//! and then for milliseconds; running, or asleep, as one who has been preempted.

use std::time::{Duration, Instant};

/// How long, and whether asleep; mostly not at all.
pub(crate) fn choose(dice: &mut fastrand::Rng) -> Option<(Duration, bool)> {
    match dice.u32(0..512) {
        0 => Some((Duration::from_micros(dice.u64(500..4_000)), dice.bool())),
        1..6 => Some((Duration::from_nanos(1 << dice.u32(10..19)), true)),
        6..80 => Some((Duration::from_nanos(1 << dice.u32(0..13)), false)),
        _ => None,
    }
}

/// Holds. A signal may end a sleep early.
pub(crate) fn hold(time: Duration, asleep: bool) {
    let until = Instant::now() + time;
    if asleep {
        crate::actor::nap(time.as_micros() as u64);
        return;
    }
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}
