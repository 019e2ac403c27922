//! Tortured: wait with and without deadlines and masks, wake, on words of all sizes, many in one bucket.
//!
//! Checked: every token that is given is taken, so no wake-up is lost (a taker without a deadline would
//! sleep for ever); exactly as many waits returned Ok as waiters were counted by wakes.

use super::traffic::{Plan, kinds, nothing_left, private_words};
use crate::actor::Verdict;
use crate::context::Context;

const TOKENS: usize = 12_000;

pub(super) fn run(context: &'static Context) -> Verdict {
    let words = private_words(context);
    let kinds = kinds(&words);
    while let Some(round) = context.next_round() {
        let before = context.totals();
        let plan = Plan::new(round, &kinds, round.threads, TOKENS);
        context.crew(round, |crew| {
            plan.hire(crew);
            Ok(())
        })?;
        nothing_left(&words)?;
        context.balance(&before)?;
    }
    Ok(())
}
