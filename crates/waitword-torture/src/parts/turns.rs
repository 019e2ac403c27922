//! Turns with locks, one inside another: what mutexes and reader/writer locks, the library's and pthread's, are put through.

use super::books::Books;
use crate::actor::{Actor, Verdict};
use crate::context::{Context, Round};

/// Something that is locked, and what it protects.
pub(crate) trait Locked: Sync {
    /// How a thread may hold it.
    type Held: Copy;

    fn name(&self) -> String;

    fn books(&self) -> &Books;

    /// Takes it in one way or another, and says so for the report; `None`: it could not be had. Of 16 who come, so many only want to
    /// read, where that is another thing.
    fn take(&self, actor: &mut Actor, readers: u32) -> Result<Option<Self::Held>, String>;

    /// With the lock held.
    fn stay(&self, actor: &mut Actor, held: Self::Held) -> Verdict;

    /// With the lock held: what else whoever holds it can do; how it is held then.
    fn go_on(&self, actor: &mut Actor, held: Self::Held) -> Result<Self::Held, String>;

    /// Whether whoever holds it may wait for another one.
    fn may_hold_another(&self) -> bool {
        true
    }

    fn give_back(&self, actor: &mut Actor, held: Self::Held) -> Verdict;

    /// By one who does not hold it: that it is told so.
    fn ask_as_stranger(&self) -> Verdict {
        Ok(())
    }

    /// When all are gone: nothing of them is left. Then it is made anew.
    fn renew(&self) -> Verdict;
}

/// Some of all locks, in the order in which they are taken one inside another.
pub(crate) fn some<'a, T>(
    dice: &mut fastrand::Rng,
    all: impl IntoIterator<Item = &'a T>,
    most: usize,
) -> Vec<&'a T> {
    let mut chosen: Vec<_> = all.into_iter().collect();
    dice.shuffle(&mut chosen);
    chosen.truncate(dice.usize(1..=most));
    chosen
}

/// How a round is to be.
#[derive(Clone, Copy)]
pub(crate) struct Turns {
    pub(crate) threads: usize,
    /// How often each takes its turn.
    pub(crate) each: usize,
    /// Of 16.
    pub(crate) readers: u32,
}

impl Turns {
    /// About so many in all.
    pub(crate) fn of(threads: usize, all: usize) -> Self {
        Self {
            threads,
            each: (all / threads).max(2),
            readers: 0,
        }
    }
}

/// A round with these locks. `before` each of its turns, which are numbered, a thread does something else.
pub(crate) fn round<T: Locked>(
    context: &'static Context,
    round: Round,
    turns: Turns,
    chosen: &[&T],
    before: &(dyn Fn(&mut Actor, usize) -> Verdict + Sync),
) -> Verdict {
    context.crew(round, |crew| {
        for index in 0..turns.threads {
            crew.spawn("worker", index, move |actor| {
                for number in 0..turns.each {
                    before(actor, number)?;
                    let outer = actor.dice.usize(0..chosen.len());
                    // One of those behind it, or none.
                    let inner = actor.dice.usize(0..chosen.len() * 4);
                    let nests = inner > outer && chosen[outer].may_hold_another();
                    let inside = chosen.get(inner).filter(|_| nests);
                    turn(actor, chosen[outer], turns.readers, inside.copied())?;
                    if actor.dice.u32(0..64) == 0 {
                        actor.move_to_some_cpu();
                    }
                }
                Ok(())
            });
        }
        Ok(())
    })?;
    chosen.iter().try_for_each(|lock| {
        let over = lock.books().settle().and_then(|()| lock.renew());
        over.map_err(|error| format!("{}: {error}", lock.name()))
    })
}

/// One turn, and inside of it one with another lock.
pub(crate) fn turn<T: Locked>(
    actor: &mut Actor,
    lock: &T,
    readers: u32,
    inside: Option<&T>,
) -> Verdict {
    let named = |error| format!("{}: {error}", lock.name());
    let Some(held) = lock.take(actor, readers).map_err(named)? else {
        return Ok(());
    };
    lock.stay(actor, held).map_err(named)?;
    let held = lock.go_on(actor, held).map_err(named)?;
    if let Some(inside) = inside {
        turn(actor, inside, readers, None)?;
    }
    lock.give_back(actor, held).map_err(named)?;
    match actor.dice.u32(0..16) {
        0 => lock.ask_as_stranger().map_err(named),
        _ => Ok(()),
    }
}
