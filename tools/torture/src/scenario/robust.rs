//! Tortured: robust mutexes of every kind, with and without priority inheritance, whose holders
//! die. In every other round these are threads that end with the mutex held; in the other rounds,
//! processes that are killed anywhere.
//!
//! Checked: no two threads ever hold a mutex, even while one dies. What a dead holder left half
//! done is always announced: a locker that gets a clean mutex finds the data whole. Each thread's
//! death is announced once, and no turn is lost.

use super::object::Object;
use crate::actor::{Actor, Verdict};
use crate::context::{Context, Round};
use crate::count::Count;
use crate::parts::books::Pair;
use crate::parts::team::{self, Killing};
use crate::process::shared_memory;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use waitword::{RawRobustMutex, RobustError, RobustKind, RobustLocked, RobustProtocol, Scope};

const TURNS: usize = 4_000;
const MOST_THREADS: usize = 64;
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
    told: AtomicU64,
}

struct Guarded {
    mutex: Object<RawRobustMutex>,
    kind: RobustKind,
    protocol: RobustProtocol,
    books: &'static Books,
}

pub(super) fn run(context: &'static Context) -> Verdict {
    let protocols = [RobustProtocol::None, RobustProtocol::Inherit];
    let kinds = [
        RobustKind::Normal,
        RobustKind::Recursive,
        RobustKind::ErrorChecking,
    ];
    let all: Vec<Guarded> = (protocols.into_iter())
        .flat_map(|protocol| kinds.map(|kind| Guarded::new(context, kind, protocol)))
        .collect();
    while let Some(round) = context.next_round() {
        let mut chosen: Vec<&Guarded> = all.iter().collect();
        let mut dice = round.dice();
        dice.shuffle(&mut chosen);
        chosen.truncate(dice.usize(1..=3));
        let threads = round.threads.min(MOST_THREADS);
        match round.number % 2 {
            0 => by_threads(context, round, &chosen, threads)?,
            _ => by_processes(context, round, &chosen, threads.div_ceil(4))?,
        }
        let kills = if round.number % 2 == 0 { 0 } else { KILLS };
        let mut master = Actor::new(context, "master", round.seed_of("master", 0));
        (chosen.iter()).try_for_each(|guarded| guarded.over(&mut master, kills))?;
    }
    Ok(())
}

/// Threads that take turns. Some send another thread, which dies.
fn by_threads(
    context: &'static Context,
    round: Round,
    chosen: &[&Guarded],
    threads: usize,
) -> Verdict {
    let quota = (TURNS / threads).max(2);
    context.crew(round, |crew| {
        for index in 0..threads {
            crew.spawn("worker", index, move |actor| {
                for _ in 0..quota {
                    let guarded = chosen[actor.dice.usize(0..chosen.len())];
                    guarded.turn(actor, false)?;
                    if actor.dice.u32(0..32) == 0 {
                        team::visit(actor, |mortal| guarded.turn(mortal, true))?;
                    }
                }
                Ok(())
            });
        }
        Ok(())
    })
}

/// Processes that take turns until they are killed.
fn by_processes(
    context: &'static Context,
    round: Round,
    chosen: &[&Guarded],
    threads: usize,
) -> Verdict {
    let work = |process: usize| {
        context.crew(round, |crew| {
            for index in 0..threads {
                crew.spawn("worker", process * threads + index, move |actor| {
                    loop {
                        chosen[actor.dice.usize(0..chosen.len())].turn(actor, false)?;
                    }
                });
            }
            Ok(())
        })
    };
    let mut killer = Actor::new(context, "killer", round.seed_of("killer", 0));
    let killing = Killing {
        processes: PROCESSES,
        kills: KILLS,
        pause: 5_000,
        steps: 20,
    };
    // The killer owes the others nothing: it is the kernel that must wake them.
    let left = killing.run(context, &mut killer, &work, &mut |_| Ok(()))?;
    (left.into_iter()).try_for_each(|process| team::kill(context, &killer, process))
}

impl Guarded {
    fn new(context: &Context, kind: RobustKind, protocol: RobustProtocol) -> Self {
        let name = format!("robust mutex {kind:?} {protocol:?}");
        let mutex = RawRobustMutex::new(kind, protocol);
        let books = shared_memory(size_of::<Books>()).cast::<Books>();
        Self {
            mutex: Object::new(context, &name, 32, Scope::Shared, mutex),
            kind,
            protocol,
            // SAFETY: zeroed, aligned, large enough, never unmapped; zeros are empty books.
            books: unsafe { &*books },
        }
    }

    /// Takes the mutex in one way or another. `None`: it could not be taken.
    fn lock(&self, actor: &mut Actor) -> Result<Option<RobustLocked>, String> {
        let (mutex, spot) = (self.mutex.get(), self.mutex.spot);
        let way = actor.dice.u32(0..8);
        let soon = actor.tiny_deadline();
        let until = way == 1 || way == 2;
        // SAFETY: the mutex is never moved or freed.
        let locked = actor.wait_at(spot, until, || unsafe {
            match way {
                0 => mutex.try_lock(),
                1 | 2 => mutex.lock_until(soon),
                _ => mutex.lock(),
            }
        });
        match locked {
            Ok(how) => {
                actor.holds(spot);
                Ok(Some(how))
            }
            Err(RobustError::Busy) if way == 0 => Ok(None),
            Err(RobustError::TimedOut) if until => {
                actor.count(Count::Timeouts, 1);
                Ok(None)
            }
            Err(error) => Err(format!("not locked: {error}")),
        }
    }

    /// Takes a turn; the thread's last one, if it `dies` with the mutex held.
    fn turn(&self, actor: &mut Actor, dies: bool) -> Verdict {
        let Some(how) = self.lock(actor)? else {
            return Ok(());
        };
        if actor.leaves_out() {
            actor.keeps(self.mutex.spot);
        }
        self.enter(actor, how)?;
        let pair = &self.books.pair;
        let before = pair.begin();
        actor.dawdle();
        if dies && actor.dice.bool() {
            // Half done.
            self.books.turns.fetch_add(1, Relaxed);
            return self.perish(actor);
        }
        if !pair.end(before) {
            return Err("two threads hold a mutex".to_owned());
        }
        let turns = if actor.miscounts() { 2 } else { 1 };
        self.books.turns.fetch_add(turns, Relaxed);
        actor.step();
        if dies {
            return self.perish(actor);
        }
        if self.kind == RobustKind::Recursive && actor.dice.u32(0..8) == 0 {
            // SAFETY: the mutex is never moved or freed.
            let again = unsafe { self.mutex.get().lock() };
            if again != Ok(RobustLocked::Clean) {
                return Err(format!("not locked again: {again:?}"));
            }
            self.unlock()?;
        }
        actor.releases(self.mutex.spot);
        self.unlock()
    }

    /// With the mutex held: checks what the previous holder left.
    fn enter(&self, actor: &Actor, how: RobustLocked) -> Verdict {
        let pair = &self.books.pair;
        match how {
            RobustLocked::Clean if pair.is_whole() => {}
            RobustLocked::Clean => {
                let [first, second] = pair.halves();
                return Err(format!(
                    "no death was announced, but the data are {first} and {second}"
                ));
            }
            RobustLocked::OwnerDied => {
                pair.mend();
                self.books.told.fetch_add(1, Relaxed);
                actor.count(Count::Deaths, 1);
                let marked = self.mutex.get().mark_consistent();
                marked.map_err(|error| format!("not marked: {error}"))?;
            }
        }
        Ok(())
    }

    fn perish(&self, actor: &Actor) -> Verdict {
        self.books.deaths.fetch_add(1, Relaxed);
        actor.step();
        Ok(())
    }

    fn unlock(&self) -> Verdict {
        // SAFETY: no thread here holds 2048 robust mutexes, and they lie in shared memory.
        let unlocked = unsafe { self.mutex.get().unlock() };
        unlocked.map_err(|error| format!("not unlocked: {error}"))
    }

    /// After all threads have ended.
    fn over(&self, master: &mut Actor, kills: usize) -> Verdict {
        // SAFETY: the mutex is never moved or freed.
        let locked = unsafe { self.mutex.get().lock() };
        let how = locked.map_err(|error| format!("not locked in the end: {error}"))?;
        self.enter(master, how)?;
        self.unlock()?;
        let books = self.books;
        let counted = books.pair.empty();
        let turns = books.turns.swap(0, Relaxed);
        let (deaths, told) = (books.deaths.swap(0, Relaxed), books.told.swap(0, Relaxed));
        self.mutex
            .renew(RawRobustMutex::new(self.kind, self.protocol));
        // A killed thread may or may not have counted its turn; for all others the counts agree.
        let most = (kills + PROCESSES * kills.min(1)) as u64;
        if counted[0] != counted[1] || counted[0].abs_diff(turns) > most {
            return Err(format!("{turns} turns were taken, counted: {counted:?}"));
        }
        if kills == 0 && deaths != told {
            return Err(format!("{deaths} holders died, {told} were announced"));
        }
        Ok(())
    }
}
