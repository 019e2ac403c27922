//! What the name of a variant says about it: whether it is ours, a peer, and whose it is.

/// The prefix of the drop-in's names.
pub const DROP_IN: &str = "drop-in";

/// Whether the variant with this name is ours: the library's, or the drop-in.
pub fn is_ours(name: &str) -> bool {
    name.starts_with("waitword") || name.starts_with(DROP_IN)
}

/// Whether it is a peer that ours is measured against: a present-day implementation by others of
/// the same operation. The historical implementations are not present-day, a priority-inheriting
/// lock does more, and `getppid` does nothing: it is the floor of any call.
pub fn is_peer(name: &str) -> bool {
    const NO_PEERS: &[&str] = &[
        "nptl",
        "futex(2), wake all",
        "getppid",
        // Derived from other contenders' figures, and a limit.
        "best ",
        "allowed",
    ];
    let is_none = NO_PEERS.iter().any(|none| name.starts_with(none));
    !is_ours(name) && !is_none && !name.ends_with("PI")
}

/// How a peer differs here from normal use, at its cost. Shown wherever its figures appear.
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

/// The name, with a star appended if there is a [`remark`].
pub fn marked(name: &str) -> String {
    let star = if remark(name).is_some() { "*" } else { "" };
    format!("{name}{star}")
}

/// The remarks on these names, without duplicates.
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

/// Whose implementation it is. Contenders with the same owner are the same lock underneath and
/// count once. In Debian's C++ library the mutex, the condition variable and the shared mutex are
/// glibc's.
pub fn owner(name: &str) -> &str {
    match name.split(", ").next().unwrap_or(name) {
        "C++ std" => "glibc",
        owner => owner,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_ways_floors_and_what_does_more_are_no_peers() {
        for name in ["glibc", "std", "futex(2)", "futex(2), requeue", "C++ std", "plain"] {
            assert!(is_peer(name) && !is_ours(name), "{name}");
        }
        for name in ["nptl-orig", "nptl, prefer writer", "futex(2), wake all", "glibc, PI"] {
            assert!(!is_peer(name) && !is_ours(name), "{name}");
        }
        assert!(!is_peer("getppid") && !is_peer("best peer of each"));
        assert!(is_ours("waitword TO") && is_ours("drop-in, PI"));
    }

    #[test]
    fn what_is_not_as_its_users_have_it_is_marked() {
        assert_eq!((marked("std"), marked("glibc")), ("std*".into(), "glibc".into()));
        assert_eq!(marked("C++ std"), "C++ std*");
        assert_eq!(remarks(["std", "glibc", "std"]).len(), 1);
        assert!(remarks(["C++ std"])[0].starts_with("C++ std*: glibc's"));
        // Decided by the name alone, because a stored report may come from another build.
        assert!(remark("absl").is_none() && remark("absl, Debian's").is_some());
        assert_eq!(owner("absl, Debian's"), "absl");
    }

    #[test]
    fn kinds_of_a_lock_have_one_owner() {
        for name in ["glibc", "glibc, adaptive", "glibc, prefer writer", "C++ std"] {
            assert_eq!(owner(name), "glibc", "{name}");
        }
        assert_eq!(owner("C++ atomic wait"), "C++ atomic wait");
    }
}
