//! The clock of a model, the same for all clocks. It advances by a fixed step with each reading.

use core::time::Duration;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// An execution begins an hour after boot: times of 0 mean "never" to some policies.
const BEGIN: u64 = 3_600_000_000_000;

crate::checker::lazy_static! {
    // Not the checker's atomics: the time orders nothing.
    static ref NOW: AtomicU64 = AtomicU64::new(BEGIN);
    static ref STEP: AtomicU64 = AtomicU64::new(1);
}

/// From now on in this execution, the clock advances by this time with each reading.
pub(crate) fn let_time_pass(time: Duration) {
    STEP.store(time.as_nanos() as u64, Relaxed);
}

pub(super) fn monotonic() -> Duration {
    Duration::from_nanos(NOW.fetch_add(STEP.load(Relaxed), Relaxed))
}

pub(super) fn realtime() -> Duration {
    monotonic()
}

pub(super) fn monotonic_coarse() -> Duration {
    monotonic()
}

/// One CPU is always busy.
pub(super) fn process_cpu_time() -> Duration {
    monotonic()
}
