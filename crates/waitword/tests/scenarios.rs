//! Crowds of waiters and wakers at every width and in both worlds, and the bugs that others had in their
//! futexes.

mod support;

#[path = "scenarios/crowds.rs"]
mod crowds;
#[path = "scenarios/historic.rs"]
mod historic;
#[path = "scenarios/historic_races.rs"]
mod historic_races;

use support::atomic::Atomic;
use waitword::{Futex, Scope};

const SCOPES: [Scope; 2] = [Scope::Private, Scope::Shared];

/// A word of this scope.
fn futex<A: Atomic>(word: &A, scope: Scope) -> Futex<'_, A> {
    match scope {
        Scope::Private => Futex::private(word),
        Scope::Shared => Futex::shared(word),
    }
}
