//! Tortured: condition variables of every sort with mutexes of every sort: tokens are passed through a small store, whose givers and
//! takers wait for each other, with deadlines on both clocks and without, and are signalled with the mutex held and without it. A
//! condition variable lives for some rounds and is used with another mutex in each.
//!
//! Checked: everybody comes to an end, every token arrives once, never two threads have the mutex, no wait times out early, and in
//! the end both can be destroyed.

use super::bell::{Bell, BellSort};
use super::lock::{Lock, Made, Protocol, Sort};
use crate::actor::{Actor, Verdict};
use crate::board::Count;
use crate::context::{Context, mix};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

const TOKENS: usize = 1_500;
const ROOM: usize = 3;
/// How many stores there are in a round, at most.
const AT_ONCE: usize = 4;

/// A number of tokens and their sum: with random tokens, hardly equal for two different heaps of them.
#[derive(Default)]
pub(super) struct Heap {
    count: AtomicUsize,
    sum: AtomicU64,
}

impl Heap {
    pub(super) fn add(&self, token: u64) {
        self.count.fetch_add(1, Relaxed);
        self.sum.fetch_add(token, Relaxed);
    }

    pub(super) fn empty(&self) -> (usize, u64) {
        (self.count.swap(0, Relaxed), self.sum.swap(0, Relaxed))
    }
}

/// The two condition variables of a store.
struct Bells {
    not_empty: Bell,
    not_full: Bell,
}

/// A store for a few tokens.
struct Store<'a> {
    /// For one only, a signal that goes lost stops everybody.
    room: usize,
    lock: &'a Lock,
    bells: &'a Bells,
    /// Changed with the mutex held, by plain loads and stores.
    held: AtomicUsize,
    tokens: [AtomicU64; ROOM],
    given: Heap,
    taken: Heap,
}

impl Store<'_> {
    fn signal(&self, actor: &mut Actor, bell: &Bell) -> Verdict {
        if actor.leaves_out() {
            return Ok(());
        }
        actor.count(Count::Wakes, 1);
        let c11 = self.lock.sort.made == Made::C11;
        match actor.dice.u32(0..8) {
            0 => bell.broadcast(c11),
            _ => bell.signal(c11),
        }
    }

    /// Gives a token if there is one to give, else takes one.
    fn pass(&self, actor: &mut Actor, token: Option<u64>) -> Verdict {
        let (wait_for, tell, unfit) = match token {
            Some(_) => (&self.bells.not_full, &self.bells.not_empty, self.room),
            None => (&self.bells.not_empty, &self.bells.not_full, 0),
        };
        self.lock.lock(actor)?;
        while self.held.load(Relaxed) == unfit {
            let timed = actor.dice.u32(0..6) == 0;
            wait_for.wait(actor, self.lock, timed)?;
        }
        let held = self.held.load(Relaxed);
        let after = match token {
            Some(token) => {
                self.tokens[held].store(token, Relaxed);
                self.given.add(token);
                held + 1
            }
            None => {
                let token = self.tokens[held - 1].load(Relaxed);
                self.taken.add(token);
                if actor.miscounts() {
                    self.taken.add(token);
                }
                held - 1
            }
        };
        actor.dawdle();
        if self.held.load(Relaxed) != held {
            return Err("two threads have a mutex".to_owned());
        }
        self.held.store(after, Relaxed);
        actor.step();
        let with_mutex = actor.dice.bool();
        if with_mutex {
            self.signal(actor, tell)?;
        }
        self.lock.unlock()?;
        if !with_mutex {
            self.signal(actor, tell)?;
        }
        Ok(())
    }

    /// When all are gone.
    fn over(&self) -> Verdict {
        let (given, taken) = (self.given.empty(), self.taken.empty());
        if given != taken || self.held.load(Relaxed) != 0 {
            return Err(format!("tokens were given {given:?} and taken {taken:?}"));
        }
        Ok(())
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
        let mut chosen: Vec<&Lock> = locks.iter().collect();
        dice.shuffle(&mut chosen);
        let pairs = round.threads / 2;
        chosen.truncate(dice.usize(1..=AT_ONCE.min(pairs)));
        let stores: Vec<_> = chosen
            .into_iter()
            .zip(&all_bells)
            .map(|(lock, bells)| Store {
                room: dice.usize(1..=ROOM),
                lock,
                bells,
                held: AtomicUsize::new(0),
                tokens: Default::default(),
                given: Heap::default(),
                taken: Heap::default(),
            })
            .collect();
        let stores = &stores;
        let quota = (TOKENS / pairs).max(2);
        context.crew(round, |crew| {
            for pair in 0..pairs {
                // As many givers as takers of each.
                let store = &stores[pair % stores.len()];
                for gives in [true, false] {
                    let role = if gives { "giver" } else { "taker" };
                    crew.spawn(role, pair, move |actor| {
                        for number in 0..quota {
                            let token = mix((pair * quota + number) as u64);
                            store.pass(actor, gives.then_some(token))?;
                            if actor.dice.u32(0..256) == 0 {
                                actor.move_to_some_cpu();
                            }
                        }
                        Ok(())
                    });
                }
            }
            Ok(())
        })?;
        for store in stores {
            store.over()?;
            store.lock.renew()?;
        }
    }
    Ok(())
}
