//! Tortured: reader/writer locks of both preferences and scopes: reading, reading again, writing, upgrades and downgrades, with
//! deadlines, naps while they are held, one inside another, more readers than writers in one round and fewer in the next.
//!
//! Checked: nobody writes while others read or write, every write is counted once, everybody who waits without a deadline comes
//! to an end, and nothing of the waiters is left in the end.

use crate::actor::{Actor, Verdict};
use crate::board::Count;
use crate::context::Context;
use crate::spot::{Spot, Word};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use waitword::lock_api::{RawRwLock as _, RawRwLockFair as _};
use waitword::{Deadline, Preference, RawRwLock, RwLockError, Scope};

const TURNS: usize = 8_000;
/// How many locks there are in a round, at most.
const AT_ONCE: usize = 3;

/// How the caller holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Read,
    Upgradable,
    Written,
}

/// A lock, made anew for each round at the same place, and what it protects.
struct Guarded {
    preference: Preference,
    scope: Scope,
    lock: NonNull<RawRwLock>,
    spot: Spot,
    /// Changed by plain loads and stores, one after the other: two writers would lose writes, a reader beside a writer see
    /// the two differ.
    pair: [AtomicU64; 2],
    /// The writes, by those who made them.
    writes: AtomicUsize,
}

// SAFETY: a lock is for all threads; it is made anew while nobody uses it.
unsafe impl Sync for Guarded {}
// SAFETY: as above.
unsafe impl Send for Guarded {}

impl Guarded {
    fn new(context: &Context, preference: Preference, scope: Scope) -> Self {
        let made = RawRwLock::with(preference, scope);
        let lock = NonNull::from(Box::leak(Box::new(made)));
        // SAFETY: leaked, and all of it is an atomic of 64 bits.
        let word = unsafe { Word::at(lock.as_ptr().cast(), 64) };
        let name = format!("{scope:?} rwlock, {preference:?}s first");
        Self {
            preference,
            scope,
            lock,
            spot: context.name_word(&name, word, scope),
            pair: Default::default(),
            writes: AtomicUsize::new(0),
        }
    }

    fn lock(&self) -> &RawRwLock {
        // SAFETY: never freed, and made anew only while nobody uses it.
        unsafe { self.lock.as_ref() }
    }

    /// Makes a call that may wait, with a deadline or without, or one that does not (`at_once`); whether the lock could be had.
    fn take(
        &self,
        actor: &mut Actor,
        at_once: bool,
        call: impl FnOnce(&RawRwLock, Option<&Deadline>) -> Result<(), RwLockError>,
    ) -> Result<bool, String> {
        let deadline = (actor.dice.u32(0..4) == 0).then(|| actor.tiny_deadline());
        let seen = self.spot.word.load();
        let ended = actor.wait_at(self.spot, seen, deadline.is_some(), || {
            call(self.lock(), deadline.as_ref())
        });
        if ended == Err(RwLockError::TimedOut) && deadline.is_some() {
            actor.count(Count::Timeouts, 1);
        }
        match (ended, deadline) {
            (Ok(()), _) => Ok(true),
            (Err(RwLockError::TimedOut), Some(_)) if !at_once => Ok(false),
            (Err(RwLockError::Busy), _) if at_once => Ok(false),
            (Err(error), _) => Err(format!("it was not taken: {error}")),
        }
    }

    /// Takes it in one way or another; `None`: it could not be had.
    fn enter(&self, actor: &mut Actor, readers_in_16: u32) -> Result<Option<Held>, String> {
        let at_once = actor.dice.u32(0..10) == 0;
        let (taken, held) = match actor.dice.u32(0..16) {
            dice if dice < readers_in_16 => {
                let taken = self.take(actor, at_once, |lock, deadline| match at_once {
                    true => lock.try_read(),
                    false => lock.read(0, deadline),
                });
                (taken, Held::Read)
            }
            dice if dice % 4 == 0 => {
                let taken = self.take(actor, at_once, |lock, deadline| match at_once {
                    true => lock.try_read_upgradably(),
                    false => lock.read_upgradably(deadline),
                });
                (taken, Held::Upgradable)
            }
            _ => {
                let taken = self.take(actor, at_once, |lock, deadline| match at_once {
                    true => lock.try_write(0),
                    false => lock.write(0, deadline),
                });
                (taken, Held::Written)
            }
        };
        Ok(taken?.then_some(held))
    }

    /// With the lock held: nobody writes meanwhile, and the caller does if it may.
    fn stay(&self, actor: &mut Actor, held: Held) -> Verdict {
        let [first, second] = &self.pair;
        let before = first.load(Relaxed);
        if held == Held::Written {
            first.store(before + 1, Relaxed);
            actor.dawdle();
            if second.load(Relaxed) != before {
                return Err("somebody wrote beside a writer".to_owned());
            }
            second.store(before + 1, Relaxed);
            let writes = if actor.miscounts() { 2 } else { 1 };
            self.writes.fetch_add(writes, Relaxed);
        } else {
            actor.dawdle();
            if second.load(Relaxed) != before || first.load(Relaxed) != before {
                return Err("somebody wrote beside a reader".to_owned());
            }
        }
        actor.step();
        Ok(())
    }

    /// Reads again while it reads.
    fn read_again(&self, actor: &mut Actor) -> Verdict {
        let says_so = self.preference == Preference::Writer || actor.dice.bool();
        let taken = self.take(actor, false, |lock, deadline| match says_so {
            true => lock.read_recursive(0, deadline),
            false => lock.read(0, deadline),
        })?;
        if taken {
            self.stay(actor, Held::Read)?;
            // SAFETY: taken just now.
            unsafe { self.lock().unlock_shared() };
        }
        Ok(())
    }

    /// From one way of holding it to another.
    fn change(&self, actor: &mut Actor, held: Held) -> Result<Held, String> {
        let to_upgradable = actor.dice.bool();
        // SAFETY: the caller holds it so.
        let changed = unsafe {
            match held {
                Held::Read => return Ok(held),
                Held::Written if to_upgradable => {
                    let done = self.lock().downgrade_to_upgradable_checked();
                    done.map(|()| Held::Upgradable)
                }
                Held::Written => self.lock().downgrade_checked().map(|()| Held::Read),
                Held::Upgradable if to_upgradable => {
                    let upgraded = self.take(actor, false, |lock, deadline| {
                        lock.upgrade_checked(0, deadline)
                    })?;
                    return Ok(if upgraded { Held::Written } else { held });
                }
                Held::Upgradable => {
                    let done = self.lock().downgrade_upgradable_checked();
                    done.map(|()| Held::Read)
                }
            }
        };
        changed.map_err(|error| format!("not changed: {error}"))
    }

    fn leave(&self, actor: &mut Actor, held: Held) -> Verdict {
        if actor.leaves_out() {
            // And goes nowhere: whoever finds it locked by itself would be told so, and not wait.
            actor.wait_at(self.spot, self.spot.word.load(), false, || {
                loop {
                    std::thread::park();
                }
            })
        }
        actor.releases(self.spot);
        let fairly = actor.dice.u32(0..16) == 0;
        let lock = self.lock();
        // SAFETY: the caller holds it so.
        unsafe {
            match held {
                Held::Read if fairly => lock.unlock_shared_fair(),
                Held::Read => lock.unlock_shared(),
                Held::Upgradable => {
                    let done = lock.unlock_upgradable_checked();
                    done.map_err(|error| format!("not given back: {error}"))?;
                }
                Held::Written if fairly => lock.unlock_exclusive_fair(),
                Held::Written => lock.unlock_exclusive(),
            }
        }
        Ok(())
    }

    fn turn(&self, actor: &mut Actor, readers_in_16: u32, inside: Option<&Self>) -> Verdict {
        let Some(mut held) = self.enter(actor, readers_in_16)? else {
            return Ok(());
        };
        actor.holds(self.spot);
        self.stay(actor, held)?;
        while actor.dice.u32(0..4) == 0 {
            held = self.change(actor, held)?;
            self.stay(actor, held)?;
            if held == Held::Read {
                break;
            }
        }
        if held == Held::Read && actor.dice.u32(0..16) == 0 {
            self.read_again(actor)?;
        }
        if let Some(inside) = inside {
            inside.turn(actor, readers_in_16, None)?;
        }
        self.leave(actor, held)
    }

    /// When all are gone.
    fn over(&self) -> Verdict {
        let writes = self.writes.swap(0, Relaxed) as u64;
        let counted = self.pair.each_ref().map(|half| half.swap(0, Relaxed));
        if counted != [writes; 2] {
            return Err(format!(
                "{writes} writes were made, and counted: {counted:?}"
            ));
        }
        if !self.lock().is_idle() {
            return Err(format!("a lock that nobody uses: {:?}", self.lock()));
        }
        // SAFETY: nobody uses it.
        unsafe {
            self.lock
                .write(RawRwLock::with(self.preference, self.scope))
        };
        Ok(())
    }
}

pub(super) fn run(context: &'static Context) -> Verdict {
    let preferences = [Preference::Reader, Preference::Writer];
    let all: Vec<_> = preferences
        .into_iter()
        .flat_map(|preference| {
            [Scope::Private, Scope::Private, Scope::Shared]
                .map(|scope| Guarded::new(context, preference, scope))
        })
        .collect();
    while let Some(round) = context.next_round() {
        let mut dice = round.dice();
        // In the order in which they are taken one inside the other.
        let mut chosen: Vec<&Guarded> = all.iter().collect();
        dice.shuffle(&mut chosen);
        chosen.truncate(dice.usize(1..=AT_ONCE));
        let chosen = &chosen;
        let readers_in_16 = [2, 10, 14, 15, 15][dice.usize(0..5)];
        let quota = (TURNS / round.threads).max(2);
        context.crew(round, |crew| {
            for index in 0..round.threads {
                crew.spawn("worker", index, move |actor| {
                    for _ in 0..quota {
                        let outer = actor.dice.usize(0..chosen.len());
                        let inner = actor.dice.usize(0..chosen.len() * 4);
                        let inside = (inner > outer).then(|| chosen.get(inner)).flatten();
                        chosen[outer].turn(actor, readers_in_16, inside.copied())?;
                        if actor.dice.u32(0..64) == 0 {
                            actor.move_to_some_cpu();
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
