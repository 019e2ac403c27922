//! Condvars of both scopes, and which waiters were signalled.

use super::interrupters::{self, lend};
use super::mutex::{Mutex, in_time, not_early};
use super::object::Object;
use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::count::Count;
use crate::objects::traits;
use crate::spot::Spot;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use waitword::abi_support::{CondvarHooks as _, Wakeup};
use waitword::{LockError, RawCondvar, Scope};

/// See the module documentation.
pub(crate) struct Condvar {
    object: Object<RawCondvar>,
    /// How many waiters have come, counted with the mutex held.
    came: AtomicUsize,
    /// How many waiters signals have found, and how many waits reported a signal.
    signals: AtomicUsize,
    signalled: AtomicUsize,
}

impl Condvar {
    fn of(object: Object<RawCondvar>) -> Self {
        Self {
            object,
            came: AtomicUsize::new(0),
            signals: AtomicUsize::new(0),
            signalled: AtomicUsize::new(0),
        }
    }

    /// A process-shared one that lies somewhere already.
    pub(crate) fn at(condvar: &'static RawCondvar, spot: Spot) -> Self {
        Self::of(Object::at(condvar, spot))
    }
}

impl traits::Condvar for Condvar {
    type Lock = Mutex;

    const IS_INTERRUPTED: bool = true;

    fn new(context: &Context, name: &str, index: usize) -> Result<Self, String> {
        let scope = [Scope::Private, Scope::Shared][index % 2];
        let (name, condvar) = (format!("condvar `{name}`"), RawCondvar::with_scope(scope));
        Ok(Self::of(Object::new(context, &name, 64, scope, condvar)))
    }

    fn wait(&self, actor: &mut Actor, lock: &Mutex, in_order: bool) -> Verdict {
        let deadline = (!in_order && actor.dice.u32(0..6) == 0).then(|| actor.tiny_deadline());
        let by = match in_order || actor.dice.u32(0..4) > 0 {
            true => None,
            false => lend(actor),
        };
        let ticket = self.came.fetch_add(1, Relaxed) + usize::from(actor.overtakes());
        let (condvar, mutex, until) = (self.object.get(), lock.raw(), deadline.as_ref());
        actor.releases(traits::Lock::spot(lock));
        let waited = actor.wait_at(self.object.spot, deadline.is_some(), || {
            // SAFETY: the mutex is held, and all threads that wait here do so with it.
            unsafe {
                match &by {
                    Some(by) => condvar.wait_interruptible(mutex, until, by.interrupter()),
                    None => condvar.wait(mutex, until).map(|()| Wakeup::Signalled),
                }
            }
        });
        actor.holds(traits::Lock::spot(lock));
        if waited == Ok(Wakeup::Interrupted) {
            return match by.is_some_and(|by| by.has_interrupted(actor)) {
                true => Ok(()),
                false => Err("a wait was interrupted without an interrupter".to_owned()),
            };
        }
        if in_time(actor, waited.map(drop))? {
            actor.count(Count::Woken, 1);
            self.signalled.fetch_add(1, Relaxed);
            if in_order && ticket >= self.signals.load(Relaxed) {
                return Err("one was signalled before another that had come first".to_owned());
            }
            return Ok(());
        }
        let deadline = deadline.ok_or("a wait without a deadline timed out")?;
        not_early(actor, false, &deadline)
    }

    fn signal(&self, actor: &mut Actor, _lock: &Mutex, all: bool) -> Verdict {
        let condvar = self.object.get();
        let found = match all {
            true => condvar.notify_all(),
            false => usize::from(condvar.notify_one()),
        };
        actor.count(Count::Wakes, found);
        self.signals.fetch_add(found, Relaxed);
        Ok(())
    }

    fn interrupt_some(actor: &mut Actor) {
        interrupters::interrupt_some(actor);
    }

    /// By priority it is not promised, and in the kernel signals do not return how many they found.
    fn keeps_order(&self, lock: &Mutex) -> bool {
        self.object.scope == Scope::Private && !lock.sort.is_pi()
    }

    fn check_as_non_owner(&self, lock: &Mutex) -> Verdict {
        if !lock.sort.has_owner() {
            return Ok(());
        }
        // SAFETY: the mutex has an owner, so the call can detect this.
        match unsafe { self.object.get().wait(lock.raw(), None) } {
            Err(LockError::NotOwner) => Ok(()),
            other => Err(format!("a non-owner got {other:?}")),
        }
    }

    /// A wait reports a signal if and only if a signal was spent on it. By priority that is not
    /// promised, and in the kernel at least if one was spent.
    fn settle(&self, lock: &Mutex) -> Verdict {
        self.came.store(0, Relaxed);
        let signals = self.signals.swap(0, Relaxed);
        let signalled = self.signalled.swap(0, Relaxed);
        let fits = match self.object.scope {
            Scope::Private if lock.sort.is_pi() => true,
            Scope::Private => signals == signalled,
            Scope::Shared => signals <= signalled,
        };
        match fits {
            true => Ok(()),
            false => Err(format!("signals found {signals}, but {signalled} waits were signalled")),
        }
    }

    fn renew(&mut self, _dice: &mut fastrand::Rng) -> Verdict {
        let destroyed = self.object.get().destroy();
        self.object.renew(RawCondvar::with_scope(self.object.scope));
        destroyed.map_err(|error| format!("a condvar that no thread uses: {error}"))
    }
}
