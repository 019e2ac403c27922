//! Mutexes and condvars of every sort, for the scenarios that torture them.

use super::object::Object;
use crate::actor::Actor;
use crate::context::Context;
use crate::count::Count;
use crate::spot::Spot;
use waitword::{
    Kind, LockError, PosixFlavour, PosixMutexOptions, RawCondvar, RawPosixMutex, Scope,
};

/// All that is chosen when a mutex is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sort {
    pub(super) flavour: PosixFlavour,
    pub(super) kind: Kind,
    pub(super) scope: Scope,
}

impl Sort {
    /// Each of them.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let flavours = [
            PosixFlavour::Adaptive,
            PosixFlavour::Throughput,
            PosixFlavour::WaitWake,
            PosixFlavour::PriorityInheriting,
        ];
        let kinds = [Kind::Normal, Kind::Recursive, Kind::ErrorChecking];
        let scopes = [Scope::Private, Scope::Shared];
        flavours.into_iter().flat_map(move |flavour| {
            kinds.into_iter().flat_map(move |kind| {
                scopes.map(|scope| Self {
                    flavour,
                    kind,
                    scope,
                })
            })
        })
    }

    pub(super) fn is_pi(self) -> bool {
        self.flavour == PosixFlavour::PriorityInheriting
    }

    /// Whether other threads may overtake a waiter only for a bounded time.
    pub(super) fn is_bounded(self) -> bool {
        matches!(
            self.flavour,
            PosixFlavour::Adaptive | PosixFlavour::Throughput
        ) && self.scope == Scope::Private
    }

    /// Whether it knows which thread holds it.
    pub(super) fn has_owner(self) -> bool {
        self.is_pi() || self.kind != Kind::Normal
    }

    /// Without the scope.
    pub(super) fn name(self) -> String {
        format!("{:?} {:?} mutex", self.kind, self.flavour)
    }

    pub(super) fn make(self) -> RawPosixMutex {
        let Self {
            flavour,
            kind,
            scope,
        } = self;
        let options = PosixMutexOptions::new()
            .flavour(flavour)
            .kind(kind)
            .scope(scope);
        options.build_raw()
    }
}

/// A mutex of some sort.
pub(super) struct Lock {
    pub(super) sort: Sort,
    object: Object<RawPosixMutex>,
}

impl Lock {
    pub(super) fn new(context: &Context, sort: Sort) -> Self {
        let object = Object::new(context, &sort.name(), 32, sort.scope, sort.make());
        Self { sort, object }
    }

    pub(super) fn mutex(&self) -> &RawPosixMutex {
        self.object.get()
    }

    pub(super) fn spot(&self) -> Spot {
        self.object.spot
    }

    /// After all threads have ended: checks that no trace of them is left. Then the mutex is made
    /// again.
    pub(super) fn renew(&self) -> Result<(), String> {
        let destroyed = self.mutex().destroy();
        self.object.renew(self.sort.make());
        destroyed.map_err(|error| format!("a mutex that no thread uses: {error}"))
    }
}

/// Like [`Lock::renew`], for a condvar.
pub(super) fn renew_condvar(object: &Object<RawCondvar>) -> Result<(), String> {
    let destroyed = object.get().destroy();
    object.renew(RawCondvar::with_scope(object.scope));
    destroyed.map_err(|error| format!("a condvar that no thread uses: {error}"))
}

/// Whether the call succeeded. `false`: its deadline passed. All other errors are violations.
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
