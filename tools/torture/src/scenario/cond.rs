//! Tortured: condition variables of every sort with mutexes of every sort, another mutex in each
//! round. Tokens are passed through a small store, whose givers and takers wait for each other,
//! with and without deadlines, and are signalled with and without the mutex held.
//!
//! Where that can be done, waits are interrupted now and then, as cancellation does. In some rounds
//! there are no interruptions and no deadlines, and signals are sent with the mutex held: then the
//! order of arrival is known.
//!
//! Checked: all threads end, every token arrives once, no two threads ever hold the mutex, no wait
//! times out early, and no trace of the waiters is left at the end. What a wait reports is what was
//! spent on it. Where the order of arrival is known, waiters are signalled in that order.

use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::fault::kind::Fault;
use crate::objects::traits::{Attempt, Condvar, Lock};
use crate::parts::store::{self, Condition, Monitor, ROOM, Store};
use crate::parts::turns;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const TOKENS: usize = 5_000;
/// How many stores there are in a round, at most.
const AT_ONCE: usize = 4;

/// The two condition variables of a store.
pub(super) struct Condvars<C> {
    pub(super) not_empty: C,
    pub(super) not_full: C,
}

/// A mutex and its condition variables in this round.
pub(super) struct Place<'a, C: Condvar> {
    pub(super) lock: &'a C::Lock,
    pub(super) condvars: &'a Condvars<C>,
    /// Whether the order of arrival is known.
    pub(super) in_order: bool,
}

impl<C: Condvar> Place<'_, C> {
    fn condvar(&self, what: Condition) -> &C {
        match what {
            Condition::NotEmpty => &self.condvars.not_empty,
            Condition::NotFull => &self.condvars.not_full,
        }
    }
}

impl<C: Condvar> Monitor for &Place<'_, C> {
    fn lock(&self, actor: &mut Actor) -> Verdict {
        self.lock.take(actor, Attempt::Patient).map(drop)
    }

    fn unlock(&self, actor: &mut Actor) -> Verdict {
        self.lock.give_back(actor)
    }

    fn wait(&self, actor: &mut Actor, what: Condition) -> Verdict {
        self.condvar(what).wait(actor, self.lock, self.in_order)
    }

    fn signals_inside(&self, actor: &mut Actor) -> bool {
        self.in_order || actor.dice.bool()
    }

    fn signal(&self, actor: &mut Actor, what: Condition, _inside: bool) -> Verdict {
        if actor.leaves_out() {
            return Ok(());
        }
        let all = actor.dice.u32(0..8) == 0;
        self.condvar(what).signal(actor, self.lock, all)
    }

    fn look_around(&self, actor: &mut Actor) -> Verdict {
        match actor.dice.u32(0..256) {
            0 => self.condvars.not_empty.check_as_non_owner(self.lock),
            _ => Ok(()),
        }
    }
}

pub(crate) fn run<C: Condvar>(context: &'static Context) -> Verdict {
    let locks: Vec<C::Lock> = (C::Lock::all(context)?.into_iter())
        .filter(|lock| !lock.needs_real_time() && !lock.is_spin_lock())
        .collect();
    let mut all_condvars = (0..AT_ONCE)
        .map(|index| {
            let new = |what| C::new(context, &format!("{what} {index}"), index);
            Ok(Condvars { not_empty: new("not empty")?, not_full: new("not full")? })
        })
        .collect::<Result<Vec<_>, String>>()?;
    while let Some(round) = context.next_round() {
        let mut dice = round.dice();
        for condvars in &mut all_condvars {
            if dice.bool() {
                condvars.not_empty.renew(&mut dice)?;
                condvars.not_full.renew(&mut dice)?;
            }
        }
        let pairs = round.threads / 2;
        let chosen = turns::some(&mut dice, &locks, AT_ONCE.min(pairs));
        dice.shuffle(&mut all_condvars);
        let places: Vec<_> = (chosen.into_iter().zip(&all_condvars))
            .map(|(lock, condvars)| {
                // Real-time threads are queued before others.
                let known = condvars.not_empty.keeps_order(lock) && !context.has(Fault::Priority);
                let place = Place { lock, condvars, in_order: known && dice.bool() };
                (place, Store::new(dice.usize(1..=ROOM)))
            })
            .collect();
        let (places, left) = (&places, &AtomicUsize::new(pairs * 2));
        let quota = (TOKENS / pairs).max(2);
        context.crew(round, |crew| {
            store::hire(crew, pairs, quota, left, |pair| {
                let (place, store) = &places[pair % places.len()];
                (store, place)
            });
            if C::IS_INTERRUPTED {
                crew.spawn("interrupter", 0, move |actor| {
                    while left.load(Relaxed) > 0 {
                        C::interrupt_some(actor);
                    }
                    Ok(())
                });
            }
            Ok(())
        })?;
        for (place, store) in places {
            store.settle()?;
            place.condvars.not_empty.settle(place.lock)?;
            place.condvars.not_full.settle(place.lock)?;
            place.lock.renew()?;
        }
    }
    // Destroys them, which fails if there is a trace of a waiter.
    for condvars in &mut all_condvars {
        condvars.not_empty.renew(&mut fastrand::Rng::new())?;
        condvars.not_full.renew(&mut fastrand::Rng::new())?;
    }
    Ok(())
}
