//! Tortured: requeue and cmp_requeue among words of all sizes, in one bucket and in several, and
//! onto the same word, while values change and waits time out.
//!
//! Checked: every wait ends, wherever its waiter was moved to. The movers run only until all
//! waiters have had their waits, and none of these may stay behind. Every wait that returned Ok was
//! counted by exactly one wake.

use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::count::Count;
use crate::spot::{How, SIZES, Spot};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use waitword::Error;

const WAITS: usize = 8_000;

pub(crate) fn run(context: &'static Context) -> Verdict {
    let mut words = context.colliding_words("storm word", &SIZES);
    words.extend(SIZES.map(|bits| context.private_word("storm word apart", bits)));
    let words = &words[..];
    while let Some(round) = context.next_round() {
        let before = context.totals();
        let movers = (round.threads / 8).clamp(1, 8);
        let waiters = round.threads - movers;
        let quota = (WAITS / waiters).max(1);
        let waiting = AtomicUsize::new(waiters);
        let waiting = &waiting;
        context.crew(round, |crew| {
            for index in 0..waiters {
                crew.spawn("waiter", index, move |actor| {
                    let verdict = (0..quota).try_for_each(|_| wait_somewhere(actor, words));
                    waiting.fetch_sub(1, SeqCst);
                    verdict
                });
            }
            for index in 0..movers {
                crew.spawn("mover", index, move |actor| {
                    while waiting.load(SeqCst) > 0 {
                        stir(actor, words)?;
                    }
                    Ok(())
                });
            }
            Ok(())
        })?;
        context.balance(&before)?;
    }
    Ok(())
}

/// One wait, until it has returned Ok or timed out.
fn wait_somewhere(actor: &mut Actor, words: &[Spot]) -> Verdict {
    loop {
        let spot = words[actor.dice.usize(0..words.len())];
        let expected = spot.word.load();
        let deadline = (actor.dice.u32(0..3) == 0).then(|| actor.tiny_deadline());
        let mask = match actor.dice.u32(0..4) {
            0 => 1 << actor.dice.u32(0..8),
            _ => u64::MAX,
        };
        match actor.wait(spot, expected, How { mask, deadline }) {
            Err(Error::Mismatch) => continue,
            Err(Error::TimedOut) if deadline.is_some() => {}
            Err(error) => return Err(format!("a wait failed: {error}")),
            Ok(()) => {}
        }
        actor.count(Count::Operations, 1);
        return Ok(());
    }
}

/// Does a few random things to words and waiters, then rests.
fn stir(actor: &mut Actor, words: &[Spot]) -> Verdict {
    for _ in 0..actor.dice.u32(1..6) {
        let from = words[actor.dice.usize(0..words.len())];
        let to = words[actor.dice.usize(0..words.len())];
        let few = |actor: &mut Actor| match actor.dice.u32(0..8) {
            0 => usize::MAX,
            _ => actor.dice.usize(0..4),
        };
        match actor.dice.u32(0..16) {
            0 | 1 => {
                from.word.add(1);
            }
            2..8 => {
                let counts = (few(actor), few(actor));
                actor.requeue(from, None, to, counts)?;
            }
            8..12 => {
                // Right most of the time; another mover may change it just then.
                let expected = from.word.load() ^ u64::from(actor.dice.u32(0..4) == 0);
                let counts = (few(actor), few(actor));
                actor.requeue(from, Some(expected), to, counts)?;
            }
            12..15 => {
                let count = few(actor);
                actor.wake(from, count, u64::MAX)?;
            }
            _ => {
                let mask = 1 << actor.dice.u32(0..8);
                actor.wake(from, usize::MAX, mask)?;
            }
        }
    }
    std::thread::yield_now();
    actor.dawdle();
    Ok(())
}
