//! The user's settings.

use crate::names::is_ours;
use std::time::Duration;

/// Published figures come from measurements of at least this length.
pub const WINDOW: Duration = Duration::from_millis(300);

/// The user's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How often every variant is measured.
    pub rounds: usize,
    /// Numbers of waiting threads in the workloads that have many; one case each.
    pub threads: Vec<usize>,
    /// Of each 1024 sections under a lock, this many sleep for 1 µs with the lock held, in the
    /// workloads where many threads want one lock.
    pub naps: u32,
    /// Also run the cases that take long or very many threads.
    pub full: bool,
    /// Only programs whose names contain one of these; if empty, all programs.
    pub programs: Vec<String>,
    /// Only peers whose names contain one of these, together with ours and their baselines; if
    /// `None`, all peers.
    pub peers: Option<Vec<String>>,
    /// Also measure an identical twin of every variant.
    pub twice: bool,
    /// Seed for the order of the contenders in each round.
    pub seed: u64,
    /// Length of a timed measurement in the workloads on locks. It must cover many rounds of the
    /// scheduler; with 16 threads on two CPUs, one such round takes some 30 ms.
    pub window: Duration,
    /// Also count rounds during which other processes used the machine. Never publish such figures.
    pub keep_disturbed: bool,
}

impl Settings {
    /// Whether the user has chosen the numbers of threads.
    pub(crate) fn has_threads(&self) -> bool {
        self.threads != Self::default().threads
    }

    /// The numbers of threads: the user's, all of them with `full`, otherwise the usual ones.
    pub(crate) fn threads_or<'a>(&'a self, usual: &'a [usize], full: &'a [usize]) -> &'a [usize] {
        if self.has_threads() {
            &self.threads
        } else if self.full {
            full
        } else {
            usual
        }
    }

    /// Whether the program with this name was requested.
    pub fn wants_program(&self, name: &str) -> bool {
        self.programs.is_empty() || self.programs.iter().any(|part| has(name, part))
    }

    /// Whether the variant with this name is to be measured for its own sake. Ours always are.
    pub fn wants_variant(&self, name: &str) -> bool {
        let Some(peers) = &self.peers else {
            return true;
        };
        is_ours(name) || peers.iter().any(|part| has(name, part))
    }
}

/// Whether `part` occurs in `name`, ignoring case. This is how users select names.
pub fn has(name: &str, part: &str) -> bool {
    name.to_lowercase().contains(&part.to_lowercase())
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            rounds: 7,
            threads: vec![2, 16, 64, 512],
            naps: 0,
            full: false,
            programs: Vec::new(),
            peers: None,
            twice: false,
            seed: 0,
            window: if cfg!(test) { Duration::from_millis(10) } else { WINDOW },
            // The tests of this crate and of those above check whether work is done, while other
            // work runs.
            keep_disturbed: cfg!(test),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_asked_for_by_a_part_of_their_names() {
        let settings = |parts: &[&str]| Settings {
            programs: parts.iter().map(|part| (*part).to_owned()).collect(),
            ..Settings::default()
        };
        assert!(settings(&[]).wants_program("xz"));
        assert!(settings(&["redis", "XZ"]).wants_program("xz, 4 threads"));
        assert!(!settings(&["redis"]).wants_program("xz"));
    }
}
