//! The table of costs.

use serde::Serialize;

/// What an operation costs its thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Costs {
    /// Instructions executed outside the kernel.
    pub instructions: u64,
    /// Atomic read-modify-writes and fences.
    pub atomic: u64,
    /// System calls.
    pub calls: u64,
    /// How often the thread slept.
    pub switches: u64,
    /// Cache lines of the lock that it wrote.
    pub own: u64,
    /// Other cache lines that it wrote.
    pub other: u64,
}

pub(super) const COLUMNS: [&str; 6] =
    ["instructions", "atomic", "calls", "switches", "own", "other"];
impl Costs {
    pub(super) fn values(self) -> [u64; 6] {
        let Self { instructions, atomic, calls, switches, own, other } = self;
        [instructions, atomic, calls, switches, own, other]
    }

    pub(super) fn of([instructions, atomic, calls, switches, own, other]: [u64; 6]) -> Self {
        Self { instructions, atomic, calls, switches, own, other }
    }
}

/// An operation and its costs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The chapter.
    pub chapter: String,
    /// The operation; unique in its chapter.
    pub what: String,
    /// Whether the operation is ours, so that a change in it is our doing.
    pub is_ours: bool,
    /// What it costs.
    pub costs: Costs,
}

/// All rows, chapter by chapter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Table {
    /// The compiler and the C library that were used.
    pub counted_with: String,
    /// The rows.
    pub rows: Vec<Row>,
}

impl Table {
    /// An empty table, counted by this program.
    pub(super) fn new() -> Self {
        let compiler = env!("WAITWORD_COMPILER");
        let library = crate::machine::glibc_version();
        Self { counted_with: format!("{compiler}; {library}"), rows: Vec::new() }
    }
}

/// For tests of what is done with tables.
#[cfg(test)]
pub(super) mod sample {
    use super::*;

    pub(in crate::costs) fn row(what: &str, is_ours: bool, values: [u64; 6]) -> Row {
        Row {
            chapter: "mutex".to_owned(),
            what: what.to_owned(),
            is_ours,
            costs: Costs::of(values),
        }
    }

    /// A table with two chapters.
    pub(in crate::costs) fn table() -> Table {
        let mut last = row("wake, no waiters", true, [56, 1, 0, 0, 0, 0]);
        last.chapter = "futex".to_owned();
        Table {
            rows: vec![
                row("lock, unlock", true, [15, 2, 0, 0, 1, 0]),
                row("lock, sleeps", true, [1000, 8, 2, 1, 1, 2]),
                row("lock, unlock: glibc", false, [61, 2, 0, 0, 1, 0]),
                last,
            ],
            ..Table::new()
        }
    }
}
