//! Tortured: thousands of threads that start, wait once or twice, and end. Their stacks, which hold
//! the table's waiters, are unmapped or reused at once.
//!
//! Checked: tokens and counts; and that nothing is left behind: the memory that the library has
//! mapped is bounded by the number of threads that existed at once, not of those that ever existed.

use super::traffic::Traffic;
use crate::actor::Verdict;
use crate::context::Context;
use waitword::table;

/// Threads in a round, in batches of the round's thread count.
const THREADS: usize = 1_500;
/// What the library promises, with a margin for threads that overlap as they come and go.
const FIXED: usize = 96 << 10;
const EACH: usize = 1 << 10;

pub(crate) fn run(context: &'static Context) -> Verdict {
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
