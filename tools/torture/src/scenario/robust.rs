//! Tortured: robust mutexes of every sort whose holders die. In every other round these are threads
//! that end with the mutex held, by returning or by exiting; in the other rounds, where the mutexes
//! are shared, processes that are killed anywhere. Condition variables wait with such mutexes.
//!
//! Checked: no two threads ever hold a mutex, even while one dies. What a dead holder left half
//! done is always announced: a locker that gets a clean mutex finds the data whole. Each thread's
//! death is announced once, and no turn is lost. All threads end.

use crate::actor::{Actor, Verdict};
use crate::context::{Context, Round};
use crate::count::Count;
use crate::memory::shared_memory;
use crate::objects::pthread::bare::Bare;
use crate::objects::traits::{Attempt, Found, Robust};
use crate::parts::books::Pair;
use crate::parts::team::{self, Killing};
use crate::parts::turns;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const TURNS: usize = 3_000;
const MOST_THREADS: usize = 64;
/// How many mutexes there are in a round, at most.
const AT_ONCE: usize = 3;
const PROCESSES: usize = 3;
const KILLS: usize = 10;

/// What a mutex protects, in shared memory.
#[derive(Default)]
#[repr(C)]
struct Books {
    pair: Pair,
    /// Turns, counted by the threads that took them.
    turns: AtomicU64,
    /// Holders that died, counted by themselves just before; and deaths that were announced to a
    /// locker.
    deaths: AtomicU64,
    announced: AtomicU64,
}

struct Guarded<R> {
    mutex: R,
    books: &'static Books,
}

pub(crate) fn run<R: Robust>(context: &'static Context) -> Verdict {
    let guarded = |mutex| Guarded {
        mutex,
        // SAFETY: zeroed, aligned, large enough, never unmapped; zeros are empty books.
        books: unsafe { &*shared_memory(size_of::<Books>()).cast() },
    };
    let all: Vec<Guarded<R>> = R::all(context)?.into_iter().map(guarded).collect();
    let all: &'static [Guarded<R>] = all.leak();
    while let Some(round) = context.next_round() {
        let kills = if round.number % 2 == 0 { 0 } else { KILLS };
        let fitting = (all.iter()).filter(|guarded| kills == 0 || guarded.mutex.is_shared());
        let chosen = turns::some(&mut round.dice(), fitting, AT_ONCE);
        let threads = round.threads.min(MOST_THREADS);
        match kills {
            0 => by_threads(context, round, &chosen, threads)?,
            _ => by_processes(context, round, &chosen, threads.div_ceil(4))?,
        }
        let mut master = Actor::new(context, "master", round.seed_of("master", 0));
        for guarded in chosen {
            let over = guarded.over(&mut master, kills);
            over.map_err(|error| format!("{}: {error}", guarded.mutex.name()))?;
        }
    }
    Ok(())
}

/// Threads that take turns. Some send another thread, which dies.
fn by_threads<R: Robust>(
    context: &'static Context,
    round: Round,
    chosen: &[&'static Guarded<R>],
    threads: usize,
) -> Verdict {
    let quota = (TURNS / threads).max(2);
    context.crew(round, |crew| {
        for index in 0..threads {
            crew.spawn("worker", index, move |actor| {
                for _ in 0..quota {
                    let guarded = chosen[actor.dice.usize(0..chosen.len())];
                    guarded.turn(actor, Turn::Whole)?;
                    if actor.dice.u32(0..24) == 0 {
                        let seed = actor.dice.u64(..);
                        Bare::start(context, "mortal", seed, die, guarded)?.join()?;
                    }
                }
                Ok(())
            });
        }
        Ok(())
    })
}

/// Takes a turn, and ends in the middle of it. Nothing in the frames of this thread needs to be
/// dropped.
fn die<R: Robust>(actor: &mut Actor, guarded: &'static Guarded<R>) -> Verdict {
    guarded.turn(actor, Turn::Last)?;
    if actor.dice.bool() {
        // SAFETY: as above.
        unsafe { libc::pthread_exit(std::ptr::null_mut()) };
    }
    Ok(())
}

/// Processes that take turns until they are killed.
fn by_processes<R: Robust>(
    context: &'static Context,
    round: Round,
    chosen: &[&'static Guarded<R>],
    threads: usize,
) -> Verdict {
    let work = |process: usize| {
        context.crew(round, |crew| {
            for index in 0..threads {
                crew.spawn("worker", process * threads + index, move |actor| {
                    loop {
                        chosen[actor.dice.usize(0..chosen.len())].turn(actor, Turn::Killed)?;
                    }
                });
            }
            Ok(())
        })
    };
    let mut killer = Actor::new(context, "killer", round.seed_of("killer", 0));
    let killing = Killing { processes: PROCESSES, kills: KILLS, pause: 5_000, steps: 20 };
    let left = killing.run(context, &mut killer, &work, &mut |_| {
        (chosen.iter()).for_each(|guarded| guarded.mutex.after_kill());
        Ok(())
    })?;
    (left.into_iter()).try_for_each(|process| team::kill(context, &killer, process))
}

/// What becomes of the thread that takes a turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// It gives the mutex back.
    Whole,
    /// It dies with the mutex held.
    Last,
    /// It may be killed. A thread that dies in a condition variable may leave that locked forever,
    /// so it does not wait there.
    Killed,
}

impl<R: Robust> Guarded<R> {
    fn turn(&self, actor: &mut Actor, turn: Turn) -> Verdict {
        let attempt = match actor.dice.u32(0..8) {
            0 => Attempt::Try,
            1 | 2 => Attempt::Timed,
            _ => Attempt::Patient,
        };
        let Some(found) = self.mutex.lock(actor, attempt)? else {
            return Ok(());
        };
        if actor.leaves_out() {
            actor.keeps(self.mutex.spot());
        }
        self.enter(actor, found)?;
        if turn == Turn::Whole && actor.dice.u32(0..8) == 0 {
            let found = self.mutex.wait(actor)?;
            self.enter(actor, found)?;
        }
        let pair = &self.books.pair;
        let before = pair.begin();
        actor.dawdle();
        let half_done = turn == Turn::Last && actor.dice.bool();
        if !half_done && !pair.end(before) {
            return Err("two threads hold a mutex".to_owned());
        }
        let turns = if actor.miscounts() { 2 } else { 1 };
        self.books.turns.fetch_add(turns, Relaxed);
        actor.step();
        if turn == Turn::Last {
            self.books.deaths.fetch_add(1, Relaxed);
            return Ok(());
        }
        if self.mutex.is_recursive() && actor.dice.u32(0..8) == 0 {
            let again = self.mutex.lock(actor, Attempt::Patient)?;
            if again != Some(Found::Clean) {
                return Err(format!("not locked again: {again:?}"));
            }
            self.mutex.unlock(actor)?;
        }
        self.mutex.unlock(actor)?;
        match turn {
            Turn::Whole => self.mutex.signal(actor),
            _ => Ok(()),
        }
    }

    /// With the mutex held: checks what the previous holder left.
    fn enter(&self, actor: &Actor, found: Found) -> Verdict {
        let pair = &self.books.pair;
        match found {
            Found::Clean if pair.is_whole() => Ok(()),
            Found::Clean => {
                let [first, second] = pair.halves();
                Err(format!("no death was announced, but the data are {first} and {second}"))
            }
            Found::OwnerDied => {
                pair.mend();
                self.books.announced.fetch_add(1, Relaxed);
                actor.count(Count::Deaths, 1);
                self.mutex.make_consistent()
            }
        }
    }

    /// After all threads have ended.
    fn over(&self, master: &mut Actor, kills: usize) -> Verdict {
        let locked = self.mutex.lock(master, Attempt::Patient)?;
        self.enter(master, locked.ok_or("not locked in the end")?)?;
        self.mutex.unlock(master)?;
        let books = self.books;
        let counted = books.pair.empty();
        let turns = books.turns.swap(0, Relaxed);
        let (deaths, announced) = (books.deaths.swap(0, Relaxed), books.announced.swap(0, Relaxed));
        self.mutex.renew()?;
        // A killed thread may or may not have counted its turn; for all others the counts agree.
        let most = (kills + PROCESSES * kills.min(1)) as u64;
        if counted[0] != counted[1] || counted[0].abs_diff(turns) > most {
            return Err(format!("{turns} turns were taken, counted: {counted:?}"));
        }
        if announced < deaths || announced > deaths + most {
            return Err(format!("{deaths} holders died, {announced} were announced"));
        }
        Ok(())
    }
}
