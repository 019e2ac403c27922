//! Tortured: owners of robust mutexes that end while they hold them: threads, by returning, by
//! exiting and by being cancelled, and processes, by SIGKILL. Condition variables wait with such
//! mutexes.
//!
//! Checked: for each owner that died, exactly one later locker is notified, and finds what the
//! mutex protects half-written or whole. After it is made consistent, everything goes on. No two
//! threads ever hold the mutex. All threads end.

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
    /// Owners that died, as counted by themselves, and as counted by the lockers that were
    /// notified.
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

    /// With the mutex held. Stops half-way if `half`.
    fn change(&self, actor: &mut Actor, half: bool) -> Verdict {
        let pair = &self.protected.pair;
        let before = pair.begin();
        actor.dawdle();
        if !half && !pair.end(before) {
            return Err("two threads hold a mutex".to_owned());
        }
        actor.step();
        Ok(())
    }

    /// `waits` must be false in processes that are killed. One that dies in a condition variable
    /// may leave it locked forever.
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

/// Locks it, and ends while holding it.
fn die(actor: &mut Actor, store: &'static Store) -> Verdict {
    store.lock(actor)?;
    let half = actor.dice.bool();
    store.change(actor, half)?;
    let told = if actor.miscounts() { 2 } else { 1 };
    store.protected.died.fetch_add(told, SeqCst);
    if actor.dice.bool() {
        // SAFETY: nothing in the frames of this thread needs to be dropped.
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
            // SAFETY: zeroed, aligned, never unmapped; all zeros is a valid `Protected`.
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

/// Kills processes that take turns, at random moments, and replaces them. Returns how many were
/// killed.
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

/// What a process that sees another die owes to the other processes. Suppose the kernel has woken a
/// waiter, and the waiter is killed before it has the mutex. It takes that wake-up with it if a
/// third thread has locked meanwhile. (This is so with glibc's robust mutexes and Linux 6.18.)
fn wake_all(store: &Store) {
    let word = store.lock.object.at::<u32>();
    // SAFETY: the mutex's futex; its waiters look again.
    unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, i32::MAX) };
}

/// After all threads have ended. No locker has been notified of the last death yet.
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
            "{died} owners died, and {killed} were killed; notifications: {told}"
        ));
    }
    Ok(())
}
