//! Tortured: owners of robust mutexes that end while they hold them: threads, by returning, by ending themselves and by
//! being cancelled, and processes, by SIGKILL; with condition variables that wait with such mutexes.
//!
//! Checked: for each owner that died, exactly one of those who come is told so and finds what it protects half-written or
//! whole; after it is made consistent all goes on; never two threads have the mutex; everybody comes to an end.

use super::bare::Bare;
use super::bell::{Bell, BellSort};
use super::lock::{Kind, Lock, Made, Protocol, Sort};
use super::object::{error_name, zero};
use crate::actor::{Actor, Verdict};
use crate::context::{Context, Round};
use crate::count::Count;
use crate::parts::books::Pair;
use crate::parts::team::{self, Killing};
use crate::process::shared_memory;
use libc::EOWNERDEAD;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

const TURNS: usize = 1_000;
const MOST_THREADS: usize = 32;
const PROCESSES: usize = 3;
const KILLS: usize = 6;

/// What a mutex protects, in memory that processes may share.
#[derive(Default)]
struct Protected {
    pair: Pair,
    /// Owners that died, as they themselves have said, and as those were told who came next.
    died: AtomicUsize,
    told: AtomicUsize,
    over: AtomicBool,
}

/// A robust mutex, a condition variable, and what they protect.
struct Store {
    lock: Lock,
    bell: Bell,
    protected: &'static Protected,
}

impl Store {
    /// Locks it, and mends what a dead owner has left.
    fn lock(&self, actor: &mut Actor) -> Verdict {
        let mutex = self.lock.mutex();
        // SAFETY: it was made.
        let answer = self
            .lock
            .object
            .wait(actor, false, || unsafe { libc::pthread_mutex_lock(mutex) });
        self.mend(actor, answer)
    }

    fn mend(&self, actor: &Actor, answer: i32) -> Verdict {
        match answer {
            0 => {}
            EOWNERDEAD => {
                self.protected.told.fetch_add(1, Relaxed);
                actor.count(Count::Interrupted, 1);
                self.protected.pair.mend();
                // SAFETY: held, and not consistent.
                zero("pthread_mutex_consistent", unsafe {
                    libc::pthread_mutex_consistent(self.lock.mutex())
                })?;
            }
            number => return Err(format!("{}: {}", self.lock.sort.name(), error_name(number))),
        }
        self.lock.object.held();
        Ok(())
    }

    /// With the mutex held; ends half-way if so wished.
    fn change(&self, actor: &mut Actor, half: bool) -> Verdict {
        let pair = &self.protected.pair;
        let before = pair.begin();
        actor.dawdle();
        if !half && !pair.end(before) {
            return Err("two threads have a mutex".to_owned());
        }
        actor.step();
        Ok(())
    }

    /// `waits`: not among processes that are killed. One that dies in a condition variable may leave it locked for ever.
    fn turn(&self, actor: &mut Actor, waits: bool) -> Verdict {
        self.lock(actor)?;
        if waits && actor.dice.u32(0..8) == 0 {
            self.lock.object.given_back();
            let until = super::until::Until::tiny(&mut actor.dice, self.bell.sort.clock);
            let answer = self
                .bell
                .object
                .wait(actor, true, || self.bell.wait_now(&self.lock, Some(&until)));
            let answer = if answer == libc::ETIMEDOUT { 0 } else { answer };
            self.mend(actor, answer)?;
        }
        self.change(actor, false)?;
        self.lock.unlock()?;
        match actor.dice.u32(0..16) {
            _ if !waits => Ok(()),
            0 => self.bell.broadcast(false),
            1..4 => self.bell.signal(false),
            _ => Ok(()),
        }
    }
}

/// Locks it, and ends with it.
fn die(actor: &mut Actor, store: &'static Store) -> Verdict {
    store.lock(actor)?;
    let half = actor.dice.bool();
    store.change(actor, half)?;
    let told = if actor.miscounts() { 2 } else { 1 };
    store.protected.died.fetch_add(told, SeqCst);
    if actor.dice.bool() {
        // SAFETY: nothing in the frames of this thread is to be dropped.
        unsafe { libc::pthread_exit(std::ptr::null_mut()) };
    }
    Ok(())
}

fn stores(context: &'static Context) -> Result<Vec<&'static Store>, String> {
    let sorts = Sort::by_init().filter(|sort| sort.robust && sort.made == Made::ByInit);
    let sorts = sorts.filter(|sort| sort.kind != Kind::Adaptive || sort.protocol == Protocol::None);
    let mut stores: Vec<&'static Store> = Vec::new();
    for sort in sorts {
        let bell = BellSort {
            shared: sort.shared,
            clock: libc::CLOCK_MONOTONIC,
            by_initialiser: false,
        };
        let protected = shared_memory(size_of::<Protected>()).cast::<Protected>();
        stores.push(Box::leak(Box::new(Store {
            lock: Lock::new(context, sort)?,
            bell: Bell::new(context, "of a robust mutex", bell)?,
            // SAFETY: zeroed, aligned, never unmapped; all zeros is such a struct.
            protected: unsafe { &*protected },
        })));
    }
    Ok(stores)
}

pub(super) fn run(context: &'static Context) -> Verdict {
    let stores = stores(context)?;
    while let Some(round) = context.next_round() {
        let mut dice = round.dice();
        let store = stores[dice.usize(0..stores.len())];
        let killed = if store.lock.sort.shared && dice.bool() {
            kill_processes(context, round, store)?
        } else {
            let threads = round.threads.min(MOST_THREADS);
            let quota = (TURNS / threads).max(2);
            context.crew(round, |crew| {
                for index in 0..threads {
                    crew.spawn("worker", index, move |actor| {
                        for _ in 0..quota {
                            if actor.dice.u32(0..16) == 0 {
                                let seed = actor.dice.u64(..);
                                Bare::start(context, "mortal", seed, die, store)?.join()?;
                            }
                            store.turn(actor, true)?;
                        }
                        Ok(())
                    });
                }
                Ok(())
            })?;
            0
        };
        over(context, store, killed)?;
    }
    Ok(())
}

/// Processes that take turns are killed at any moment, and replaced; how many.
fn kill_processes(
    context: &'static Context,
    round: Round,
    store: &'static Store,
) -> Result<usize, String> {
    let over = &store.protected.over;
    over.store(false, SeqCst);
    let work = |process: usize| {
        let mut actor = Actor::new(context, "process", round.seed_of("process", process));
        while !over.load(Relaxed) {
            store.turn(&mut actor, false)?;
        }
        Ok(())
    };
    let mut killer = Actor::new(context, "killer", round.seed_of("killer", 0));
    let killing = Killing {
        processes: PROCESSES,
        kills: KILLS,
        pause: 4_000,
        steps: 20,
    };
    let survivors = killing.run(context, &mut killer, &work, &mut |_| {
        wake_all(store);
        Ok(())
    })?;
    over.store(true, SeqCst);
    team::end(context, survivors)?;
    Ok(KILLS)
}

/// What the one who sees a process die owes to the others: a waiter that the kernel has woken, and that is killed before it has the
/// mutex, takes that wake-up with it if a third has locked meanwhile. (So it is with glibc's robust mutexes and Linux 6.18.)
fn wake_all(store: &Store) {
    let word = store.lock.object.at::<u32>();
    // SAFETY: the mutex's futex; waiters look again.
    unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, i32::MAX) };
}

/// When all are gone. The last one that died has told nobody yet.
fn over(context: &'static Context, store: &Store, killed: usize) -> Verdict {
    let mut actor = Actor::new(context, "last", 0);
    store.lock(&mut actor)?;
    let protected = store.protected;
    let [first, second] = protected.pair.empty();
    let (died, told) = (
        protected.died.swap(0, Relaxed),
        protected.told.swap(0, Relaxed),
    );
    store.lock.unlock()?;
    if first != second {
        return Err(format!("what it protects is torn: {first} and {second}"));
    }
    if told < died || told > died + killed {
        return Err(format!(
            "{died} owners have died, and {killed} were killed; those who were told so: {told}"
        ));
    }
    Ok(())
}
