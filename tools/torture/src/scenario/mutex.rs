//! Tortured: mutexes of every sort, and spin locks, with deadlines, naps while they are held,
//! recursion, nesting, threads that come for one turn only, and threads that are moved from CPU to
//! CPU. Where a sort needs real-time threads, now and then all threads are.
//!
//! Checked: no two threads ever hold a lock, and every turn is counted once. Every thread that
//! waits without a deadline ends and, where that is promised, does not wait for long while other
//! threads have turn after turn. No deadline is early. Owners and non-owners get the right errors,
//! and no trace of the waiters is left at the end.

use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::objects::pthread::real_time;
use crate::objects::traits::{Attempt, Lock};
use crate::parts::books::Books;
use crate::parts::bounded::attempt;
use crate::parts::team;
use crate::parts::turns::{self, Locked, Turns};

const TURNS: usize = 6_000;
/// How many locks there are in a round, at most.
const AT_ONCE: usize = 5;
/// How many threads may be real-time ones. They leave little CPU time to other programs.
const MOST_REAL_TIME: usize = 16;

/// A lock and what it protects.
pub(super) struct Guarded<L> {
    pub(super) lock: L,
    pub(super) books: &'static Books,
}

impl<L: Lock> Locked for Guarded<L> {
    type Held = ();

    fn name(&self) -> String {
        self.lock.name()
    }

    fn books(&self) -> &Books {
        self.books
    }

    fn take(&self, actor: &mut Actor, _readers: u32) -> Result<Option<()>, String> {
        let (turns, is_promised) = (&self.books.turns, self.lock.is_bounded());
        let take = |actor: &mut Actor, attempt| self.lock.take(actor, attempt);
        let taken = attempt(actor, turns, is_promised, "lock", take)?;
        Ok(taken.then_some(()))
    }

    fn stay(&self, actor: &mut Actor, (): ()) -> Verdict {
        match self.lock.is_spin_lock() {
            true => self.books.change_while(actor, |_| std::hint::spin_loop()),
            false => self.books.change(actor),
        }
    }

    fn go_on(&self, actor: &mut Actor, (): ()) -> Verdict {
        match actor.dice.u32(0..16) {
            0 if self.lock.is_recursive() => self.lock_again(actor),
            0 => self.lock.check_as_owner(),
            _ => Ok(()),
        }
    }

    fn may_hold_another(&self) -> bool {
        !self.lock.is_spin_lock()
    }

    fn give_back(&self, actor: &mut Actor, (): ()) -> Verdict {
        if actor.leaves_out() {
            actor.keeps(self.lock.spot());
        }
        self.lock.give_back(actor)
    }

    fn check_as_non_owner(&self) -> Verdict {
        self.lock.check_as_non_owner()
    }

    fn renew(&self) -> Verdict {
        self.lock.renew()
    }
}

impl<L: Lock> Guarded<L> {
    /// With the lock held, which is recursive.
    fn lock_again(&self, actor: &mut Actor) -> Verdict {
        let levels = actor.dice.usize(1..5);
        for level in 0..levels {
            let attempt = [Attempt::Patient, Attempt::Try][level % 2];
            if !self.lock.take(actor, attempt)? {
                return Err("an owner could not lock a recursive one again".to_owned());
            }
        }
        (0..levels).try_for_each(|_| self.lock.give_back(actor))
    }
}

pub(crate) fn run<L: Lock>(context: &'static Context) -> Verdict {
    let guarded = |lock| Guarded { lock, books: Box::leak(Box::default()) };
    let all: Vec<Guarded<L>> = L::all(context)?.into_iter().map(guarded).collect();
    let real_time_allowed =
        all.iter().any(|one| one.lock.needs_real_time()) && real_time::is_allowed();
    while let Some(round) = context.next_round() {
        let mut dice = round.dice();
        let real_time = dice.u32(0..8) == 0 && real_time_allowed;
        // A real-time thread that spins for a holder that has lost its CPU does so for its whole
        // time slice.
        let fits = |one: &&Guarded<L>| match real_time {
            true => !one.lock.is_spin_lock(),
            false => !one.lock.needs_real_time(),
        };
        let mut chosen = turns::some(&mut dice, all.iter().filter(fits), AT_ONCE);
        // A thread that holds a spin lock must not wait for another lock.
        chosen.sort_by_key(|one| one.lock.is_spin_lock());
        let chosen = &chosen;
        let threads = match real_time {
            true => round.threads.min(MOST_REAL_TIME),
            false => round.threads,
        };
        let before = |actor: &mut Actor, number| {
            if number == 0 {
                return match real_time {
                    true => real_time::become_one(),
                    false => Ok(()),
                };
            }
            // Now and then a thread comes for one turn, and ends.
            match actor.dice.u32(0..256) {
                0 => team::visit(actor, |visitor| {
                    let one = chosen[visitor.dice.usize(0..chosen.len())];
                    turns::turn(visitor, one, 0, None)
                }),
                _ => Ok(()),
            }
        };
        let turns = Turns::of(threads, TURNS);
        turns::round(context, round, turns, chosen, &before)?;
    }
    Ok(())
}
