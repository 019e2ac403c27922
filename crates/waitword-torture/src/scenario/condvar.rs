//! Tortured: cmp_requeue as condition variables use it: a broadcast wakes one at most and moves the others
//! onto the mutex, whose unlocks wake them one by one; waits with deadlines among them.
//!
//! Checked: producers and consumers come to their end (each signal and each hand-over arrives), what was
//! produced was consumed, never two threads have the mutex, counts are exact.

use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::spot::{How, SIZES, Spot};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use waitword::Error;

const ITEMS: usize = 6_000;
const ROOM: u64 = 3;

/// The second mutex of Drepper's "Futexes are tricky": 0 free, 1 locked, 2 locked and contended.
#[derive(Clone, Copy)]
pub(super) struct Mutex(pub(super) Spot);

impl Mutex {
    pub(super) fn lock(self, actor: &Actor) -> Verdict {
        if self.0.word.replace(0, 1) {
            return Ok(());
        }
        self.lock_contended(actor)
    }

    /// For those who have waited, or may have others behind them.
    pub(super) fn lock_contended(self, actor: &Actor) -> Verdict {
        while self.0.word.swap(2) != 0 {
            match actor.wait(self.0, 2, How::ALWAYS) {
                Ok(()) | Err(Error::Mismatch) => {}
                Err(error) => return Err(format!("a wait for a mutex has failed: {error}")),
            }
        }
        Ok(())
    }

    pub(super) fn unlock(self, actor: &mut Actor) -> Verdict {
        if self.0.word.swap(0) == 2 {
            actor.wake(self.0, 1, u64::MAX)?;
        }
        Ok(())
    }
}

/// A condition variable that counts its signals in its word, always with the same mutex.
#[derive(Clone, Copy)]
struct Condvar {
    signals: Spot,
    mutex: Mutex,
}

impl Condvar {
    fn wait(self, actor: &mut Actor) -> Verdict {
        let seen = self.signals.word.load();
        self.mutex.unlock(actor)?;
        let how = match actor.dice.u32(0..6) {
            0 => How::until(actor.tiny_deadline()),
            _ => How::ALWAYS,
        };
        match actor.wait(self.signals, seen, how) {
            Ok(()) | Err(Error::Mismatch | Error::TimedOut) => {}
            Err(error) => return Err(format!("a wait for a condition has failed: {error}")),
        }
        // Whoever was moved onto the mutex has others behind it.
        self.mutex.lock_contended(actor)
    }

    /// With the mutex held.
    fn signal(self, actor: &mut Actor) -> Verdict {
        self.signals.word.add(1);
        actor.wake(self.signals, 1, u64::MAX)?;
        Ok(())
    }

    /// With the mutex held: nobody needs to wake up before it is unlocked.
    fn broadcast_locked(self, actor: &mut Actor) -> Verdict {
        let now = self.signals.word.add(1) + 1;
        self.mutex.0.word.store(2);
        match actor.requeue(self.signals, Some(now), self.mutex.0, (0, usize::MAX))? {
            Some(_) => Ok(()),
            None => self.wake_all(actor),
        }
    }

    /// Without the mutex.
    fn broadcast_unlocked(self, actor: &mut Actor) -> Verdict {
        let now = self.signals.word.add(1) + 1;
        match actor.requeue(self.signals, Some(now), self.mutex.0, (1, usize::MAX))? {
            Some(_) => Ok(()),
            // Another signal came in between.
            None => self.wake_all(actor),
        }
    }

    fn wake_all(self, actor: &mut Actor) -> Verdict {
        actor.wake(self.signals, usize::MAX, u64::MAX)?;
        Ok(())
    }
}

/// A bounded store of items.
struct Store {
    mutex: Mutex,
    not_empty: Condvar,
    not_full: Condvar,
    /// Changed by a plain load and a plain store: two threads in the mutex would lose items.
    items: AtomicU64,
}

impl Store {
    fn new(context: &Context, mutex: Spot, bits: u32) -> Self {
        let mutex = Mutex(mutex);
        let condvar = |name| Condvar {
            signals: context.private_word(name, bits),
            mutex,
        };
        Self {
            mutex,
            not_empty: condvar("not empty"),
            not_full: condvar("not full"),
            items: AtomicU64::new(0),
        }
    }

    /// Adds an item if `adding`, or takes one.
    fn change(&self, actor: &mut Actor, adding: bool) -> Verdict {
        let (wait_for, tell, unfit) = if adding {
            (self.not_full, self.not_empty, ROOM)
        } else {
            (self.not_empty, self.not_full, 0)
        };
        self.mutex.lock(actor)?;
        while self.items.load(Relaxed) == unfit {
            wait_for.wait(actor)?;
        }
        let items = self.items.load(Relaxed);
        actor.dawdle();
        self.items
            .store(if adding { items + 1 } else { items - 1 }, Relaxed);
        actor.step();
        match actor.dice.u32(0..6) {
            0 => {
                tell.broadcast_locked(actor)?;
                self.mutex.unlock(actor)
            }
            1 => {
                self.mutex.unlock(actor)?;
                tell.broadcast_unlocked(actor)
            }
            _ => {
                tell.signal(actor)?;
                self.mutex.unlock(actor)
            }
        }
    }
}

pub(super) fn run(context: &'static Context) -> Verdict {
    let mut stores = Vec::new();
    for (index, mutex) in context
        .colliding_words("mutex", &SIZES)
        .into_iter()
        .enumerate()
    {
        // 32 and 64 bits: a narrower counter comes round while somebody is about to wait.
        stores.push(Store::new(context, mutex, [32, 64][index % 2]));
    }
    let stores = &stores;
    while let Some(round) = context.next_round() {
        let before = context.totals();
        // As many producers as consumers in each store.
        let pairs = round.threads / 2;
        let quota = (ITEMS / pairs).max(1);
        context.crew(round, |crew| {
            for pair in 0..pairs {
                let store = &stores[pair % stores.len()];
                for (role, adding) in [("producer", true), ("consumer", false)] {
                    crew.spawn(role, pair, move |actor| {
                        (0..quota).try_for_each(|_| store.change(actor, adding))
                    });
                }
            }
            Ok(())
        })?;
        if stores.iter().any(|store| store.items.load(Relaxed) != 0) {
            return Err("items were lost: two threads had the mutex".to_owned());
        }
        context.balance(&before)?;
    }
    Ok(())
}
