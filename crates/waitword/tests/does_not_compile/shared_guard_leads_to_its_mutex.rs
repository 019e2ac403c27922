//! Threads that share a guard can get at its mutex, and so at the value once the guard is gone. If
//! the value must not move to other threads, the guard must not be shared.

use std::sync::MutexGuard;
use waitword::{CheckedMutexGuard, PiMutexGuard};

fn share<T: Sync>() {}

fn main() {
    // Shared, but not sent.
    share::<MutexGuard<'static, u32>>();
    share::<CheckedMutexGuard<'static, MutexGuard<'static, u32>>>();
    share::<PiMutexGuard<'static, MutexGuard<'static, u32>>>();
}
