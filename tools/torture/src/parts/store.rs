//! A small store for tokens, whose givers and takers wait for each other. It tests condition
//! variables.

use crate::actor::{Actor, Verdict};
use crate::crew::Crew;
use crate::seed::mix;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The most tokens that fit into a store.
pub(crate) const ROOM: usize = 3;

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    NotEmpty,
    NotFull,
}

/// A mutex and two condition variables, as one thread uses them.
pub(crate) trait Monitor {
    fn lock(&self, actor: &mut Actor) -> Verdict;

    fn unlock(&self, actor: &mut Actor) -> Verdict;

    /// With the mutex held: one wait, which may end spuriously.
    fn wait(&self, actor: &mut Actor, what: Condition) -> Verdict;

    /// Whether the next signal is given with the mutex held.
    fn signals_inside(&self, actor: &mut Actor) -> bool {
        actor.dice.bool()
    }

    fn signal(&self, actor: &mut Actor, what: Condition, inside: bool) -> Verdict;

    /// Something else to do between two visits to the store.
    fn look_around(&self, _actor: &mut Actor) -> Verdict {
        Ok(())
    }
}

/// A number of tokens and their sum. As tokens are random, two different sets hardly ever agree in
/// both.
#[derive(Debug, Default)]
#[repr(C)]
struct Heap {
    count: AtomicUsize,
    sum: AtomicU64,
}

impl Heap {
    fn add(&self, token: u64) {
        self.count.fetch_add(1, Relaxed);
        self.sum.fetch_add(token, Relaxed);
    }

    fn empty(&self) -> (usize, u64) {
        (self.count.swap(0, Relaxed), self.sum.swap(0, Relaxed))
    }
}

/// See the module documentation. It may lie in shared memory.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Store {
    /// With room for only one token, a lost signal stops all threads.
    room: usize,
    /// Changed with the mutex held, by plain loads and stores.
    held: AtomicUsize,
    tokens: [AtomicU64; ROOM],
    given: Heap,
    taken: Heap,
}

impl Store {
    pub(crate) fn new(room: usize) -> Self {
        Self {
            room,
            held: AtomicUsize::new(0),
            tokens: Default::default(),
            given: Heap::default(),
            taken: Heap::default(),
        }
    }

    /// Gives `token` if there is one, else takes a token.
    pub(crate) fn pass(
        &self,
        actor: &mut Actor,
        monitor: &impl Monitor,
        token: Option<u64>,
    ) -> Verdict {
        let (wait_for, to_signal, blocked) = match token {
            Some(_) => (Condition::NotFull, Condition::NotEmpty, self.room),
            None => (Condition::NotEmpty, Condition::NotFull, 0),
        };
        monitor.lock(actor)?;
        while self.held.load(Relaxed) == blocked {
            monitor.wait(actor, wait_for)?;
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
            return Err("two threads hold the mutex of a store".to_owned());
        }
        self.held.store(after, Relaxed);
        actor.step();
        let inside = monitor.signals_inside(actor);
        if inside {
            monitor.signal(actor, to_signal, true)?;
        }
        monitor.unlock(actor)?;
        if !inside {
            monitor.signal(actor, to_signal, false)?;
        }
        Ok(())
    }

    /// After all threads have ended: checks that the tokens given are the tokens taken.
    pub(crate) fn settle(&self) -> Verdict {
        let (given, taken) = (self.given.empty(), self.taken.empty());
        if given != taken || self.held.load(Relaxed) != 0 {
            return Err(format!("tokens given: {given:?}, tokens taken: {taken:?}"));
        }
        Ok(())
    }
}

/// Hires pairs of givers and takers, each for `quota` tokens. `place` returns the store and the
/// monitor that a pair uses. Each thread that ends is subtracted from `left`.
pub(crate) fn hire<'scope, M: Monitor + Copy + Send + 'scope>(
    crew: &mut Crew<'scope, '_>,
    pairs: usize,
    quota: usize,
    left: &'scope AtomicUsize,
    place: impl Fn(usize) -> (&'scope Store, M),
) {
    for pair in 0..pairs {
        let (store, monitor) = place(pair);
        for gives in [true, false] {
            let role = if gives { "giver" } else { "taker" };
            let visit = move |actor: &mut Actor, number| {
                let token = mix((pair * quota + number) as u64);
                store.pass(actor, &monitor, gives.then_some(token))?;
                if actor.dice.u32(0..256) == 0 {
                    actor.move_to_some_cpu();
                }
                monitor.look_around(actor)
            };
            crew.spawn(role, pair, move |actor| {
                let ended = (0..quota).try_for_each(|number| visit(actor, number));
                left.fetch_sub(1, Relaxed);
                ended
            });
        }
    }
}
