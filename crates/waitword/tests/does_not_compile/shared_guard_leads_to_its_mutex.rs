//! A guard that threads share leads them to its mutex, and so to the value once the guard is gone.
//! If the value must not change threads, the guard must not be shared.

use std::sync::MutexGuard;
use waitword::{CheckedMutexGuard, PiMutexGuard};

fn share<T: Sync>() {}

fn main() {
    // Shared, and not sent.
    share::<MutexGuard<'static, u32>>();
    share::<CheckedMutexGuard<'static, MutexGuard<'static, u32>>>();
    share::<PiMutexGuard<'static, MutexGuard<'static, u32>>>();
}
