//! What the variants are called, for those who want to choose among them.

use super::{BenchCondvar, BenchMutex, BenchRwLock, every_condvar, every_mutex, every_rwlock};
use crate::ops::{Futexes as _, Kernel};
use std::collections::BTreeSet;

/// How the drop-in's names begin.
pub const DROP_IN: &str = "drop-in";

/// Whether the variant of this name is ours: the library's, or the drop-in.
pub fn is_ours(name: &str) -> bool {
    name.starts_with("waitword") || name.starts_with(DROP_IN)
}

/// Whether it is what ours is measured against: somebody else's, of today, that does the same. What the patches replaced is not of
/// today, a priority-inheriting lock does more, and `getppid` does nothing: it is the floor of any call.
pub fn is_peer(name: &str) -> bool {
    const NO_PEERS: &[&str] = &[
        "nptl",
        "futex(2), wake all",
        "getppid",
        // Made of others' figures, and a limit.
        "best ",
        "allowed",
    ];
    let is_none = NO_PEERS.iter().any(|none| name.starts_with(none));
    !is_ours(name) && !is_none && !name.ends_with("PI")
}

/// The names of all variants that are locks, and the kernel's futex. There are more: the lengths and widths of ours, for instance.
pub fn names() -> BTreeSet<String> {
    fn mutex<M: BenchMutex>() -> &'static str {
        M::NAME
    }
    fn condvar<C: BenchCondvar>() -> &'static str {
        C::NAME
    }
    fn rwlock<L: BenchRwLock>() -> &'static str {
        L::NAME
    }
    let mut names: BTreeSet<String> = BTreeSet::from([Kernel::<true>.name()]);
    for list in [
        every_mutex!(mutex()),
        every_condvar!(condvar()),
        every_rwlock!(rwlock()),
    ] {
        names.extend(list.into_iter().map(str::to_owned));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_ways_floors_and_what_does_more_are_no_peers() {
        for name in [
            "glibc",
            "std",
            "futex(2)",
            "futex(2), requeue",
            "C++ std",
            "plain",
        ] {
            assert!(is_peer(name) && !is_ours(name), "{name}");
        }
        for name in [
            "nptl-orig",
            "nptl, prefer writer",
            "futex(2), wake all",
            "glibc, PI",
        ] {
            assert!(!is_peer(name) && !is_ours(name), "{name}");
        }
        assert!(!is_peer("getppid") && !is_peer("best peer of each"));
        assert!(is_ours("waitword TO") && is_ours("drop-in, PI"));
    }

    #[test]
    fn names_are_of_mutexes_condvars_and_rwlocks() {
        let names = names();
        for name in [
            "glibc",
            "futex(2)",
            "nptl-wake_op",
            "std",
            "waitword, readers first",
        ] {
            assert!(names.contains(name), "{name}: {names:?}");
        }
    }
}
