//! Tortured: wait_any over words of all sizes: private ones, shared ones, and both mixed.
//!
//! Other threads wait on one narrow shared word each, which lies in the same 32 bits as a word that
//! wait_any waits on. They may receive that word's wakes.
//!
//! In every other round a baton goes round in rings instead. Their members wait on their own word
//! and on others where nothing ever happens. A single lost wake-up stops a ring, whereas among
//! takers another wake makes up for it.
//!
//! Checked: the batons come round; takers that wait for any of several words end. One call may
//! swallow the wakes of more than one word (the kernel's may, too), so a thread that has taken a
//! token wakes another taker of every word that still holds some. With private words only, wakes
//! counted at least as many waiters as were woken.

use super::traffic::{nothing_left, take_all};
use crate::actor::{Actor, Verdict};
use crate::context::{Context, Round};
use crate::count::Count;
use crate::fault::kind::Fault;
use crate::memory::shared_memory;
use crate::nap::let_others_run;
use crate::parts::ring::{self, MEMBERS};
use crate::spot::{SIZES, Spot, Word};
use crate::tokens::Tokens;
use waitword::{Error, Scope, probe};

const TOKENS: usize = 4_000;
const PASSES: usize = 6_000;

pub(crate) fn run(context: &'static Context) -> Verdict {
    let private = private_words(context);
    let (shared, neighbours) = shared_words(context);
    let mixed = [&private[..], &shared].concat();
    // Kernels before 5.16 cannot wait for several shared words.
    let sets = match probe::futex_waitv().is_there() {
        true => &[&private, &mixed, &shared][..],
        false => &[&private],
    };
    let ring_words = ring_words(context);
    while let Some(round) = context.next_round() {
        if round.number % 2 == 1 {
            run_rings(context, round, &ring_words, sets)?;
            continue;
        }
        let before = context.totals();
        let number = round.number as usize / 2 % sets.len();
        let (set, is_private) = (sets[number], number == 0);
        // A taker takes from one set only; each set has as many tokens as its takers want.
        let takers = round.threads / 2;
        let givers = (round.threads / 4).max(1);
        let quota = (TOKENS / takers).max(1);
        let gifts = takers * quota;
        // The threads that wait on one word have as many tokens to themselves.
        let singles = if is_private { 0 } else { givers };
        context.crew(round, |crew| {
            for index in 0..takers {
                crew.spawn("taker", index, move |actor| {
                    (0..quota).try_for_each(|_| take_any(actor, set, index))
                });
            }
            for index in 0..singles {
                let word = neighbours[index % neighbours.len()];
                crew.spawn("neighbour", index, move |actor| {
                    take_all(actor, 2 * index, (word, 0), quota)
                });
            }
            for index in 0..givers {
                let share = gifts / givers + usize::from(index < gifts % givers);
                let word = neighbours[index % neighbours.len()];
                let to_neighbours = if is_private { 0 } else { quota };
                crew.spawn("giver", index, move |actor| {
                    for number in 0..share.max(to_neighbours) {
                        if number < share {
                            give_any(actor, set)?;
                        }
                        if number < to_neighbours {
                            word.give(actor, 0)?;
                        }
                        actor.dawdle();
                    }
                    Ok(())
                });
            }
            Ok(())
        })?;
        nothing_left(set)?;
        nothing_left(&neighbours)?;
        let change = context.totals().since(&before);
        if is_private && change.of(Count::Wakes) < change.of(Count::Woken) {
            return Err("more takers were woken than wakes counted".to_owned());
        }
    }
    Ok(())
}

fn private_words(context: &Context) -> Vec<Tokens> {
    let near = context.colliding_words("private word", &[SIZES, SIZES].concat()[..5]);
    near.into_iter().map(Tokens::plain).collect()
}

/// Shared words of all sizes, and neighbours of the narrow ones in the same 32 bits.
fn shared_words(context: &Context) -> (Vec<Tokens>, Vec<Tokens>) {
    let memory = shared_memory(4096);
    let words = |name, places: &[(usize, u32)]| {
        let place = |&(offset, bits): &(usize, u32)| {
            // SAFETY: inside the mapping, aligned, apart from each other, never unmapped.
            let word = unsafe { Word::at(memory.add(offset), bits) };
            Tokens::plain(context.name_word(name, word, Scope::Shared))
        };
        places.iter().map(place).collect()
    };
    let waited_for = [(0, 8), (1, 8), (4, 16), (8, 32), (16, 64), (24, 64)];
    let neighbours = [(2, 8), (3, 8), (6, 16)];
    (words("shared word", &waited_for), words("neighbour", &neighbours))
}

/// One word for each thread; alternately, rings of private words and of shared ones.
fn ring_words(context: &Context) -> Vec<Spot> {
    let has_shared = probe::futex_waitv().is_there();
    let word = |index: usize| {
        let bits = SIZES[index % SIZES.len()];
        match has_shared && index / MEMBERS % 2 == 1 {
            false => context.private_word("ring word", bits),
            true => {
                // SAFETY: a mapping of its own, aligned, never unmapped.
                let word = unsafe { Word::at(shared_memory(8), bits) };
                context.name_word("shared ring word", word, Scope::Shared)
            }
        }
    };
    (0..context.slice.most_threads()).map(word).collect()
}

fn run_rings(
    context: &'static Context,
    round: Round,
    words: &[Spot],
    sets: &[&Vec<Tokens>],
) -> Verdict {
    let laps = (PASSES / round.threads).max(2);
    let members = round.threads / MEMBERS * MEMBERS;
    context.crew(round, |crew| {
        let catch = |actor: &mut Actor, _, own| catch(actor, own, sets);
        let pass = |actor: &mut Actor, _, next: Spot| {
            actor.dawdle();
            next.word.store(1);
            actor.wake(next, 1, u64::MAX).map(drop)
        };
        ring::hire(crew, &words[..members], laps, catch, pass);
        Ok(())
    })
}

/// Waits for the baton, and on some words of one of the sets. Hardly ever with a deadline, which
/// would hide a lost wake-up.
fn catch(actor: &mut Actor, own: Spot, sets: &[&Vec<Tokens>]) -> Verdict {
    while !own.word.replace(1, 0) {
        let set = sets[actor.dice.usize(0..sets.len())];
        let mut expected: Vec<_> = set.iter().map(|tokens| (tokens.spot, 0)).collect();
        actor.dice.shuffle(&mut expected);
        expected.truncate(actor.dice.usize(0..=3));
        expected.push((own, 0));
        actor.dice.shuffle(&mut expected);
        let deadline = (actor.dice.u32(0..32) == 0).then(|| actor.tiny_deadline());
        match actor.wait_any(&expected, deadline) {
            Ok(_) | Err(Error::Mismatch) => {}
            // With private and shared words mixed it needs memory, and reports that.
            Err(Error::OutOfMemory) if actor.has(Fault::Memory) => let_others_run(),
            Err(Error::TimedOut) if deadline.is_some() => {}
            Err(error) => return Err(format!("a wait_any failed: {error}")),
        }
    }
    actor.step();
    Ok(())
}

/// Takes one token of any word in the set, waiting on all of them, in any order.
fn take_any(actor: &mut Actor, set: &[Tokens], index: usize) -> Verdict {
    loop {
        if set.iter().any(|tokens| tokens.try_take(0)) {
            actor.step();
            return wake_others(actor, set);
        }
        let mut wanted: Vec<Tokens> = set.to_vec();
        actor.dice.shuffle(&mut wanted);
        let expected: Vec<(Spot, u64)> = wanted.iter().map(|tokens| (tokens.spot, 0)).collect();
        let deadline = (index % 2 == 1 && actor.dice.u32(0..4) == 0).then(|| actor.tiny_deadline());
        match actor.wait_any(&expected, deadline) {
            Ok(woken) if woken < wanted.len() => {}
            Ok(woken) => return Err(format!("word {woken} of {} was woken", wanted.len())),
            Err(Error::Mismatch) => {}
            // With private and shared words mixed it needs memory, and reports that.
            Err(Error::OutOfMemory) if actor.has(Fault::Memory) => let_others_run(),
            Err(Error::TimedOut) if deadline.is_some() => {}
            Err(error) => return Err(format!("a wait_any failed: {error}")),
        }
    }
}

/// Passes on the wakes that one wait has swallowed besides its own.
fn wake_others(actor: &mut Actor, set: &[Tokens]) -> Verdict {
    for tokens in set.iter().filter(|tokens| tokens.spot.word.load() != 0) {
        actor.wake(tokens.spot, 1, u64::MAX)?;
    }
    Ok(())
}

fn give_any(actor: &mut Actor, set: &[Tokens]) -> Verdict {
    loop {
        let tokens = set[actor.dice.usize(0..set.len())];
        if tokens.try_put(0) {
            actor.wake(tokens.spot, 1, u64::MAX)?;
            actor.step();
            return Ok(());
        }
        let_others_run();
    }
}
