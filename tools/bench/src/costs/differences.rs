//! What has changed between two tables.

use super::table::{COLUMNS, Row, Table};
use core::fmt;

/// The column that depends on the compiler.
const INSTRUCTIONS: usize = 0;
/// Instructions may differ by this percentage, or by `FEW`.
const PERCENT: u64 = 5;
const FEW: u64 = 3;

/// How one of our rows has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is in the old table only.
    Gone,
    /// It is in the new table only.
    New,
    /// A column, with its old and its new value.
    Differs(&'static str, u64, u64),
}

/// A row that has changed, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The row's chapter.
    pub chapter: String,
    /// The operation.
    pub what: String,
    /// The change.
    pub change: Change,
}

impl Difference {
    /// Whether both are about the same column, or both about the presence of the same row.
    pub fn is_about_the_same_as(&self, other: &Self) -> bool {
        let column = |change| match change {
            Change::Differs(column, ..) => column,
            Change::Gone | Change::New => "",
        };
        (&self.chapter, &self.what, column(self.change))
            == (&other.chapter, &other.what, column(other.change))
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, \"{}\": ", self.chapter, self.what)?;
        match self.change {
            Change::Gone => write!(f, "in the table, but not counted"),
            Change::New => write!(f, "not in the table: write the table again"),
            Change::Differs(column, was, is) => {
                write!(f, "{column}: was {was}, is {is}")?;
                if is < was {
                    write!(f, " (better: write the table again)")?;
                }
                Ok(())
            }
        }
    }
}

impl Table {
    /// Compares our rows with those of an older table, and finds rows that only one table has.
    /// Instructions are compared only if `instructions` is true: a build without optimization has
    /// other counts.
    pub fn differences_from(&self, old: &Self, instructions: bool) -> Vec<Difference> {
        let ours = |table: &Self| -> Vec<Row> {
            let rows = table.rows.iter().filter(|row| row.is_ours);
            rows.cloned().collect()
        };
        let (old, new) = (ours(old), ours(self));
        let find = |rows: &[Row], row: &Row| {
            let mut rows = rows.iter();
            let found = rows.find(|one| (&one.chapter, &one.what) == (&row.chapter, &row.what));
            found.map(|row| row.costs)
        };
        let mut differences = Vec::new();
        for row in &new {
            let Some(before) = find(&old, row) else {
                differences.push(row.with(Change::New));
                continue;
            };
            let values = before.values().into_iter().zip(row.costs.values());
            for (column, (was, is)) in values.enumerate() {
                let is_same = if column == INSTRUCTIONS {
                    !instructions || was.abs_diff(is) <= FEW.max(was * PERCENT / 100)
                } else {
                    was == is
                };
                if !is_same {
                    differences.push(row.with(Change::Differs(COLUMNS[column], was, is)));
                }
            }
        }
        let gone = old.iter().filter(|row| find(&new, row).is_none());
        differences.extend(gone.map(|row| row.with(Change::Gone)));
        differences
    }
}

impl Row {
    fn with(&self, change: Change) -> Difference {
        Difference { chapter: self.chapter.clone(), what: self.what.clone(), change }
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::Costs;
    use super::super::table::sample::table;
    use super::*;

    /// The differences, as text, after one number of the table has changed.
    fn differences(row: usize, change: impl FnOnce(&mut Costs)) -> Vec<String> {
        let mut changed = table();
        change(&mut changed.rows[row].costs);
        let differences = changed.differences_from(&table(), true);
        differences.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_same_table_has_no_differences() {
        assert_eq!(table().differences_from(&table(), true), []);
    }

    #[test]
    fn one_atomic_operation_more_is_found_and_named() {
        let text = differences(0, |costs| costs.atomic += 1);
        assert_eq!(text, ["mutex, \"lock, unlock\": atomic: was 2, is 3"]);
    }

    #[test]
    fn a_change_to_the_better_says_what_to_do() {
        let text = differences(1, |costs| costs.calls -= 1);
        let better = "mutex, \"lock, sleeps\": calls: was 2, is 1 (better: write the table again)";
        assert_eq!(text, [better]);
    }

    #[test]
    fn instructions_may_differ_a_little_and_no_more() {
        assert_eq!(differences(0, |costs| costs.instructions += 3), [""; 0]);
        assert_eq!(differences(0, |costs| costs.instructions += 4).len(), 1);
        assert_eq!(differences(1, |costs| costs.instructions -= 50), [""; 0]);
        assert_eq!(differences(1, |costs| costs.instructions -= 51).len(), 1);
    }

    #[test]
    fn instructions_are_not_compared_if_that_is_asked_for() {
        let mut changed = table();
        changed.rows[0].costs.instructions += 1000;
        assert_eq!(changed.differences_from(&table(), false), []);
        changed.rows[0].costs.own += 1;
        assert_eq!(changed.differences_from(&table(), false).len(), 1);
    }

    #[test]
    fn rows_that_come_and_go_are_found_but_for_the_peers() {
        let (whole, mut part) = (table(), table());
        part.rows.truncate(1);
        let gone: Vec<_> = part.differences_from(&whole, true);
        assert!(gone.iter().all(|difference| difference.change == Change::Gone));
        assert_eq!(gone.len(), 2);
        let new = whole.differences_from(&part, true);
        assert!(new.iter().all(|difference| difference.change == Change::New));
        assert_eq!(new.len(), 2);
        assert_eq!(differences(2, |costs| costs.atomic += 1), [""; 0]);
    }
}
