//! Tortured: condvars of both scopes with mutexes of every sort: tokens are passed through a small store, whose givers and
//! takers wait for each other, with deadlines and without, and are signalled with the mutex held and without it.
//!
//! Those who wait on private ones are interrupted now and then, as cancellation does.
//!
//! Checked: everybody comes to an end, every token arrives once, never two threads have the mutex, and a wait says that
//! it was signalled if and only if a signal was spent on it (by priority: no such promise; in the kernel: at least then).

use super::locks::{Bell, Lock, Sort, in_time};
use crate::actor::{Actor, Verdict};
use crate::board::Count;
use crate::context::{Context, mix};
use crate::fault::Fault;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use waitword::{Deadline, Interrupter, Kind, LockError, RawCondvar, Scope, Wakeup};

const TOKENS: usize = 5_000;
const ROOM: usize = 3;
/// How many stores there are in a round, at most.
const AT_ONCE: usize = 4;

/// A number of tokens and their sum: with random tokens, hardly equal for two different heaps of them.
#[derive(Default)]
struct Heap {
    count: AtomicUsize,
    sum: AtomicU64,
}

impl Heap {
    fn add(&self, token: u64) {
        self.count.fetch_add(1, Relaxed);
        self.sum.fetch_add(token, Relaxed);
    }

    fn empty(&self) -> (usize, u64) {
        (self.count.swap(0, Relaxed), self.sum.swap(0, Relaxed))
    }
}

/// A store for a few tokens.
struct Store {
    /// For how many in this round. For one only, a signal that goes lost stops everybody.
    room: AtomicUsize,
    lock: Lock,
    not_empty: Bell,
    not_full: Bell,
    /// Changed with the mutex held, by plain loads and stores.
    held: AtomicUsize,
    tokens: [AtomicU64; ROOM],
    given: Heap,
    taken: Heap,
    /// What signals have found, and waits that say so.
    signals: AtomicUsize,
    signalled: AtomicUsize,
}

impl Store {
    fn new(context: &Context, sort: Sort, scope: Scope) -> Self {
        Self {
            room: AtomicUsize::new(1),
            lock: Lock::new(context, sort),
            not_empty: Bell::new(context, "not empty", scope),
            not_full: Bell::new(context, "not full", scope),
            held: AtomicUsize::new(0),
            tokens: Default::default(),
            given: Heap::default(),
            taken: Heap::default(),
            signals: AtomicUsize::new(0),
            signalled: AtomicUsize::new(0),
        }
    }

    fn lock(&self, actor: &mut Actor) {
        let seen = self.lock.spot.word.load();
        actor.wait_at(self.lock.spot, seen, false, || self.lock.mutex().lock());
        actor.holds(self.lock.spot);
    }

    /// With the mutex held: one wait.
    fn wait(&self, actor: &mut Actor, bell: &Bell, by: &Interrupter) -> Verdict {
        let deadline = (actor.dice.u32(0..6) == 0).then(|| actor.tiny_deadline());
        let interruptible = actor.dice.u32(0..4) == 0;
        let wait = |condvar: &RawCondvar, deadline: Option<&Deadline>| {
            let mutex = self.lock.mutex();
            // SAFETY: the mutex is held, and all who wait here do so with it.
            unsafe {
                match interruptible {
                    true => condvar.wait_interruptible(mutex, deadline, by),
                    false => condvar.wait(mutex, deadline).map(|()| Wakeup::Signalled),
                }
            }
        };
        let seen = bell.spot.word.load();
        actor.releases(self.lock.spot);
        let waited = actor.wait_at(bell.spot, seen, deadline.is_some(), || {
            wait(bell.condvar(), deadline.as_ref())
        });
        actor.holds(self.lock.spot);
        if waited == Ok(Wakeup::Interrupted) {
            if !interruptible || !by.is_interrupted() {
                return Err("a wait was interrupted by nobody".to_owned());
            }
            by.clear();
            actor.count(Count::Interrupted, 1);
            return Ok(());
        }
        if in_time(actor, waited.map(drop))? {
            actor.count(Count::Woken, 1);
            self.signalled.fetch_add(1, Relaxed);
        } else if !deadline.is_some_and(|deadline| deadline.has_passed())
            // Which may have been set back since.
            && !actor.has(Fault::Clock)
        {
            return Err("a wait has timed out too early".to_owned());
        }
        Ok(())
    }

    fn signal(&self, actor: &mut Actor, bell: &Bell) {
        if actor.leaves_out() {
            return;
        }
        let found = match actor.dice.u32(0..8) {
            0 => bell.condvar().notify_all(),
            _ => usize::from(bell.condvar().notify_one()),
        };
        actor.count(Count::Wakes, found);
        self.signals.fetch_add(found, Relaxed);
    }

    /// Gives a token if there is one to give, else takes one.
    fn pass(&self, actor: &mut Actor, token: Option<u64>, by: &Interrupter) -> Verdict {
        let (wait_for, tell, unfit) = match token {
            Some(_) => {
                let room = self.room.load(Relaxed);
                (&self.not_full, &self.not_empty, room)
            }
            None => (&self.not_empty, &self.not_full, 0),
        };
        self.lock(actor);
        while self.held.load(Relaxed) == unfit {
            self.wait(actor, wait_for, by)?;
        }
        let held = self.held.load(Relaxed);
        let after = match token {
            Some(token) => {
                self.tokens[held].store(token, Relaxed);
                self.given.add(token);
                held + 1
            }
            None => {
                let token = self.tokens[held - 1].load(Relaxed);
                self.taken.add(token);
                if actor.miscounts() {
                    self.taken.add(token);
                }
                held - 1
            }
        };
        actor.dawdle();
        if self.held.load(Relaxed) != held {
            return Err("two threads have a mutex".to_owned());
        }
        self.held.store(after, Relaxed);
        actor.step();
        let with_mutex = actor.dice.bool();
        if with_mutex {
            self.signal(actor, tell);
        }
        actor.releases(self.lock.spot);
        // SAFETY: locked above.
        unsafe {
            match actor.dice.u32(0..8) {
                0 => self.lock.mutex().unlock_fair(),
                _ => self.lock.mutex().unlock(),
            }
        }
        if !with_mutex {
            self.signal(actor, tell);
        }
        Ok(())
    }

    /// A wait by one who may not: it says so at once.
    fn ask_as_stranger(&self) -> Verdict {
        if !self.lock.sort.has_owner() {
            return Ok(());
        }
        // SAFETY: it has an owner, and can tell.
        match unsafe { self.not_empty.condvar().wait(self.lock.mutex(), None) } {
            Err(LockError::NotOwner) => Ok(()),
            other => Err(format!("a stranger was not told so: {other:?}")),
        }
    }

    /// When all are gone.
    fn over(&self) -> Verdict {
        let (given, taken) = (self.given.empty(), self.taken.empty());
        if given != taken || self.held.load(Relaxed) != 0 {
            return Err(format!("tokens were given {given:?} and taken {taken:?}"));
        }
        let signals = self.signals.swap(0, Relaxed);
        let signalled = self.signalled.swap(0, Relaxed);
        let scope = self.not_empty.scope();
        let fits = match scope {
            Scope::Private if self.lock.sort.is_pi() => true,
            Scope::Private => signals == signalled,
            Scope::Shared => signals <= signalled,
        };
        if !fits {
            return Err(format!(
                "signals have found {signals}, and {signalled} say so"
            ));
        }
        self.not_empty.renew()?;
        self.not_full.renew()?;
        self.lock.renew()
    }
}

pub(super) fn run(context: &'static Context) -> Verdict {
    let mut all = Vec::new();
    for scope in [Scope::Private, Scope::Shared] {
        // The kinds differ in what their owner may do, which is not what is tortured here.
        for sort in Sort::all().filter(|sort| sort.kind != Kind::ErrorChecking) {
            all.push(Store::new(context, sort, scope));
        }
    }
    while let Some(round) = context.next_round() {
        let mut dice = round.dice();
        let mut chosen: Vec<&Store> = all.iter().collect();
        dice.shuffle(&mut chosen);
        for store in &chosen {
            store.room.store(dice.usize(1..=ROOM), Relaxed);
        }
        let pairs = round.threads / 2;
        chosen.truncate(dice.usize(1..=AT_ONCE.min(pairs)));
        let chosen = &chosen;
        let quota = (TOKENS / pairs).max(2);
        let interrupters: Vec<_> = (0..pairs * 2).map(|_| Interrupter::new()).collect();
        let (interrupters, left) = (&interrupters, &AtomicUsize::new(pairs * 2));
        context.crew(round, |crew| {
            for pair in 0..pairs {
                // As many givers as takers of each.
                let store = chosen[pair % chosen.len()];
                for gives in [true, false] {
                    let role = if gives { "giver" } else { "taker" };
                    let by = &interrupters[pair * 2 + usize::from(gives)];
                    crew.spawn(role, pair, move |actor| {
                        for number in 0..quota {
                            let token = mix((pair * quota + number) as u64);
                            store.pass(actor, gives.then_some(token), by)?;
                            match actor.dice.u32(0..256) {
                                0 => actor.move_to_some_cpu(),
                                1 => store.ask_as_stranger()?,
                                _ => {}
                            }
                        }
                        left.fetch_sub(1, Relaxed);
                        Ok(())
                    });
                }
            }
            crew.spawn("interrupter", 0, move |actor| {
                while left.load(Relaxed) > 0 {
                    interrupters[actor.dice.usize(0..interrupters.len())].interrupt();
                    crate::actor::nap(actor.dice.u64(0..200));
                }
                Ok(())
            });
            Ok(())
        })?;
        chosen.iter().try_for_each(|store| store.over())?;
    }
    Ok(())
}
