//! Turns with locks, one nested in another. They test mutexes and reader/writer locks, the
//! library's and pthread's.

use super::books::Books;
use crate::actor::{Actor, Verdict};
use crate::context::{Context, Round};

/// Something that can be locked, and what it protects.
pub(crate) trait Locked: Sync {
    /// How a thread may hold it.
    type Held: Copy;

    fn name(&self) -> String;

    fn books(&self) -> &Books;

    /// Takes it in one way or another, and records that for the report. `None`: it could not be
    /// taken. `readers` of 16 threads only want to read, where that makes a difference.
    fn take(&self, actor: &mut Actor, readers: u32) -> Result<Option<Self::Held>, String>;

    /// With the lock held.
    fn stay(&self, actor: &mut Actor, held: Self::Held) -> Verdict;

    /// With the lock held: something else that a holder can do. Returns how the lock is held
    /// afterwards.
    fn go_on(&self, actor: &mut Actor, held: Self::Held) -> Result<Self::Held, String>;

    /// Whether a holder may wait for another lock.
    fn may_hold_another(&self) -> bool {
        true
    }

    fn give_back(&self, actor: &mut Actor, held: Self::Held) -> Verdict;

    /// Called by a thread that does not hold it: checks that it gets an error.
    fn check_as_non_owner(&self) -> Verdict {
        Ok(())
    }

    /// After all threads have ended: checks that no trace of them is left. Then the lock is made
    /// again.
    fn renew(&self) -> Verdict;
}

/// Some of the locks, in the order in which they are nested.
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

/// What a round is like.
#[derive(Clone, Copy)]
pub(crate) struct Turns {
    pub(crate) threads: usize,
    /// How many turns each thread takes.
    pub(crate) each: usize,
    /// Out of 16.
    pub(crate) readers: u32,
}

impl Turns {
    /// About `all` turns in total.
    pub(crate) fn of(threads: usize, all: usize) -> Self {
        Self { threads, each: (all / threads).max(2), readers: 0 }
    }
}

/// Runs a round with these locks. Before each of its turns, which are numbered, a thread calls
/// `before`.
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
                    // One of the locks after it, or none.
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

/// One turn, and inside it one with another lock.
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
        0 => lock.check_as_non_owner().map_err(named),
        _ => Ok(()),
    }
}
