//! Tortured: mutexes of every flavour, kind and scope; with deadlines, naps while they are held, levels of recursion, one
//! inside another, threads that come for one turn only, and threads that are moved from CPU to CPU.
//!
//! Checked: never two threads have a mutex, every turn that was taken is counted once, everybody who waits without a deadline
//! comes to an end, and, where that is promised, does not wait for long while others have turn after turn, owners and strangers are told apart, and nothing of the waiters is left in the end.

use super::locks::{Lock, Sort, in_time};
use crate::actor::{Actor, Verdict};
use crate::context::Context;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use waitword::{Kind, LockError};

const TURNS: usize = 6_000;
/// How many mutexes there are in a round, at most.
const AT_ONCE: usize = 5;

/// A mutex and what it protects.
struct Guarded {
    lock: Lock,
    /// Changed by plain loads and stores, one after the other: two threads in the mutex would lose turns, or see
    /// the two differ.
    pair: [AtomicU64; 2],
    /// The turns that were taken, by those who took them.
    turns: AtomicUsize,
}

impl Guarded {
    fn new(context: &Context, sort: Sort) -> Self {
        Self {
            lock: Lock::new(context, sort),
            pair: Default::default(),
            turns: AtomicUsize::new(0),
        }
    }

    /// Takes the mutex in one way or another; whether it could be had.
    fn lock(&self, actor: &mut Actor) -> Result<bool, String> {
        let mutex = self.lock.mutex();
        let spot = self.lock.spot;
        let seen = spot.word.load();
        match actor.dice.u32(0..10) {
            0 => Ok(mutex.try_lock()),
            1..4 => {
                let soon = actor.tiny_deadline();
                let locked = actor.wait_at(spot, seen, true, || mutex.lock_until(soon));
                in_time(actor, locked)
            }
            4 => {
                let locked = actor.wait_at(spot, seen, false, || mutex.lock_checked());
                in_time(actor, locked)
            }
            _ => {
                let since = (self.lock.sort.is_bounded()).then(|| actor.begins(&self.turns));
                actor.wait_at(spot, seen, false, || mutex.lock());
                if let Some(since) = since
                    && let Err(complaint) = actor.was_bounded(&since, &self.turns)
                {
                    return Err(format!("for a {}: {complaint}", self.lock.sort.name()));
                }
                Ok(true)
            }
        }
    }

    fn unlock(&self, actor: &mut Actor) {
        let mutex = self.lock.mutex();
        if actor.leaves_out() {
            // And goes nowhere: whoever finds it locked by itself would be told so, and not wait.
            let spot = self.lock.spot;
            actor.wait_at(spot, spot.word.load(), false, || {
                loop {
                    std::thread::park();
                }
            })
        }
        actor.releases(self.lock.spot);
        // SAFETY: every caller has locked it.
        unsafe {
            match actor.dice.u32(0..16) {
                0 | 1 => mutex.unlock_fair(),
                2 => {
                    mutex.bump();
                    mutex.unlock();
                }
                _ => mutex.unlock(),
            }
        }
    }

    /// With the mutex held.
    fn change(&self, actor: &mut Actor) -> Verdict {
        actor.holds(self.lock.spot);
        let [first, second] = &self.pair;
        let before = first.load(Relaxed);
        first.store(before + 1, Relaxed);
        actor.dawdle();
        if second.load(Relaxed) != before {
            return Err("two threads have a mutex".to_owned());
        }
        second.store(before + 1, Relaxed);
        let turns = if actor.miscounts() { 2 } else { 1 };
        self.turns.fetch_add(turns, Relaxed);
        actor.step();
        Ok(())
    }

    /// What its owner, and a stranger, are told. With the mutex held.
    fn ask(&self, actor: &mut Actor) -> Verdict {
        let Sort { kind, .. } = self.lock.sort;
        let mutex = self.lock.mutex();
        if kind == Kind::Recursive {
            let levels = actor.dice.usize(1..5);
            for _ in 0..levels {
                mutex
                    .lock_checked()
                    .map_err(|error| format!("not locked again: {error}"))?;
            }
            // SAFETY: locked just above.
            (0..levels).for_each(|_| unsafe { mutex.unlock() });
            return Ok(());
        }
        if self.lock.sort.has_owner() && mutex.lock_checked() != Err(LockError::Deadlock) {
            return Err("an owner was not told that it is one".to_owned());
        }
        if mutex.try_lock() || !mutex.is_locked() {
            return Err("a held mutex was free".to_owned());
        }
        Ok(())
    }

    /// By one who does not hold it.
    fn ask_as_stranger(&self) -> Verdict {
        if !self.lock.sort.has_owner() {
            return Ok(());
        }
        // SAFETY: it has an owner, and can tell.
        match unsafe { self.lock.mutex().unlock_checked() } {
            Err(LockError::NotOwner) => Ok(()),
            other => Err(format!("a stranger was not told so: {other:?}")),
        }
    }

    fn turn(&self, actor: &mut Actor, inside: Option<&Self>) -> Verdict {
        if !self.lock(actor)? {
            return Ok(());
        }
        self.change(actor)?;
        if actor.dice.u32(0..16) == 0 {
            self.ask(actor)?;
        }
        if let Some(inside) = inside {
            inside.turn(actor, None)?;
        }
        self.unlock(actor);
        if actor.dice.u32(0..16) == 0 {
            self.ask_as_stranger()?;
        }
        Ok(())
    }

    /// When all are gone.
    fn over(&self) -> Verdict {
        let turns = self.turns.swap(0, Relaxed) as u64;
        let counted = self.pair.each_ref().map(|half| half.swap(0, Relaxed));
        if counted != [turns; 2] {
            return Err(format!(
                "{turns} turns were taken, and counted: {counted:?}"
            ));
        }
        self.lock.renew()
    }
}

pub(super) fn run(context: &'static Context) -> Verdict {
    let all: Vec<_> = Sort::all()
        .map(|sort| Guarded::new(context, sort))
        .collect();
    while let Some(round) = context.next_round() {
        let mut dice = round.dice();
        // In the order in which they are taken one inside the other.
        let mut chosen: Vec<&Guarded> = all.iter().collect();
        dice.shuffle(&mut chosen);
        chosen.truncate(dice.usize(1..=AT_ONCE));
        let chosen = &chosen;
        let quota = (TURNS / round.threads).max(2);
        context.crew(round, |crew| {
            for index in 0..round.threads {
                crew.spawn("worker", index, move |actor| {
                    for turn in 0..quota {
                        let outer = actor.dice.usize(0..chosen.len());
                        let inner = actor.dice.usize(0..chosen.len() * 4);
                        let inside = (inner > outer).then(|| chosen.get(inner)).flatten();
                        chosen[outer].turn(actor, inside.copied())?;
                        if actor.dice.u32(0..64) == 0 {
                            actor.move_to_some_cpu();
                        }
                        if turn == 0 || actor.dice.u32(0..256) == 0 {
                            visit(context, actor, chosen)?;
                        }
                    }
                    Ok(())
                });
            }
            Ok(())
        })?;
        chosen.iter().try_for_each(|guarded| guarded.over())?;
    }
    Ok(())
}

/// A thread comes for one turn, and ends.
fn visit(context: &'static Context, actor: &mut Actor, chosen: &[&Guarded]) -> Verdict {
    let seed = actor.dice.u64(..);
    let visit = || {
        let mut visitor = Actor::new(context, "visitor", seed);
        let guarded = chosen[visitor.dice.usize(0..chosen.len())];
        guarded.turn(&mut visitor, None)
    };
    std::thread::scope(|scope| {
        let visitor = std::thread::Builder::new()
            .stack_size(crate::context::STACK)
            .spawn_scoped(scope, visit);
        let ended = visitor.expect("a thread").join();
        ended.unwrap_or_else(|_| Err("a visitor has panicked".to_owned()))
    })
}
