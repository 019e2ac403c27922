//! How a thread that injects faults is stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

/// Raised to stop a thread that injects faults.
#[derive(Clone, Default)]
pub(crate) struct Flag(Arc<AtomicBool>);

impl Flag {
    pub(crate) fn raise(&self) {
        self.0.store(true, SeqCst);
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.0.load(SeqCst)
    }

    /// Sleeps, but not much longer once the flag is raised. Returns whether it is still down.
    pub(crate) fn sleep(&self, time: Duration) -> bool {
        const STEP: Duration = Duration::from_millis(10);
        let until = std::time::Instant::now() + time;
        while !self.is_raised() {
            let left = until.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(STEP));
        }
        false
    }
}
