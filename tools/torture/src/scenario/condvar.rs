//! Tortured: cmp_requeue as condition variables use it. A broadcast wakes at most one waiter and
//! moves the others onto the mutex, whose unlocks wake them one by one. Some waits have deadlines.
//!
//! Checked: givers and takers end (each signal and each hand-off arrives), every token arrives
//! once, no two threads ever hold the mutex, counts are exact.

use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::parts::store::{self, Condition, Monitor, ROOM, Store};
use crate::spot::{How, SIZES, Spot};
use std::sync::atomic::AtomicUsize;
use waitword::Error;

const TOKENS: usize = 6_000;

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

    /// For a thread that has waited, or may have waiters behind it.
    pub(super) fn lock_contended(self, actor: &Actor) -> Verdict {
        while self.0.word.swap(2) != 0 {
            match actor.wait(self.0, 2, How::ALWAYS) {
                Ok(()) | Err(Error::Mismatch) => {}
                Err(error) => return Err(format!("a wait for a mutex failed: {error}")),
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
            Err(error) => return Err(format!("a wait for a condition failed: {error}")),
        }
        // A thread that was moved onto the mutex may have others behind it.
        self.mutex.lock_contended(actor)
    }

    /// With the mutex held.
    fn signal(self, actor: &mut Actor) -> Verdict {
        self.signals.word.add(1);
        actor.wake(self.signals, 1, u64::MAX)?;
        Ok(())
    }

    /// With the mutex held: no waiter needs to wake up before it is unlocked.
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

/// A mutex with two condition variables.
struct Place {
    mutex: Mutex,
    not_empty: Condvar,
    not_full: Condvar,
    store: Store,
}

impl Place {
    fn new(context: &Context, mutex: Spot, bits: u32) -> Self {
        let mutex = Mutex(mutex);
        let condvar = |name| Condvar { signals: context.private_word(name, bits), mutex };
        Self {
            mutex,
            not_empty: condvar("not empty"),
            not_full: condvar("not full"),
            store: Store::new(ROOM),
        }
    }

    fn condvar(&self, what: Condition) -> Condvar {
        match what {
            Condition::NotEmpty => self.not_empty,
            Condition::NotFull => self.not_full,
        }
    }
}

impl Monitor for &Place {
    fn lock(&self, actor: &mut Actor) -> Verdict {
        self.mutex.lock(actor)
    }

    fn unlock(&self, actor: &mut Actor) -> Verdict {
        self.mutex.unlock(actor)
    }

    fn wait(&self, actor: &mut Actor, what: Condition) -> Verdict {
        self.condvar(what).wait(actor)
    }

    fn signals_inside(&self, actor: &mut Actor) -> bool {
        actor.dice.u32(0..6) > 0
    }

    fn signal(&self, actor: &mut Actor, what: Condition, inside: bool) -> Verdict {
        let condvar = self.condvar(what);
        match inside {
            false => condvar.broadcast_unlocked(actor),
            true if actor.dice.u32(0..5) == 0 => condvar.broadcast_locked(actor),
            true => condvar.signal(actor),
        }
    }
}

pub(crate) fn run(context: &'static Context) -> Verdict {
    let mut places = Vec::new();
    let mutexes = context.colliding_words("mutex", &SIZES);
    for (index, mutex) in mutexes.into_iter().enumerate() {
        // 32 and 64 bits: a narrower counter wraps around while a thread is about to wait.
        places.push(Place::new(context, mutex, [32, 64][index % 2]));
    }
    let places = &places;
    while let Some(round) = context.next_round() {
        let before = context.totals();
        let pairs = round.threads / 2;
        let quota = (TOKENS / pairs).max(1);
        let left = &AtomicUsize::new(pairs * 2);
        context.crew(round, |crew| {
            store::hire(crew, pairs, quota, left, |pair| {
                let place = &places[pair % places.len()];
                (&place.store, place)
            });
            Ok(())
        })?;
        places.iter().try_for_each(|place| place.store.settle())?;
        context.balance(&before)?;
    }
    Ok(())
}
