//! Tortured: wait with and without deadlines and masks, and wake, on words of all sizes, many in
//! one bucket.
//!
//! Checked: every token that is given is taken, so no wake-up is lost (a taker without a deadline
//! would sleep forever). Exactly as many waits returned Ok as wakes counted waiters.

use super::traffic::Traffic;
use crate::actor::Verdict;
use crate::context::Context;

const TOKENS: usize = 12_000;

pub(crate) fn run(context: &'static Context) -> Verdict {
    let traffic = Traffic::new(context);
    while let Some(round) = context.next_round() {
        traffic.round(context, round, TOKENS, |_| {})?;
    }
    Ok(())
}
