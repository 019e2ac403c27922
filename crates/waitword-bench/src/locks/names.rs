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

/// What of a peer is not as its users have it, and costs it something: to be said wherever its
/// figures stand.
pub fn remark(name: &str) -> Option<&'static str> {
    let of = |peer: &str| name == peer || name.starts_with(&format!("{peer},"));
    if of("std") {
        Some("its guard is kept in memory, on a line of its own, and not on the stack")
    } else if of("C++ std") {
        Some("glibc's, through a call more")
    } else if of("absl, Debian's") {
        Some("Debian's build, without NDEBUG: its assertions are on")
    } else {
        None
    }
}

/// The name with a star, if there is a [`remark`].
pub fn marked(name: &str) -> String {
    let star = if remark(name).is_some() { "*" } else { "" };
    format!("{name}{star}")
}

/// The remarks on those of these names that have one, each once.
pub fn remarks<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in names {
        let Some(remark) = remark(name) else { continue };
        let text = format!("{name}*: {remark}");
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all
}

/// Whose work it is: what has the same is the same lock beneath, and counts once. In Debian's C++
/// library the mutex, the condition variable and the shared mutex are glibc's.
pub fn owner(name: &str) -> &str {
    match name.split(", ").next().unwrap_or(name) {
        "C++ std" => "glibc",
        owner => owner,
    }
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
    fn what_is_not_as_its_users_have_it_is_marked() {
        assert_eq!(
            (marked("std"), marked("glibc")),
            ("std*".into(), "glibc".into())
        );
        assert_eq!(marked("C++ std"), "C++ std*");
        assert_eq!(remarks(["std", "glibc", "std"]).len(), 1);
        assert!(remarks(["C++ std"])[0].starts_with("C++ std*: glibc's"));
        // By the name alone: a stored report may be another build's.
        assert!(remark("absl").is_none() && remark("absl, Debian's").is_some());
        assert_eq!(owner("absl, Debian's"), "absl");
    }

    #[test]
    fn kinds_of_a_lock_have_one_owner() {
        for name in [
            "glibc",
            "glibc, adaptive",
            "glibc, prefer writer",
            "C++ std",
        ] {
            assert_eq!(owner(name), "glibc", "{name}");
        }
        assert_eq!(owner("C++ atomic wait"), "C++ atomic wait");
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
