//! Tortured: wake_op, as glibc's condition variables used it from 2005 to 2016: one call wakes a
//! waiter of the condition, unlocks the lock word, and wakes a waiter of the lock if it was
//! contended.
//!
//! Checked: all threads end; no two threads ever hold the lock; the sums that wake_op returns,
//! together with plain wakes, are exactly the waits that returned Ok.

use super::condvar::Mutex;
use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::spot::{How, SIZES, Spot};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use waitword::{Cmp, Error, Op};

const ITEMS: usize = 8_000;

struct Queue {
    lock: Mutex,
    /// Counts the signals.
    condition: Spot,
    /// Changed by a plain load and a plain store, under the lock.
    items: AtomicU64,
}

impl Queue {
    fn put(&self, actor: &mut Actor) -> Verdict {
        self.lock.lock(actor)?;
        let items = self.items.load(Relaxed);
        actor.dawdle();
        self.items.store(items + 1, Relaxed);
        actor.step();
        self.condition.word.add(1);
        if actor.dice.u32(0..8) == 0 {
            // Without wake_op: a plain wake, and then an unlock.
            actor.wake(self.condition, 1, u64::MAX)?;
            return self.lock.unlock(actor);
        }
        let unlock = (Op::Set, 0);
        let contended = Some((Cmp::Gt, 1));
        actor.wake_op((self.condition, 1), (self.lock.0, 1), unlock, contended)?;
        Ok(())
    }

    fn get(&self, actor: &mut Actor) -> Verdict {
        self.lock.lock(actor)?;
        while self.items.load(Relaxed) == 0 {
            let seen = self.condition.word.load();
            self.lock.unlock(actor)?;
            match actor.wait(self.condition, seen, How::ALWAYS) {
                Ok(()) | Err(Error::Mismatch) => {}
                Err(error) => return Err(format!("a wait failed: {error}")),
            }
            self.lock.lock(actor)?;
        }
        let items = self.items.load(Relaxed);
        self.items.store(items - 1, Relaxed);
        actor.step();
        self.lock.unlock(actor)
    }
}

pub(crate) fn run(context: &'static Context) -> Verdict {
    let mut queues = Vec::new();
    let locks = context.colliding_words("lock", &SIZES);
    // A condition in the bucket of its lock, and one apart; wide enough not to wrap around.
    let near = context.colliding_words("condition", &[32, 64]);
    let far = [32, 64].map(|bits| context.private_word("condition apart", bits));
    for (lock, condition) in locks.into_iter().zip(near.into_iter().chain(far)) {
        queues.push(Queue { lock: Mutex(lock), condition, items: AtomicU64::new(0) });
    }
    let queues = &queues;
    while let Some(round) = context.next_round() {
        let before = context.totals();
        let pairs = round.threads / 2;
        let quota = (ITEMS / pairs).max(1);
        context.crew(round, |crew| {
            for pair in 0..pairs {
                let queue = &queues[pair % queues.len()];
                crew.spawn("putter", pair, move |actor| {
                    (0..quota).try_for_each(|_| queue.put(actor))
                });
                crew.spawn("getter", pair, move |actor| {
                    (0..quota).try_for_each(|_| queue.get(actor))
                });
            }
            Ok(())
        })?;
        if queues.iter().any(|queue| queue.items.load(Relaxed) != 0) {
            return Err("items were lost: two threads had the lock".to_owned());
        }
        context.balance(&before)?;
    }
    Ok(())
}
