//! In models there are no other processes; a model decides whether there seem to be some. Nor is
//! there a CPU quota.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

crate::checker::lazy_static! {
    static ref BESIDE_OTHERS: AtomicBool = AtomicBool::new(false);
}

/// From now on in this execution.
pub(crate) fn let_others_be_busy() {
    BESIDE_OTHERS.store(true, Relaxed);
}

pub(crate) fn is_beside_others() -> bool {
    BESIDE_OTHERS.load(Relaxed)
}

pub(crate) fn is_throttled() -> bool {
    false
}
