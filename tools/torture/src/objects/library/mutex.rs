//! Mutexes of every flavour, kind and scope.

use super::object::Object;
use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::count::Count;
use crate::fault::kind::Fault;
use crate::objects::traits::{Attempt, Lock};
use crate::spot::Spot;
use waitword::{Deadline, Kind, LockError, PosixFlavour, PosixMutexOptions, RawPosixMutex, Scope};

/// All that is chosen when a mutex is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sort {
    pub(crate) flavour: PosixFlavour,
    pub(crate) kind: Kind,
    pub(crate) scope: Scope,
}

impl Sort {
    /// Each of them.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let flavours = [
            PosixFlavour::Adaptive,
            PosixFlavour::Throughput,
            PosixFlavour::WaitWake,
            PosixFlavour::PriorityInheriting,
        ];
        let kinds = [Kind::Normal, Kind::Recursive, Kind::ErrorChecking];
        let scopes = [Scope::Private, Scope::Shared];
        flavours.into_iter().flat_map(move |flavour| {
            kinds
                .into_iter()
                .flat_map(move |kind| scopes.map(|scope| Self { flavour, kind, scope }))
        })
    }

    pub(crate) fn is_pi(self) -> bool {
        self.flavour == PosixFlavour::PriorityInheriting
    }

    /// Whether it knows which thread holds it.
    pub(crate) fn has_owner(self) -> bool {
        self.is_pi() || self.kind != Kind::Normal
    }

    /// Without the scope.
    pub(crate) fn name(self) -> String {
        format!("{:?} {:?} mutex", self.kind, self.flavour)
    }

    pub(crate) fn make(self) -> RawPosixMutex {
        let Self { flavour, kind, scope } = self;
        let options = PosixMutexOptions::new().flavour(flavour).kind(kind).scope(scope);
        options.build_raw()
    }
}

/// A mutex of some sort.
pub(crate) struct Mutex {
    pub(super) sort: Sort,
    object: Object<RawPosixMutex>,
}

impl Mutex {
    fn new(context: &Context, sort: Sort) -> Self {
        let object = Object::new(context, &sort.name(), 32, sort.scope, sort.make());
        Self { sort, object }
    }

    /// A process-shared one that lies somewhere already.
    pub(crate) fn at(mutex: &'static RawPosixMutex, sort: Sort, spot: Spot) -> Self {
        let object = Object::at(mutex, spot);
        Self { sort, object }
    }

    pub(super) fn raw(&self) -> &RawPosixMutex {
        self.object.get()
    }
}

impl Lock for Mutex {
    fn all(context: &Context) -> Result<Vec<Self>, String> {
        Ok(Sort::all().map(|sort| Self::new(context, sort)).collect())
    }

    fn name(&self) -> String {
        format!("{:?} {}", self.sort.scope, self.sort.name())
    }

    fn spot(&self) -> Spot {
        self.object.spot
    }

    fn take(&self, actor: &mut Actor, attempt: Attempt) -> Result<bool, String> {
        let (mutex, spot) = (self.raw(), self.spot());
        let taken = match attempt {
            Attempt::Try => mutex.try_lock(),
            Attempt::Timed => {
                let soon = actor.tiny_deadline();
                let locked = actor.wait_at(spot, true, || mutex.lock_until(soon));
                let taken = in_time(actor, locked)?;
                not_early(actor, taken, &soon)?;
                taken
            }
            Attempt::Patient => {
                let checked = actor.dice.u32(0..6) == 0;
                let locked = actor.wait_at(spot, false, || match checked {
                    true => mutex.lock_checked(),
                    false => {
                        mutex.lock();
                        Ok(())
                    }
                });
                locked.map_err(|error| format!("not locked: {error}"))?;
                true
            }
        };
        if taken {
            actor.holds(spot);
        }
        Ok(taken)
    }

    fn give_back(&self, actor: &mut Actor) -> Verdict {
        let mutex = self.raw();
        actor.releases(self.spot());
        // SAFETY: the caller has locked it.
        unsafe {
            match actor.dice.u32(0..16) {
                0 | 1 => mutex.unlock_fair(),
                2 => {
                    mutex.bump();
                    mutex.unlock();
                }
                _ => mutex.unlock(),
            }
        }
        Ok(())
    }

    fn is_recursive(&self) -> bool {
        self.sort.kind == Kind::Recursive
    }

    fn check_as_owner(&self) -> Verdict {
        let mutex = self.raw();
        if self.sort.has_owner() && mutex.lock_checked() != Err(LockError::Deadlock) {
            return Err("a relock by the owner was not detected".to_owned());
        }
        if mutex.try_lock() || !mutex.is_locked() {
            return Err("a held mutex was free".to_owned());
        }
        Ok(())
    }

    fn check_as_non_owner(&self) -> Verdict {
        if !self.sort.has_owner() {
            return Ok(());
        }
        // SAFETY: the mutex has an owner, so the call can detect this.
        match unsafe { self.raw().unlock_checked() } {
            Err(LockError::NotOwner) => Ok(()),
            other => Err(format!("a non-owner got {other:?}")),
        }
    }

    fn is_bounded(&self) -> bool {
        let flavour = self.sort.flavour;
        matches!(flavour, PosixFlavour::Adaptive | PosixFlavour::Throughput)
            && self.sort.scope == Scope::Private
    }

    fn renew(&self) -> Verdict {
        let destroyed = self.raw().destroy();
        self.object.renew(self.sort.make());
        destroyed.map_err(|error| format!("a mutex that no thread uses: {error}"))
    }
}

/// Whether the call succeeded. `false`: its deadline passed. All other errors are violations.
/// Fails if a wait that has taken nothing ended before its deadline.
pub(super) fn not_early(actor: &Actor, taken: bool, deadline: &Deadline) -> Verdict {
    // The clock may have been set back since.
    match taken || deadline.has_passed() || actor.has(Fault::Clock) {
        true => Ok(()),
        false => Err("a wait timed out too early".to_owned()),
    }
}

pub(super) fn in_time(actor: &Actor, result: Result<(), LockError>) -> Result<bool, String> {
    match result {
        Ok(()) => Ok(true),
        Err(LockError::TimedOut) => {
            actor.count(Count::Timeouts, 1);
            Ok(false)
        }
        Err(error) => Err(format!("it failed: {error}")),
    }
}
