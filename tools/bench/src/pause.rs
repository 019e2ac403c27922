//! Work that touches no memory: a number of the CPU's pause instructions; and how long one takes.

use std::sync::OnceLock;
use std::time::Instant;

/// Executes this many pause instructions.
#[inline(always)]
pub(crate) fn pause(times: u32) {
    for _ in 0..times {
        core::hint::spin_loop();
    }
}

/// How long one takes on this CPU: 10 to 140 cycles, depending on the model. The minimum of several
/// batches, because a preempted batch takes longer.
pub(crate) fn nanoseconds() -> f64 {
    static NANOSECONDS: OnceLock<f64> = OnceLock::new();
    const TIMES: u32 = 2000;
    *NANOSECONDS.get_or_init(|| {
        let batch = |_| {
            let since = Instant::now();
            pause(TIMES);
            since.elapsed().as_nanos() as f64 / f64::from(TIMES)
        };
        (0..20).map(batch).fold(f64::INFINITY, f64::min)
    })
}

/// How many pauses make about this many nanoseconds; at least one.
pub(crate) fn lasting(wanted: f64) -> u32 {
    ((wanted / nanoseconds()).round() as u32).max(1)
}

/// Like [`lasting`], but none for 0.
pub(crate) fn for_nanoseconds(wanted: f64) -> u32 {
    if wanted == 0.0 { 0 } else { lasting(wanted) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_takes_its_time() {
        assert!((0.1..1000.0).contains(&nanoseconds()), "{} ns", nanoseconds());
        assert_eq!((lasting(0.0), for_nanoseconds(0.0)), (1, 0));
        assert_eq!(for_nanoseconds(1e6), lasting(1e6));
        assert!(lasting(1e6) > 100);
    }
}
