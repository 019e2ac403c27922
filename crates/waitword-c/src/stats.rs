//! Counts of what the objects of this library had to do.

use core::ffi::c_uint;
use waitword_core::stats;

/// Event, for `ww_stats_count`: a mutex or rwlock was found held, so that the thread had to spin or
/// sleep.
pub const WW_STATS_CONTENDED: u32 = 0;
/// Event: a wait for a lock, a condition variable or a private futex slept in the kernel.
pub const WW_STATS_SLEEPS: u32 = 1;
/// Event: a thread was woken, or kept from falling asleep, by an unlock, a signal or a wake.
pub const WW_STATS_WAKES: u32 = 2;
/// Event: a woken waiter for a mutex had to sleep again, because another thread was faster.
pub const WW_STATS_SLEPT_AGAIN: u32 = 3;
/// Event: a waiter was moved from one queue to another without being woken.
pub const WW_STATS_REQUEUES: u32 = 4;
/// Event: a lock was handed off to a particular waiter, so that no other thread could take it.
pub const WW_STATS_HAND_OFFS: u32 = 5;
/// Event: a broadcast woke fewer threads than were waiting.
pub const WW_STATS_HERDS_AVOIDED: u32 = 6;
/// Event: such a broadcast left a waiter asleep.
pub const WW_STATS_HERD_WAITERS: u32 = 7;

/// Starts to count what the objects of this library have to do, in all threads of the process.
///
/// Only waits and wakes are counted: an uncontended lock or unlock runs the same code whether
/// counting is on or off, and counts as nothing. A wait or a wake costs one atomic addition more.
/// After a fork the child starts at zero.
///
/// Does not block. May be called at any time, even while objects are in use.
#[unsafe(no_mangle)]
pub extern "C" fn ww_stats_enable() {
    stats::enable();
}

/// Stops counting. The counts stay as they are.
///
/// Does not block. Async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn ww_stats_disable() {
    stats::disable();
}

/// Returns how often this event (`WW_STATS_CONTENDED` ...) has happened since the first
/// `ww_stats_enable`; 0 for an unknown event. Other threads go on counting meanwhile.
///
/// Does not block.
#[unsafe(no_mangle)]
pub extern "C" fn ww_stats_count(event: c_uint) -> u64 {
    let counted = stats::snapshot();
    match event {
        WW_STATS_CONTENDED => counted.contended,
        WW_STATS_SLEEPS => counted.sleeps,
        WW_STATS_WAKES => counted.wakes,
        WW_STATS_SLEPT_AGAIN => counted.slept_again,
        WW_STATS_REQUEUES => counted.requeues,
        WW_STATS_HAND_OFFS => counted.hand_offs,
        WW_STATS_HERDS_AVOIDED => counted.herds_avoided,
        WW_STATS_HERD_WAITERS => counted.herd_waiters,
        _ => 0,
    }
}
