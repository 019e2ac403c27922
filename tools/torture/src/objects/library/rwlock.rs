//! Reader/writer locks of both preferences and scopes.

use super::mutex::not_early;
use super::object::Object;
use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::count::Count;
use crate::objects::traits::{Attempt, Held, ReadWrite};
use crate::spot::Spot;
use waitword::lock_api::{RawRwLock as _, RawRwLockFair as _};
use waitword::{Deadline, Preference, RawRwLock, RwLockError, Scope};

/// See the module documentation.
pub(crate) struct RwLock {
    preference: Preference,
    object: Object<RawRwLock>,
}

impl RwLock {
    fn new(context: &Context, preference: Preference, scope: Scope) -> Self {
        let lock = RawRwLock::with(preference, scope);
        Self { preference, object: Object::new(context, &name_of(preference), 64, scope, lock) }
    }

    /// A process-shared one that lies somewhere already.
    pub(crate) fn at(lock: &'static RawRwLock, preference: Preference, spot: Spot) -> Self {
        let object = Object::at(lock, spot);
        Self { preference, object }
    }

    /// Makes a call that may wait. Returns whether the lock could be taken.
    fn call(
        &self,
        actor: &mut Actor,
        attempt: Attempt,
        call: impl FnOnce(&RawRwLock, Option<&Deadline>) -> Result<(), RwLockError>,
    ) -> Result<bool, String> {
        let deadline = (attempt == Attempt::Timed).then(|| actor.tiny_deadline());
        let ended = actor.wait_at(self.object.spot, deadline.is_some(), || {
            call(self.object.get(), deadline.as_ref())
        });
        match (ended, attempt) {
            (Ok(()), _) => Ok(true),
            (Err(RwLockError::TimedOut), Attempt::Timed) => {
                actor.count(Count::Timeouts, 1);
                deadline.map_or(Ok(()), |deadline| not_early(actor, false, &deadline))?;
                Ok(false)
            }
            (Err(RwLockError::Busy), Attempt::Try) => Ok(false),
            (Err(error), _) => Err(format!("it was not taken: {error}")),
        }
    }

    fn recorded(&self, actor: &Actor, taken: bool) -> bool {
        if taken {
            actor.holds(self.object.spot);
        }
        taken
    }
}

fn name_of(preference: Preference) -> String {
    format!("rwlock, {preference:?}s first")
}

impl ReadWrite for RwLock {
    /// Neither readers nor writers starve, whatever the preference.
    const IS_BOUNDED: bool = true;
    const CAN_CHANGE: bool = true;

    fn all(context: &Context) -> Result<Vec<Self>, String> {
        let scopes = [Scope::Private, Scope::Private, Scope::Shared];
        let preferences = [Preference::Reader, Preference::Writer].into_iter();
        Ok(preferences
            .flat_map(|preference| scopes.map(|scope| Self::new(context, preference, scope)))
            .collect())
    }

    fn name(&self) -> String {
        format!("{:?} {}", self.object.scope, name_of(self.preference))
    }

    fn spot(&self) -> Spot {
        self.object.spot
    }

    fn take(&self, actor: &mut Actor, held: Held, attempt: Attempt) -> Result<bool, String> {
        let at_once = attempt == Attempt::Try;
        let taken = self.call(actor, attempt, |lock, until| match held {
            Held::Read if at_once => lock.try_read(),
            Held::Read => lock.read(0, until),
            Held::Upgradable if at_once => lock.try_read_upgradably(),
            Held::Upgradable => lock.read_upgradably(until),
            Held::Written if at_once => lock.try_write(0),
            Held::Written => lock.write(0, until),
        })?;
        Ok(self.recorded(actor, taken))
    }

    fn read_again(&self, actor: &mut Actor, attempt: Attempt) -> Result<bool, String> {
        let says_so = self.preference == Preference::Writer || actor.dice.bool();
        let taken = self.call(actor, attempt, |lock, until| match says_so {
            _ if attempt == Attempt::Try => lock.try_read(),
            true => lock.read_recursive(0, until),
            false => lock.read(0, until),
        })?;
        Ok(self.recorded(actor, taken))
    }

    fn upgrade(&self, actor: &mut Actor, attempt: Attempt) -> Result<bool, String> {
        let attempt = match attempt {
            Attempt::Try => Attempt::Timed,
            other => other,
        };
        // SAFETY: the caller holds it upgradably.
        self.call(actor, attempt, |lock, until| unsafe { lock.upgrade_checked(0, until) })
    }

    fn downgrade(&self, from: Held, to: Held) -> Verdict {
        let lock = self.object.get();
        // SAFETY: the caller holds it in this way.
        let changed = unsafe {
            match (from, to) {
                (Held::Written, Held::Upgradable) => lock.downgrade_to_upgradable_checked(),
                (Held::Written, Held::Read) => lock.downgrade_checked(),
                (Held::Upgradable, Held::Read) => lock.downgrade_upgradable_checked(),
                _ => Ok(()),
            }
        };
        changed.map_err(|error| format!("not changed: {error}"))
    }

    fn give_back(&self, actor: &mut Actor, held: Held) -> Verdict {
        actor.releases(self.object.spot);
        let fairly = actor.dice.u32(0..16) == 0;
        let lock = self.object.get();
        // SAFETY: the caller holds it in this way.
        unsafe {
            match held {
                Held::Read if fairly => lock.unlock_shared_fair(),
                Held::Read => lock.unlock_shared(),
                Held::Upgradable => {
                    let done = lock.unlock_upgradable_checked();
                    done.map_err(|error| format!("not given back: {error}"))?;
                }
                Held::Written if fairly => lock.unlock_exclusive_fair(),
                Held::Written => lock.unlock_exclusive(),
            }
        }
        Ok(())
    }

    fn check_as_writer(&self) -> Verdict {
        let lock = self.object.get();
        let answers = [lock.try_read(), lock.try_write(0), lock.try_read_upgradably()];
        match answers == [Err(RwLockError::Busy); 3] {
            true => Ok(()),
            false => Err(format!("it answers its writer {answers:?}")),
        }
    }

    fn renew(&self) -> Verdict {
        if !self.object.get().is_idle() {
            return Err(format!("not idle, though unused: {:?}", self.object.get()));
        }
        self.object.renew(RawRwLock::with(self.preference, self.object.scope));
        Ok(())
    }
}
