//! Tortured: condition variables of every sort with mutexes of every sort. Tokens are passed
//! through a small store, whose givers and takers wait for each other, with deadlines on both
//! clocks and without. They are signalled with and without the mutex held. A condition variable
//! lives for some rounds, and is used with another mutex in each.
//!
//! Checked: all threads end, every token arrives once, no two threads ever hold the mutex, no wait
//! times out early, and both can be destroyed at the end.

use super::bell::{Bell, BellSort};
use super::lock::{Lock, Made, Protocol, Sort};
use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::count::Count;
use crate::parts::store::{self, Condition, Monitor, ROOM, Store};
use crate::parts::turns;

const TOKENS: usize = 1_500;
/// How many stores there are in a round, at most.
const AT_ONCE: usize = 4;

/// The two condition variables of a store.
struct Bells {
    not_empty: Bell,
    not_full: Bell,
}

/// A store, its mutex in this round, and its condition variables.
struct Place<'a> {
    lock: &'a Lock,
    bells: &'a Bells,
    store: Store,
}

impl Place<'_> {
    fn bell(&self, what: Condition) -> &Bell {
        match what {
            Condition::NotEmpty => &self.bells.not_empty,
            Condition::NotFull => &self.bells.not_full,
        }
    }
}

impl Monitor for &Place<'_> {
    fn lock(&self, actor: &mut Actor) -> Verdict {
        self.lock.lock(actor)
    }

    fn unlock(&self, _actor: &mut Actor) -> Verdict {
        self.lock.unlock()
    }

    fn wait(&self, actor: &mut Actor, what: Condition) -> Verdict {
        let timed = actor.dice.u32(0..6) == 0;
        self.bell(what).wait(actor, self.lock, timed)
    }

    fn signal(&self, actor: &mut Actor, what: Condition, _inside: bool) -> Verdict {
        if actor.leaves_out() {
            return Ok(());
        }
        actor.count(Count::Wakes, 1);
        let c11 = self.lock.sort.made == Made::C11;
        match actor.dice.u32(0..8) {
            0 => self.bell(what).broadcast(c11),
            _ => self.bell(what).signal(c11),
        }
    }
}

pub(super) fn run(context: &'static Context) -> Verdict {
    let locks = Sort::mutexes()
        .filter(|sort| sort.protocol != Protocol::Protect)
        .map(|sort| Lock::new(context, sort))
        .collect::<Result<Vec<_>, _>>()?;
    let mut all_bells = (0..AT_ONCE)
        .map(|index| {
            let name = |what| format!("{what} {index}");
            Ok(Bells {
                not_empty: Bell::new(context, &name("not empty"), BellSort::PLAIN)?,
                not_full: Bell::new(context, &name("not full"), BellSort::PLAIN)?,
            })
        })
        .collect::<Result<Vec<_>, String>>()?;
    while let Some(round) = context.next_round() {
        let mut dice = round.dice();
        for bells in &mut all_bells {
            if dice.bool() {
                bells.not_empty.renew(BellSort::some(&mut dice))?;
                bells.not_full.renew(BellSort::some(&mut dice))?;
            }
        }
        let pairs = round.threads / 2;
        let chosen = turns::some(&mut dice, &locks, AT_ONCE.min(pairs));
        let places: Vec<_> = chosen
            .into_iter()
            .zip(&all_bells)
            .map(|(lock, bells)| Place {
                lock,
                bells,
                store: Store::new(dice.usize(1..=ROOM)),
            })
            .collect();
        let places = &places;
        let quota = (TOKENS / pairs).max(2);
        context.crew(round, |crew| {
            store::hire(crew, pairs, quota, |pair, _| {
                let place = &places[pair % places.len()];
                (&place.store, place)
            });
            Ok(())
        })?;
        for place in places {
            place.store.settle()?;
            place.lock.renew()?;
        }
    }
    Ok(())
}
