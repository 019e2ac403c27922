//! Tortured: reader/writer locks of both preferences and scopes: reading, reading again, writing,
//! upgrades and downgrades, with deadlines, naps while they are held, nested, with more readers
//! than writers in one round and fewer in the next.
//!
//! Checked: no thread writes while another reads or writes, and every write is counted once. Every
//! thread that waits without a deadline ends, and does not wait for long while other threads have
//! turn after turn. No trace of the waiters is left at the end.

use super::object::Object;
use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::count::Count;
use crate::parts::books::Books;
use crate::parts::bounded;
use crate::parts::turns::{self, Locked, Turns};
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

/// A lock and what it protects.
struct Guarded {
    preference: Preference,
    object: Object<RawRwLock>,
    books: Books,
}

impl Locked for Guarded {
    type Held = Held;

    fn name(&self) -> String {
        format!("{:?} {}", self.object.scope, name_of(self.preference))
    }

    fn books(&self) -> &Books {
        &self.books
    }

    fn take(&self, actor: &mut Actor, readers: u32) -> Result<Option<Held>, String> {
        let at_once = actor.dice.u32(0..10) == 0;
        let (taken, held) = match actor.dice.u32(0..16) {
            dice if dice < readers => {
                let taken = self.call(actor, "read", at_once, |lock, deadline| match at_once {
                    true => lock.try_read(),
                    false => lock.read(0, deadline),
                });
                (taken, Held::Read)
            }
            dice if dice % 4 == 0 => {
                let taken = self.call(actor, "claim", at_once, |lock, deadline| match at_once {
                    true => lock.try_read_upgradably(),
                    false => lock.read_upgradably(deadline),
                });
                (taken, Held::Upgradable)
            }
            _ => {
                let taken = self.call(actor, "write", at_once, |lock, deadline| match at_once {
                    true => lock.try_write(0),
                    false => lock.write(0, deadline),
                });
                (taken, Held::Written)
            }
        };
        let taken = taken?;
        if taken {
            actor.holds(self.object.spot);
        }
        Ok(taken.then_some(held))
    }

    fn stay(&self, actor: &mut Actor, held: Held) -> Verdict {
        match held {
            Held::Written => self.books.change(actor),
            Held::Read | Held::Upgradable => self.books.look(actor),
        }
    }

    fn go_on(&self, actor: &mut Actor, mut held: Held) -> Result<Held, String> {
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
        Ok(held)
    }

    fn give_back(&self, actor: &mut Actor, held: Held) -> Verdict {
        if actor.leaves_out() {
            actor.keeps(self.object.spot);
        }
        actor.releases(self.object.spot);
        let fairly = actor.dice.u32(0..16) == 0;
        let lock = self.object.get();
        // SAFETY: the caller holds it in this way.
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

    fn renew(&self) -> Verdict {
        if !self.object.get().is_idle() {
            return Err(format!("not idle, though unused: {:?}", self.object.get()));
        }
        self.object
            .renew(RawRwLock::with(self.preference, self.object.scope));
        Ok(())
    }
}

fn name_of(preference: Preference) -> String {
    format!("rwlock, {preference:?}s first")
}

impl Guarded {
    fn new(context: &Context, preference: Preference, scope: Scope) -> Self {
        let lock = RawRwLock::with(preference, scope);
        Self {
            preference,
            object: Object::new(context, &name_of(preference), 64, scope, lock),
            books: Books::default(),
        }
    }

    /// Makes a call that may wait, with or without a deadline, or one that does not wait
    /// (`at_once`). Returns whether the lock could be taken. `wish` is what the call is to do.
    fn call(
        &self,
        actor: &mut Actor,
        wish: &str,
        at_once: bool,
        call: impl FnOnce(&RawRwLock, Option<&Deadline>) -> Result<(), RwLockError>,
    ) -> Result<bool, String> {
        let deadline = (actor.dice.u32(0..4) == 0).then(|| actor.tiny_deadline());
        let (lock, spot) = (self.object.get(), self.object.spot);
        // Neither readers nor writers starve, whatever the preference.
        let ended = match deadline {
            None => bounded::wait(actor, spot, wish, &self.books.turns, || call(lock, None))?,
            Some(deadline) => actor.wait_at(spot, true, || call(lock, Some(&deadline))),
        };
        match (ended, deadline) {
            (Ok(()), _) => Ok(true),
            (Err(RwLockError::TimedOut), Some(_)) if !at_once => {
                actor.count(Count::Timeouts, 1);
                Ok(false)
            }
            (Err(RwLockError::Busy), _) if at_once => Ok(false),
            (Err(error), _) => Err(format!("it was not taken: {error}")),
        }
    }

    /// Reads again while reading.
    fn read_again(&self, actor: &mut Actor) -> Verdict {
        let says_so = self.preference == Preference::Writer || actor.dice.bool();
        let taken = self.call(actor, "read again", false, |lock, deadline| match says_so {
            true => lock.read_recursive(0, deadline),
            false => lock.read(0, deadline),
        })?;
        if taken {
            self.stay(actor, Held::Read)?;
            // SAFETY: taken just now.
            unsafe { self.object.get().unlock_shared() };
        }
        Ok(())
    }

    /// Changes from one way of holding it to another.
    fn change(&self, actor: &mut Actor, held: Held) -> Result<Held, String> {
        let to_upgradable = actor.dice.bool();
        // SAFETY: the caller holds it in this way.
        let changed = unsafe {
            match held {
                Held::Read => return Ok(held),
                Held::Written if to_upgradable => {
                    let done = self.object.get().downgrade_to_upgradable_checked();
                    done.map(|()| Held::Upgradable)
                }
                Held::Written => self.object.get().downgrade_checked().map(|()| Held::Read),
                Held::Upgradable if to_upgradable => {
                    let upgraded = self.call(actor, "upgrade", false, |lock, deadline| {
                        lock.upgrade_checked(0, deadline)
                    })?;
                    return Ok(if upgraded { Held::Written } else { held });
                }
                Held::Upgradable => {
                    let done = self.object.get().downgrade_upgradable_checked();
                    done.map(|()| Held::Read)
                }
            }
        };
        changed.map_err(|error| format!("not changed: {error}"))
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
        let chosen = turns::some(&mut dice, &all, AT_ONCE);
        let turns = Turns {
            readers: [2, 10, 14, 15, 15][dice.usize(0..5)],
            ..Turns::of(round.threads, TURNS)
        };
        turns::round(context, round, turns, &chosen, &|_, _| Ok(()))?;
    }
    Ok(())
}
