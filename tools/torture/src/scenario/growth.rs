//! Tortured: the table's growth, from its smallest size (`WAITWORD_BUCKETS=1`) to thousands of
//! times that, while threads wait, wake and time out. Each process grows its table once, so there
//! are many processes.
//!
//! Checked: tokens and counts, throughout the growth; the table never shrinks, and gets the size
//! that was asked for.

use super::traffic::Traffic;
use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::fault::kind::Fault;
use std::time::Duration;
use waitword::{Error, table};

const TOKENS: usize = 4_000;
/// 16 MiB of buckets.
const MOST_BUCKETS: usize = 1 << 18;
/// How often the table doubles in a round.
const DOUBLINGS: usize = 4;

pub(crate) fn run(context: &'static Context) -> Verdict {
    let traffic = Traffic::new(context);
    while let Some(mut round) = context.next_round() {
        // Each process has only a round or two, so the thread counts are chosen at random.
        round.threads = context.slice.threads[round.dice().usize(0..context.slice.threads.len())];
        traffic.round(context, round, TOKENS, |crew| crew.spawn("grower", 0, grow))?;
    }
    Ok(())
}

fn grow(actor: &mut Actor) -> Verdict {
    for _ in 0..DOUBLINGS {
        std::thread::sleep(Duration::from_micros(actor.dice.u64(0..3_000)));
        let had = table::buckets();
        let wanted = (had * 2).clamp(64, MOST_BUCKETS);
        let has = match table::reserve(wanted) {
            Ok(has) => has,
            // The present table stays in use.
            Err(Error::OutOfMemory) if actor.has(Fault::Memory) => continue,
            Err(error) => return Err(format!("no growth: {error}")),
        };
        if has < wanted || table::buckets() < has {
            let now = table::buckets();
            return Err(format!("{wanted} buckets asked for, {has} promised, {now} there"));
        }
        actor.step();
    }
    Ok(())
}
