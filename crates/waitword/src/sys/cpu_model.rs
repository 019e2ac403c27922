//! The CPUs of a model: unknown, or all threads run on a single one.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

crate::checker::lazy_static! {
    // Not the checker's: it orders nothing.
    static ref ONE_CPU: AtomicBool = AtomicBool::new(false);
}

/// From now on in this execution.
pub(crate) fn run_all_on_one_cpu() {
    ONE_CPU.store(true, Relaxed);
}

pub(crate) fn current_cpu() -> Option<u32> {
    ONE_CPU.load(Relaxed).then_some(0)
}

/// In a model a pause lets other threads run. So it takes long, and loops of pauses are short.
pub(crate) fn pauses_in_1024_ns() -> u64 {
    1
}
