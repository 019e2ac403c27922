//! Tortured: threads that come, wait once or twice, and end, by the thousand. Their stacks, on which
//! waiters stand in the table, are unmapped or used again at once.
//!
//! Checked: tokens and counts; and that nothing is left behind: the memory that the library has mapped is
//! bounded by the threads that were there at once, not by those that ever were.

use super::traffic::Traffic;
use crate::actor::Verdict;
use crate::context::Context;
use waitword::table;

/// Threads in a round, in batches of the round's number.
const THREADS: usize = 1_500;
/// What the library promises, with a margin for those who pass in the door.
const FIXED: usize = 96 << 10;
const EACH: usize = 1 << 10;

pub(super) fn run(context: &'static Context) -> Verdict {
    let traffic = Traffic::new(context);
    let most = context.slice.most_threads();
    let bound = FIXED + EACH * most;
    while let Some(mut round) = context.next_round() {
        for _ in 0..(THREADS / round.threads).max(1) {
            // Each taker takes a single token.
            traffic.round(context, round, round.threads, |_| {})?;
            let mapped = table::mapped_bytes();
            if mapped > bound {
                return Err(format!("{mapped} bytes are mapped, more than {bound}"));
            }
            round.seed = round.seed.wrapping_add(1);
        }
    }
    Ok(())
}
