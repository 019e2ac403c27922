//! Many waiters and wakers at every width and in both scopes, and bugs of other futexes.

mod crowds;
mod historic;
mod historic_races;

use waitword::{Futex, Scope, probe};
use waitword_testkit::Atomic;

/// The scopes in which this kernel can wait for such words: before Linux 5.16, not shared words of
/// 64 bits.
fn scopes<A: Atomic>() -> impl Iterator<Item = Scope> {
    let can_share = A::BITS < 64 || probe::futex_waitv().is_there();
    let shared = can_share.then_some(Scope::Shared);
    [Some(Scope::Private), shared].into_iter().flatten()
}

/// A word of this scope.
fn futex<A: Atomic>(word: &A, scope: Scope) -> Futex<'_, A> {
    match scope {
        Scope::Private => Futex::private(word),
        Scope::Shared => Futex::shared(word),
    }
}
