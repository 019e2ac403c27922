//! Tortured: condvars of both scopes with mutexes of every sort. Tokens are passed through a small
//! store, whose givers and takers wait for each other, with and without deadlines, and are
//! signalled with and without the mutex held.
//!
//! Waits on private ones are interrupted now and then, as cancellation does. In some rounds there
//! are no interruptions and no deadlines, and signals are sent with the mutex held: then the order
//! of arrival is known.
//!
//! Checked: all threads end, every token arrives once, and no two threads ever hold the mutex. A
//! wait reports a signal if and only if a signal was spent on it (by priority: not promised; in the
//! kernel: at least if one was spent). Where the order of arrival is known, waiters are signalled
//! in that order.

use super::locks::{Lock, Sort, in_time, renew_condvar};
use super::object::Object;
use crate::actor::{Actor, Verdict, nap};
use crate::context::Context;
use crate::count::Count;
use crate::fault::Fault;
use crate::parts::store::{self, Condition, Monitor, ROOM, Store};
use crate::parts::turns;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use waitword::abi_support::{CancellableCondvar as _, Interrupter, Wakeup};
use waitword::{Kind, LockError, RawCondvar, Scope};

const TOKENS: usize = 5_000;
/// How many stores there are in a round, at most.
const AT_ONCE: usize = 4;

/// A condvar, and which waiters were signalled.
struct Bell {
    object: Object<RawCondvar>,
    /// How many waiters have come, counted with the mutex held.
    came: AtomicUsize,
    /// How many waiters signals have found, and how many waits reported a signal.
    signals: AtomicUsize,
    signalled: AtomicUsize,
}

impl Bell {
    fn new(context: &Context, what: &str, lock: &Lock, scope: Scope) -> Self {
        let name = format!("condvar `{what}` of #{}", lock.spot().number);
        let condvar = RawCondvar::with_scope(scope);
        Self {
            object: Object::new(context, &name, 64, scope, condvar),
            came: AtomicUsize::new(0),
            signals: AtomicUsize::new(0),
            signalled: AtomicUsize::new(0),
        }
    }

    /// After all threads have ended.
    fn over(&self, sort: Sort) -> Verdict {
        self.came.store(0, Relaxed);
        let signals = self.signals.swap(0, Relaxed);
        let signalled = self.signalled.swap(0, Relaxed);
        let fits = match self.object.scope {
            Scope::Private if sort.is_pi() => true,
            Scope::Private => signals == signalled,
            Scope::Shared => signals <= signalled,
        };
        if !fits {
            return Err(format!(
                "signals found {signals}, but {signalled} waits were signalled"
            ));
        }
        renew_condvar(&self.object)
    }
}

/// A mutex and two condvars.
struct Place {
    lock: Lock,
    not_empty: Bell,
    not_full: Bell,
    /// Whether the order of arrival is known in this round.
    in_order: AtomicBool,
    store: Store,
}

impl Place {
    fn new(context: &Context, sort: Sort, scope: Scope) -> Self {
        let lock = Lock::new(context, sort);
        Self {
            not_empty: Bell::new(context, "not empty", &lock, scope),
            not_full: Bell::new(context, "not full", &lock, scope),
            lock,
            in_order: AtomicBool::new(false),
            store: Store::new(1),
        }
    }

    fn bell(&self, what: Condition) -> &Bell {
        match what {
            Condition::NotEmpty => &self.not_empty,
            Condition::NotFull => &self.not_full,
        }
    }

    /// Whether waiters are signalled in the order in which they came, and signals return how many
    /// they found.
    fn promises_order(&self) -> bool {
        self.not_empty.object.scope == Scope::Private && !self.lock.sort.is_pi()
    }

    /// A wait by a thread that does not hold the mutex: it must fail at once.
    fn ask_as_stranger(&self) -> Verdict {
        if !self.lock.sort.has_owner() {
            return Ok(());
        }
        let condvar = self.not_empty.object.get();
        // SAFETY: the mutex has an owner, so the call can detect this.
        match unsafe { condvar.wait(self.lock.mutex(), None) } {
            Err(LockError::NotOwner) => Ok(()),
            other => Err(format!("a non-owner got {other:?}")),
        }
    }

    /// After all threads have ended.
    fn over(&self) -> Verdict {
        self.store.settle()?;
        self.not_empty.over(self.lock.sort)?;
        self.not_full.over(self.lock.sort)?;
        self.lock.renew()
    }
}

/// One thread that uses a place.
struct User<'a> {
    place: &'a Place,
    by: &'a Interrupter,
    /// How many users are left.
    left: &'a AtomicUsize,
}

impl Drop for User<'_> {
    fn drop(&mut self) {
        self.left.fetch_sub(1, Relaxed);
    }
}

impl Monitor for User<'_> {
    fn lock(&self, actor: &mut Actor) -> Verdict {
        let lock = &self.place.lock;
        actor.wait_at(lock.spot(), false, || lock.mutex().lock());
        actor.holds(lock.spot());
        Ok(())
    }

    fn unlock(&self, actor: &mut Actor) -> Verdict {
        let lock = &self.place.lock;
        actor.releases(lock.spot());
        // SAFETY: locked by the caller.
        unsafe {
            match actor.dice.u32(0..8) {
                0 => lock.mutex().unlock_fair(),
                _ => lock.mutex().unlock(),
            }
        }
        Ok(())
    }

    fn wait(&self, actor: &mut Actor, what: Condition) -> Verdict {
        let (lock, bell, by) = (&self.place.lock, self.place.bell(what), self.by);
        let in_order = self.place.in_order.load(Relaxed);
        let deadline = (!in_order && actor.dice.u32(0..6) == 0).then(|| actor.tiny_deadline());
        let interruptible = !in_order && actor.dice.u32(0..4) == 0;
        let ticket = bell.came.fetch_add(1, Relaxed) + usize::from(actor.overtakes());
        let wait = || {
            let (condvar, mutex) = (bell.object.get(), lock.mutex());
            // SAFETY: the mutex is held, and all threads that wait here do so with it.
            unsafe {
                match interruptible {
                    true => condvar.wait_interruptible(mutex, deadline.as_ref(), by),
                    false => condvar
                        .wait(mutex, deadline.as_ref())
                        .map(|()| Wakeup::Signalled),
                }
            }
        };
        actor.releases(lock.spot());
        let waited = actor.wait_at(bell.object.spot, deadline.is_some(), wait);
        actor.holds(lock.spot());
        if waited == Ok(Wakeup::Interrupted) {
            if !interruptible || !by.is_interrupted() {
                return Err("a wait was interrupted without an interrupter".to_owned());
            }
            by.clear();
            actor.count(Count::Interrupted, 1);
            return Ok(());
        }
        if in_time(actor, waited.map(drop))? {
            actor.count(Count::Woken, 1);
            bell.signalled.fetch_add(1, Relaxed);
            if in_order && ticket >= bell.signals.load(Relaxed) {
                return Err("one was signalled before another that had come first".to_owned());
            }
        } else if !deadline.is_some_and(|deadline| deadline.has_passed())
            // The clock may have been set back since.
            && !actor.has(Fault::Clock)
        {
            return Err("a wait timed out too early".to_owned());
        }
        Ok(())
    }

    fn signals_inside(&self, actor: &mut Actor) -> bool {
        self.place.in_order.load(Relaxed) || actor.dice.bool()
    }

    fn signal(&self, actor: &mut Actor, what: Condition, _inside: bool) -> Verdict {
        if actor.leaves_out() {
            return Ok(());
        }
        let bell = self.place.bell(what);
        let condvar = bell.object.get();
        let found = match actor.dice.u32(0..8) {
            0 => condvar.notify_all(),
            _ => usize::from(condvar.notify_one()),
        };
        actor.count(Count::Wakes, found);
        bell.signals.fetch_add(found, Relaxed);
        Ok(())
    }

    fn look_around(&self, actor: &mut Actor) -> Verdict {
        match actor.dice.u32(0..256) {
            0 => self.place.ask_as_stranger(),
            _ => Ok(()),
        }
    }
}

pub(super) fn run(context: &'static Context) -> Verdict {
    let mut all = Vec::new();
    for scope in [Scope::Private, Scope::Shared] {
        // The kinds differ in what their owner may do, which is not tested here.
        for sort in Sort::all().filter(|sort| sort.kind != Kind::ErrorChecking) {
            all.push(Place::new(context, sort, scope));
        }
    }
    while let Some(round) = context.next_round() {
        let mut dice = round.dice();
        let pairs = round.threads / 2;
        let chosen = &turns::some(&mut dice, &all, AT_ONCE.min(pairs));
        for place in chosen {
            place.store.set_room(dice.usize(1..=ROOM));
            // Real-time threads are queued before others.
            let in_order = place.promises_order() && !context.has(Fault::Priority) && dice.bool();
            place.in_order.store(in_order, Relaxed);
        }
        let quota = (TOKENS / pairs).max(2);
        let interrupters: Vec<_> = (0..pairs * 2).map(|_| Interrupter::new()).collect();
        let (interrupters, left) = (&interrupters, &AtomicUsize::new(pairs * 2));
        context.crew(round, |crew| {
            store::hire(crew, pairs, quota, |pair, gives| {
                let place = chosen[pair % chosen.len()];
                let by = &interrupters[pair * 2 + usize::from(gives)];
                (&place.store, User { place, by, left })
            });
            crew.spawn("interrupter", 0, move |actor| {
                while left.load(Relaxed) > 0 {
                    interrupters[actor.dice.usize(0..interrupters.len())].interrupt();
                    nap(actor.dice.u64(0..200));
                }
                Ok(())
            });
            Ok(())
        })?;
        chosen.iter().try_for_each(|place| place.over())?;
    }
    Ok(())
}
