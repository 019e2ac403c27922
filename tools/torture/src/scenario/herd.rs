//! Tortured: herds. All threads of a round sleep on one word and are woken in every possible way.
//!
//! Checked: the wakes together count exactly the herd, and every thread of it wakes up.

use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::count::Count;
use crate::nap::let_others_run;
use crate::spot::{How, SIZES, Spot};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use waitword::table;

const WAITS: usize = 2_000;

pub(crate) fn run(context: &'static Context) -> Verdict {
    let mut words = context.colliding_words("herd word", &SIZES);
    words.extend(SIZES.map(|bits| context.private_word("herd word apart", bits)));
    let words = &words[..];
    while let Some(round) = context.next_round() {
        let before = context.totals();
        let herd = round.threads;
        let times = (WAITS / herd).max(2);
        let places = choose_places(&mut round.dice(), words, times);
        let arrived = AtomicUsize::new(0);
        let (places, arrived) = (&places, &arrived);
        let start: Vec<u64> = words.iter().map(|spot| spot.word.load()).collect();
        let start = &start;
        context.crew(round, |crew| {
            for index in 0..herd {
                crew.spawn("sheep", index, move |actor| {
                    // Every gate is opened by adding 1, and all threads know how often it was
                    // opened.
                    let mut values = start.clone();
                    for (time, &place) in places.iter().enumerate() {
                        let known = words.iter().position(|spot| spot.number == place.number);
                        let value = &mut values[known.unwrap_or(0)];
                        let mask = 1 << ((index + time) % 2);
                        let how = How { mask, deadline: None };
                        actor
                            .wait(place, *value, how)
                            .map_err(|error| format!("a wait failed: {error}"))?;
                        *value = value.wrapping_add(1) & (u64::MAX >> (64 - place.word.bits()));
                        arrived.fetch_add(1, SeqCst);
                        actor.count(Count::Operations, 1);
                    }
                    Ok(())
                });
            }
            crew.spawn("herder", 0, move |actor| {
                for (time, &place) in places.iter().enumerate() {
                    let all_there = || table::snapshot(&mut []).waiters == herd;
                    while !all_there() {
                        let_others_run();
                    }
                    place.word.add(1);
                    // A thread that is already awake may be queued at the next place by now.
                    let next = places.get(time + 1).map_or(0, |next| next.number);
                    let other = loop {
                        let other = words[actor.dice.usize(0..words.len())];
                        if other.number != next {
                            break other;
                        }
                    };
                    let woken = wake_herd(actor, place, other, herd)?;
                    if woken != herd {
                        return Err(format!("{woken} of {herd} were woken"));
                    }
                    while arrived.load(SeqCst) < herd * (time + 1) {
                        let_others_run();
                    }
                }
                Ok(())
            });
            Ok(())
        })?;
        context.balance(&before)?;
    }
    Ok(())
}

/// Where the herd sleeps each time. Never in the same place twice in a row, because a thread that
/// was woken could be woken again.
fn choose_places(dice: &mut fastrand::Rng, words: &[Spot], times: usize) -> Vec<Spot> {
    let mut places: Vec<Spot> = Vec::new();
    while places.len() < times {
        let place = words[dice.usize(0..words.len())];
        if places.last().is_none_or(|last| last.number != place.number) {
            places.push(place);
        }
    }
    places
}

/// Wakes all waiters, one way or another. Returns how many there were.
fn wake_herd(actor: &mut Actor, place: Spot, other: Spot, herd: usize) -> Result<usize, String> {
    match actor.dice.u32(0..5) {
        0 => {
            let mut woken = 0;
            loop {
                let count = actor.dice.usize(1..64);
                let now = actor.wake(place, count, u64::MAX)?;
                woken += now;
                if now == 0 {
                    return Ok(woken);
                }
            }
        }
        1 => Ok(actor.wake(place, usize::MAX, 1)? + actor.wake(place, usize::MAX, 2)?),
        2 => {
            let some = actor.dice.usize(0..=herd);
            let moved = actor.requeue(place, None, other, (some, usize::MAX))?;
            let (woken, moved) = moved.unwrap_or_default();
            if woken + moved != herd {
                return Err(format!("{woken} were woken and {moved} moved, of {herd}"));
            }
            Ok(woken + actor.wake(other, usize::MAX, u64::MAX)?)
        }
        _ => actor.wake(place, usize::MAX, u64::MAX),
    }
}
