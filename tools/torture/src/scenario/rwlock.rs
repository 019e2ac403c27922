//! Tortured: reader/writer locks of every sort: reading, reading again, writing, where they can,
//! upgrades and downgrades, with deadlines, naps while they are held, nested, with more readers
//! than writers in one round and fewer in the next.
//!
//! Checked: no thread writes while another reads or writes, and every write is counted once. Every
//! thread that waits without a deadline ends and, where that is promised, does not wait for long
//! while other threads have turn after turn. No deadline is early, a writer that locks again gets
//! an error, and no trace of the waiters is left at the end.

use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::objects::traits::{Attempt, Held, ReadWrite};
use crate::parts::books::Books;
use crate::parts::bounded::attempt;
use crate::parts::turns::{self, Locked, Turns};

const TURNS: usize = 8_000;
/// How many locks there are in a round, at most.
const AT_ONCE: usize = 3;

/// A lock and what it protects.
pub(super) struct Guarded<R> {
    pub(super) lock: R,
    pub(super) books: &'static Books,
}

impl<R: ReadWrite> Locked for Guarded<R> {
    type Held = Held;

    fn name(&self) -> String {
        self.lock.name()
    }

    fn books(&self) -> &Books {
        self.books
    }

    fn take(&self, actor: &mut Actor, readers: u32) -> Result<Option<Held>, String> {
        let (wish, held) = match actor.dice.u32(0..16) {
            dice if dice < readers => ("read", Held::Read),
            dice if R::CAN_CHANGE && dice % 4 == 0 => ("claim", Held::Upgradable),
            _ => ("write", Held::Written),
        };
        let taken = self.attempt(actor, wish, |actor, how| self.lock.take(actor, held, how))?;
        Ok(taken.then_some(held))
    }

    fn stay(&self, actor: &mut Actor, held: Held) -> Verdict {
        match held {
            Held::Written => self.books.change(actor),
            Held::Read | Held::Upgradable => self.books.look(actor),
        }
    }

    fn go_on(&self, actor: &mut Actor, mut held: Held) -> Result<Held, String> {
        while R::CAN_CHANGE && held != Held::Read && actor.dice.u32(0..4) == 0 {
            held = self.change(actor, held)?;
            self.stay(actor, held)?;
        }
        match (actor.dice.u32(0..16), held) {
            (0, Held::Written) => self.lock.check_as_writer()?,
            (0, Held::Read) if self.lock.may_read_again() => {
                let again = |actor: &mut Actor, how| self.lock.read_again(actor, how);
                if self.attempt(actor, "read again", again)? {
                    self.stay(actor, Held::Read)?;
                    self.lock.give_back(actor, Held::Read)?;
                }
            }
            _ => {}
        }
        Ok(held)
    }

    fn give_back(&self, actor: &mut Actor, held: Held) -> Verdict {
        if actor.leaves_out() {
            actor.keeps(self.lock.spot());
        }
        self.lock.give_back(actor, held)
    }

    fn renew(&self) -> Verdict {
        self.lock.renew()
    }
}

impl<R: ReadWrite> Guarded<R> {
    /// Tries to get it, with one patience or another. `wish` is what the thread wants to do.
    fn attempt(
        &self,
        actor: &mut Actor,
        wish: &str,
        call: impl FnOnce(&mut Actor, Attempt) -> Result<bool, String>,
    ) -> Result<bool, String> {
        attempt(actor, &self.books.turns, R::IS_BOUNDED, wish, call)
    }

    /// Changes from one way of holding it to another.
    fn change(&self, actor: &mut Actor, held: Held) -> Result<Held, String> {
        let wanted = match (held, actor.dice.bool()) {
            (Held::Upgradable, true) => {
                let upgrade = |actor: &mut Actor, how| self.lock.upgrade(actor, how);
                return Ok(match self.attempt(actor, "upgrade", upgrade)? {
                    true => Held::Written,
                    false => held,
                });
            }
            (Held::Written, true) => Held::Upgradable,
            _ => Held::Read,
        };
        self.lock.downgrade(held, wanted)?;
        Ok(wanted)
    }
}

pub(crate) fn run<R: ReadWrite>(context: &'static Context) -> Verdict {
    let guarded = |lock| Guarded { lock, books: Box::leak(Box::default()) };
    let all: Vec<Guarded<R>> = R::all(context)?.into_iter().map(guarded).collect();
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
