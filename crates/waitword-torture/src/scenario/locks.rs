//! Mutexes and condvars of every sort, for the scenarios that torture them.

use crate::actor::Actor;
use crate::board::Count;
use crate::context::Context;
use crate::spot::{Spot, Word};
use std::ptr::NonNull;
use waitword::{Flavour, Kind, LockError, MutexOptions, RawCondvar, RawMutex, Scope};

/// All that is chosen as a mutex is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sort {
    pub(super) flavour: Flavour,
    pub(super) kind: Kind,
    pub(super) scope: Scope,
}

impl Sort {
    /// Each of them.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let flavours = [
            Flavour::Adaptive,
            Flavour::Throughput,
            Flavour::WaitWake,
            Flavour::PriorityInheriting,
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
        self.flavour == Flavour::PriorityInheriting
    }

    /// Whether others may have it past one who waits for a bounded time only.
    pub(super) fn is_bounded(self) -> bool {
        matches!(self.flavour, Flavour::Adaptive | Flavour::Throughput)
            && self.scope == Scope::Private
    }

    /// Whether it knows who holds it.
    pub(super) fn has_owner(self) -> bool {
        self.is_pi() || self.kind != Kind::Normal
    }

    pub(super) fn name(self) -> String {
        format!("{:?} {:?} {:?} mutex", self.scope, self.kind, self.flavour)
    }

    pub(super) fn make(self) -> RawMutex {
        let Self {
            flavour,
            kind,
            scope,
        } = self;
        let options = MutexOptions::new().flavour(flavour).kind(kind).scope(scope);
        options.build_raw()
    }
}

/// A mutex that is made anew for each round, at the same place.
pub(super) struct Lock {
    pub(super) sort: Sort,
    mutex: NonNull<RawMutex>,
    pub(super) spot: Spot,
}

// SAFETY: a mutex is for all threads; it is made anew while nobody uses it.
unsafe impl Sync for Lock {}
// SAFETY: as above.
unsafe impl Send for Lock {}

impl Lock {
    pub(super) fn new(context: &Context, sort: Sort) -> Self {
        let mutex = NonNull::from(Box::leak(Box::new(sort.make())));
        // SAFETY: leaked, and its first word is an atomic of 32 bits.
        let word = unsafe { Word::at(mutex.as_ptr().cast(), 32) };
        let spot = context.name_word(&sort.name(), word, sort.scope);
        Self { sort, mutex, spot }
    }

    pub(super) fn mutex(&self) -> &RawMutex {
        // SAFETY: never freed, and made anew only while nobody uses it.
        unsafe { self.mutex.as_ref() }
    }

    /// When all are gone: nothing of them is left. Then it is made anew.
    pub(super) fn renew(&self) -> Result<(), String> {
        let destroyed = self.mutex().destroy();
        // SAFETY: nobody uses it.
        unsafe { self.mutex.write(self.sort.make()) };
        destroyed.map_err(|error| format!("a {} that nobody uses: {error}", self.sort.name()))
    }
}

/// A condvar, likewise.
pub(super) struct Bell {
    scope: Scope,
    condvar: NonNull<RawCondvar>,
    pub(super) spot: Spot,
}

// SAFETY: as that of a lock.
unsafe impl Sync for Bell {}
// SAFETY: as above.
unsafe impl Send for Bell {}

impl Bell {
    pub(super) fn new(context: &Context, name: &str, scope: Scope) -> Self {
        let condvar = NonNull::from(Box::leak(Box::new(RawCondvar::with_scope(scope))));
        // SAFETY: leaked; its first half is read by the report alone, and written as a whole by atomics.
        let word = unsafe { Word::at(condvar.as_ptr().cast(), 64) };
        let spot = context.name_word(&format!("{scope:?} condvar `{name}`"), word, scope);
        Self {
            scope,
            condvar,
            spot,
        }
    }

    pub(super) fn scope(&self) -> Scope {
        self.scope
    }

    pub(super) fn condvar(&self) -> &RawCondvar {
        // SAFETY: never freed, and made anew only while nobody uses it.
        unsafe { self.condvar.as_ref() }
    }

    /// As that of a lock.
    pub(super) fn renew(&self) -> Result<(), String> {
        let destroyed = self.condvar().destroy();
        // SAFETY: nobody uses it.
        unsafe { self.condvar.write(RawCondvar::with_scope(self.scope)) };
        destroyed.map_err(|error| format!("a condvar that nobody uses: {error}"))
    }
}

/// Whether no deadline passed instead; all other errors are wrong.
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
