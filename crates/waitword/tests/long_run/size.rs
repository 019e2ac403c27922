//! The size of the process, in everything that could grow.

use std::fmt;
use waitword::{probe, table};

/// Memory that the C library may keep for later, and the error of the kernel's counters.
const SLACK_KIB: u64 = 3 << 10;
/// The C library keeps some stacks of ended threads, and joins or splits mappings of its heaps.
const SLACK_MAPPINGS: u64 = 24;

/// Taken while no team runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    resident_kib: u64,
    mappings: u64,
    buckets: u64,
    table_and_parkers_bytes: u64,
    kernel_hash_slots: u64,
    waiters: u64,
    counted: u64,
    parkers_in_use: u64,
}

impl Size {
    pub(crate) fn now() -> Self {
        let read = |file| std::fs::read_to_string(file).expect(file);
        let rollup = read("/proc/self/smaps_rollup");
        let resident = rollup
            .lines()
            .find_map(|line| line.strip_prefix("Rss:"))
            .and_then(|rest| rest.split_whitespace().next())
            .expect("resident memory");
        let found = table::snapshot(&mut []);
        assert_eq!(found.locked_buckets, 0);
        Self {
            resident_kib: resident.parse().expect("a number"),
            mappings: read("/proc/self/maps").lines().count() as u64,
            buckets: table::buckets() as u64,
            table_and_parkers_bytes: table::mapped_bytes() as u64,
            // On a kernel without this table, nothing there can grow.
            kernel_hash_slots: probe::private_hash_slots().unwrap_or(0) as u64,
            waiters: found.waiters as u64,
            counted: found.counted as u64,
            parkers_in_use: found.parkers as u64,
        }
    }

    /// What is larger in `later` than in `self`, in words.
    pub(crate) fn growth(&self, later: &Self) -> Vec<String> {
        let grown = |(what, before, after, slack): (&str, u64, u64, u64)| {
            (after > before + slack).then(|| format!("{what}: {before}, then {after}"))
        };
        [
            ("resident KiB", self.resident_kib, later.resident_kib, SLACK_KIB),
            ("mappings", self.mappings, later.mappings, SLACK_MAPPINGS),
            ("buckets", self.buckets, later.buckets, 0),
            (
                "bytes of tables and parkers",
                self.table_and_parkers_bytes,
                later.table_and_parkers_bytes,
                0,
            ),
            ("slots of the kernel's hash", self.kernel_hash_slots, later.kernel_hash_slots, 0),
            // No team runs, neither then nor now.
            ("waiters", 0, later.waiters, 0),
            ("counted", 0, later.counted, 0),
            ("parkers in use", 0, later.parkers_in_use, 0),
        ]
        .into_iter()
        .filter_map(grown)
        .collect()
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} KiB resident, {} mappings, {} buckets, {} KiB of tables and parkers, {} slots in \
             the kernel, {} waiters, {} counted, {} parkers in use",
            self.resident_kib,
            self.mappings,
            self.buckets,
            self.table_and_parkers_bytes >> 10,
            self.kernel_hash_slots,
            self.waiters,
            self.counted,
            self.parkers_in_use
        )
    }
}
