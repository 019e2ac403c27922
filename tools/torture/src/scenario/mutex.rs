//! Tortured: mutexes of every flavour, kind and scope, with deadlines, naps while they are held,
//! recursion, nesting, threads that come for one turn only, and threads that are moved from CPU to
//! CPU.
//!
//! Checked: no two threads ever hold a mutex, and every turn is counted once. Every thread that
//! waits without a deadline ends and, where that is promised, does not wait for long while other
//! threads have turn after turn. Owners and non-owners get the right errors, and no trace of the
//! waiters is left at the end.

use super::locks::{Lock, Sort, in_time};
use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::parts::books::Books;
use crate::parts::turns::{self, Locked, Turns};
use crate::parts::{bounded, team};
use waitword::{Kind, LockError};

const TURNS: usize = 6_000;
/// How many mutexes there are in a round, at most.
const AT_ONCE: usize = 5;

/// A mutex and what it protects.
struct Guarded {
    lock: Lock,
    books: Books,
}

impl Locked for Guarded {
    type Held = ();

    fn name(&self) -> String {
        format!("{:?} {}", self.lock.sort.scope, self.lock.sort.name())
    }

    fn books(&self) -> &Books {
        &self.books
    }

    fn take(&self, actor: &mut Actor, _readers: u32) -> Result<Option<()>, String> {
        let (mutex, spot) = (self.lock.mutex(), self.lock.spot());
        let taken = match actor.dice.u32(0..10) {
            0 => mutex.try_lock(),
            1..4 => {
                let soon = actor.tiny_deadline();
                let locked = actor.wait_at(spot, true, || mutex.lock_until(soon));
                in_time(actor, locked)?
            }
            4 => {
                let locked = actor.wait_at(spot, false, || mutex.lock_checked());
                in_time(actor, locked)?
            }
            _ if self.lock.sort.is_bounded() => {
                bounded::wait(actor, spot, "lock", &self.books.turns, || mutex.lock())?;
                true
            }
            _ => {
                actor.wait_at(spot, false, || mutex.lock());
                true
            }
        };
        if taken {
            actor.holds(spot);
        }
        Ok(taken.then_some(()))
    }

    fn stay(&self, actor: &mut Actor, (): ()) -> Verdict {
        self.books.change(actor)
    }

    fn go_on(&self, actor: &mut Actor, (): ()) -> Verdict {
        match actor.dice.u32(0..16) {
            0 => self.ask(actor),
            _ => Ok(()),
        }
    }

    fn give_back(&self, actor: &mut Actor, (): ()) -> Verdict {
        let (mutex, spot) = (self.lock.mutex(), self.lock.spot());
        if actor.leaves_out() {
            actor.keeps(spot);
        }
        actor.releases(spot);
        // SAFETY: the caller has locked it.
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
        Ok(())
    }

    fn ask_as_stranger(&self) -> Verdict {
        if !self.lock.sort.has_owner() {
            return Ok(());
        }
        // SAFETY: the mutex has an owner, so the call can detect this.
        match unsafe { self.lock.mutex().unlock_checked() } {
            Err(LockError::NotOwner) => Ok(()),
            other => Err(format!("a non-owner got {other:?}")),
        }
    }

    fn renew(&self) -> Verdict {
        self.lock.renew()
    }
}

impl Guarded {
    /// Checks the answers that its owner gets. With the mutex held.
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
            return Err("a relock by the owner was not detected".to_owned());
        }
        if mutex.try_lock() || !mutex.is_locked() {
            return Err("a held mutex was free".to_owned());
        }
        Ok(())
    }
}

pub(super) fn run(context: &'static Context) -> Verdict {
    let all: Vec<_> = Sort::all()
        .map(|sort| Guarded {
            lock: Lock::new(context, sort),
            books: Books::default(),
        })
        .collect();
    while let Some(round) = context.next_round() {
        let chosen = turns::some(&mut round.dice(), &all, AT_ONCE);
        // Now and then a thread comes for one turn, and ends.
        let visit = |actor: &mut Actor, number| match number == 0 || actor.dice.u32(0..256) == 0 {
            false => Ok(()),
            true => team::visit(actor, |visitor| {
                let one = chosen[visitor.dice.usize(0..chosen.len())];
                turns::turn(visitor, one, 0, None)
            }),
        };
        turns::round(
            context,
            round,
            Turns::of(round.threads, TURNS),
            &chosen,
            &visit,
        )?;
    }
    Ok(())
}
