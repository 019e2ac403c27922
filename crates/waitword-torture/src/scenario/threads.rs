//! Tortured: threads that come, wait once or twice, and end, by the thousand. Their stacks, on which
//! waiters stand in the table, are unmapped or used again at once.
//!
//! Checked: tokens and counts; and that nothing is left behind: the memory that the library has mapped is
//! bounded by the threads that were there at once, not by those that ever were.

use super::traffic::{Plan, kinds, nothing_left, private_words};
use crate::actor::Verdict;
use crate::context::Context;
use waitword::table;

/// Threads in a round, in batches of the round's number.
const THREADS: usize = 1_500;
/// What the library promises, with a margin for those who pass in the door.
const FIXED: usize = 96 << 10;
const EACH: usize = 1 << 10;

pub(super) fn run(context: &'static Context) -> Verdict {
    let words = private_words(context);
    let kinds = kinds(&words);
    let most = context.threads.iter().max().copied().unwrap_or(0);
    let bound = FIXED + EACH * most;
    while let Some(mut round) = context.next_round() {
        for _ in 0..(THREADS / round.threads).max(1) {
            let before = context.totals();
            // Each taker takes a single token.
            let plan = Plan::new(round, &kinds, round.threads, round.threads);
            context.crew(round, |crew| {
                plan.hire(crew);
                Ok(())
            })?;
            nothing_left(&words)?;
            context.balance(&before)?;
            let mapped = table::mapped_bytes();
            if mapped > bound {
                return Err(format!("{mapped} bytes are mapped, more than {bound}"));
            }
            round.seed = round.seed.wrapping_add(1);
        }
    }
    Ok(())
}
