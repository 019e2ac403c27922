//! The scheduler of a model: each thread has the priority that the model gives it, and the threads
//! are numbered in the order in which they first ask.

use crate::checker::thread::yield_now;
use core::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

pub(crate) const HIGHEST_PRIORITY: u8 = 100;

crate::checker::thread_local! {
    static PRIORITY: Cell<u8> = Cell::new(0);
}

crate::checker::lazy_static! {
    // Not the checker's atomics: they order nothing.
    static ref SOME_ARE_REAL_TIME: AtomicBool = AtomicBool::new(false);
    static ref LAST_NUMBER: AtomicU32 = AtomicU32::new(0);
}

pub(crate) fn priority() -> u8 {
    PRIORITY.with(Cell::get)
}

/// Sets the calling thread's priority from now on.
pub(crate) fn set_priority(priority: u8) {
    PRIORITY.with(|cell| cell.set(priority));
    SOME_ARE_REAL_TIME.fetch_or(priority != 0, Relaxed);
}

/// Whether any thread of this execution has had a real-time priority.
pub(crate) fn some_are_real_time() -> bool {
    SOME_ARE_REAL_TIME.load(Relaxed)
}

pub(super) fn new_thread_number() -> u32 {
    LAST_NUMBER.fetch_add(1, Relaxed) + 1
}

pub(crate) fn cpus() -> u32 {
    2
}

pub(crate) fn yield_cpu() {
    yield_now();
}

pub(crate) fn sleep_nanoseconds(_: i64) {
    yield_now();
}

pub(crate) fn grow_kernel_hash(_: usize) {}
