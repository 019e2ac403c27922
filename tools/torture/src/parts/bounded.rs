//! Waits that are promised to be bounded.
//!
//! A slow machine makes waits long, but not for one thread alone. So a wait counts as starved if it
//! was long while other threads had turn after turn with the same lock.

use crate::actor::{Actor, nap};
use crate::spot::Spot;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How many turns other threads must have had meanwhile, at least: in total, and per thread.
const TURNS_OF_ALL: u64 = 500;
const TURNS_OF_EACH: u64 = 4;

/// Runs `wait`, which waits without a deadline for the lock whose turns are counted in `turns`.
/// `wish` is what it waits to do with the lock.
///
/// # Errors
/// The wait was starved.
pub(crate) fn wait<R>(
    actor: &mut Actor,
    spot: Spot,
    wish: &str,
    turns: &AtomicU64,
    wait: impl FnOnce() -> R,
) -> Result<R, String> {
    let context = actor.context();
    let enough = TURNS_OF_ALL.max(TURNS_OF_EACH * context.crowd() as u64);
    let longest = context.patience().as_millis() as u64 / 2;
    // In milliseconds that the process has run, because it may be stopped.
    let ran = || context.board.ran.load(Relaxed);
    let (since, had) = (ran(), turns.load(Relaxed));
    if actor.starves() {
        while ran() - since <= longest && !context.board.is_violated() {
            nap(1_000);
        }
    }
    let result = actor.wait_at(spot, false, wait);
    let (waited, others) = (ran() - since, turns.load(Relaxed).wrapping_sub(had));
    if waited <= longest || others < enough {
        return Ok(result);
    }
    let (busiest, steps) = context.board.busiest();
    Err(format!(
        "starved: it waited for {waited} ms to {wish}, while other threads had {others} turns; \
         most steps: {busiest}, {steps}"
    ))
}
