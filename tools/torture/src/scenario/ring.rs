//! Tortured: passing one baton in every possible way: by a wake of one, a wake of all, a requeue, a
//! wake_op, and by moving the waiter to another word and waking it there.
//!
//! Checked: the baton comes round. There is only one in each ring, so no later wake can make up for
//! one that was lost. Counts are exact.

use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::parts::ring::{self, MEMBERS};
use crate::spot::{How, SIZES, Spot};
use waitword::{Cmp, Error, Op};

const PASSES: usize = 12_000;
const BATON: u64 = 1;

pub(crate) fn run(context: &'static Context) -> Verdict {
    let most = context.slice.most_threads();
    let mut words: Vec<Spot> = context.colliding_words("ring word", &[SIZES, SIZES].concat());
    for index in words.len()..most.next_multiple_of(MEMBERS) {
        words.push(context.private_word(&format!("ring word {index}"), SIZES[index % 4]));
    }
    let detours: Vec<_> = context.colliding_words("detour", &SIZES);
    let detours = &detours;
    while let Some(round) = context.next_round() {
        let before = context.totals();
        round.dice().shuffle(&mut words);
        let laps = (PASSES / round.threads).max(1);
        let members = round.threads / MEMBERS * MEMBERS;
        context.crew(round, |crew| {
            let catch = |actor: &mut Actor, _, own| catch(actor, own);
            let pass = |actor: &mut Actor, _, next| pass(actor, next, detours);
            ring::hire(crew, &words[..members], laps, catch, pass);
            Ok(())
        })?;
        context.balance(&before)?;
    }
    Ok(())
}

/// Waits for the baton. Hardly ever with a deadline, which would hide a lost wake-up.
fn catch(actor: &mut Actor, own: Spot) -> Verdict {
    while !own.word.replace(BATON, 0) {
        let how = match actor.dice.u32(0..32) {
            0 => How::until(actor.tiny_deadline()),
            _ => How::ALWAYS,
        };
        match actor.wait(own, 0, how) {
            Ok(()) | Err(Error::Mismatch | Error::TimedOut) => {}
            Err(error) => return Err(format!("a wait failed: {error}")),
        }
    }
    actor.step();
    Ok(())
}

fn pass(actor: &mut Actor, next: Spot, detours: &[Spot]) -> Verdict {
    let way = actor.dice.u32(0..8);
    let detour = detours[actor.dice.usize(0..detours.len())];
    if way == 0 {
        // The wake_op itself puts the baton down.
        let always = None;
        actor.wake_op((detour, 0), (next, 1), (Op::Set, BATON), always)?;
        return Ok(());
    }
    next.word.store(BATON);
    match way {
        1 => {
            let never = Some((Cmp::Lt, 0));
            actor.wake_op((next, 1), (detour, 1), (Op::Or, 0), never)?;
        }
        2 => {
            actor.requeue(next, None, detour, (1, 0))?;
        }
        3 | 4 => {
            // A thread that waits on `next` began before the baton lay there, so all its waiters
            // move.
            let expected = (way == 4).then_some(BATON);
            let moved = actor.requeue(next, expected, detour, (0, usize::MAX))?;
            if moved.is_some() {
                // Waiters of other rings are queued there too. They look at their words and wait
                // again.
                actor.wake(detour, usize::MAX, u64::MAX)?;
            }
        }
        5 => {
            actor.wake(next, usize::MAX, u64::MAX)?;
        }
        _ => {
            actor.wake(next, 1, u64::MAX)?;
        }
    }
    Ok(())
}
