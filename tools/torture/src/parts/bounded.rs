//! Waits that are promised to be bounded.
//!
//! A slow machine makes waits long, but not for one thread alone. So a wait counts as starved if it
//! was long while other threads had turn after turn with the same lock.

use crate::actor::{Actor, Verdict};
use crate::nap::nap;
use crate::objects::traits::Attempt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How many turns other threads must have had meanwhile, at least: in total, and per thread.
const TURNS_OF_ALL: u64 = 500;
const TURNS_OF_EACH: u64 = 4;

/// A wait without a deadline, from its begin.
struct Bounded<'a> {
    /// Counts the turns that threads have with the lock.
    turns: &'a AtomicU64,
    had: u64,
    /// In milliseconds that the process has run, because it may be stopped.
    since: u64,
}

impl<'a> Bounded<'a> {
    fn begin(actor: &mut Actor, turns: &'a AtomicU64) -> Self {
        let board = actor.context().board;
        let this = Self { turns, had: turns.load(Relaxed), since: board.ran.load(Relaxed) };
        if actor.starves() {
            while this.waited(actor) <= longest(actor) && !board.is_violated() {
                nap(1_000);
            }
        }
        this
    }

    fn waited(&self, actor: &Actor) -> u64 {
        actor.context().board.ran.load(Relaxed) - self.since
    }

    /// The wait is over. `wish` is what the thread waited to do with the lock.
    ///
    /// # Errors
    /// The wait was starved.
    fn end(self, actor: &Actor, wish: &str) -> Verdict {
        let context = actor.context();
        let waited = self.waited(actor);
        let others = self.turns.load(Relaxed).wrapping_sub(self.had);
        let enough = TURNS_OF_ALL.max(TURNS_OF_EACH * context.threads_of_round() as u64);
        if waited <= longest(actor) || others < enough {
            return Ok(());
        }
        let (busiest, steps) = context.board.busiest();
        Err(format!(
            "starved: it waited for {waited} ms to {wish}, while other threads had {others} turns; \
             most steps: {busiest}, {steps}"
        ))
    }
}

/// Tries to get a lock, with one patience or another. A wait without a deadline is bounded if that
/// `is_promised`. `turns` and `wish` are as above.
pub(crate) fn attempt(
    actor: &mut Actor,
    turns: &AtomicU64,
    is_promised: bool,
    wish: &str,
    take: impl FnOnce(&mut Actor, Attempt) -> Result<bool, String>,
) -> Result<bool, String> {
    let attempt = match actor.dice.u32(0..10) {
        0 => Attempt::Try,
        1..4 => Attempt::Timed,
        _ => Attempt::Patient,
    };
    let is_bounded = is_promised && attempt == Attempt::Patient;
    let bounded = is_bounded.then(|| Bounded::begin(actor, turns));
    let taken = take(actor, attempt)?;
    bounded.map_or(Ok(()), |bounded| bounded.end(actor, wish))?;
    Ok(taken)
}

/// The longest wait that does not count as starved.
fn longest(actor: &Actor) -> u64 {
    actor.context().patience().as_millis() as u64 / 2
}
