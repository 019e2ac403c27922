//! The rows of a lock, and the chapters that they make.

use crate::costs::operation::Operation;
use crate::names::is_ours;

/// Suffix of the names of our locks that spin.
pub(super) const SPINNING: &str = ", spinning";

/// The rows of one lock.
pub(super) struct Lock {
    pub(super) name: String,
    pub(super) rows: Vec<Row>,
}

/// Name of the row, the operation, and what is done before it.
pub(super) type Row = (&'static str, fn(), fn());

/// Sorts the rows by operation; each operation has one row per lock.
pub(super) fn side_by_side(chapter: &'static str, locks: Vec<Lock>) -> Vec<Operation> {
    let rows = locks.iter().map(|lock| lock.rows.len()).max().unwrap_or(0);
    let operations = (0..rows).flat_map(|row| {
        let there = locks.iter().filter(move |lock| lock.rows.len() > row);
        there.map(move |lock| {
            let (what, operation, prepare) = lock.rows[row];
            Operation {
                chapter,
                what: format!("{what}: {}", lock.name),
                // The number of spin iterations depends on the machine.
                is_ours: is_ours(&lock.name) && !lock.name.ends_with(SPINNING),
                prepare,
                operation,
            }
        })
    });
    operations.collect()
}
