//! The table of costs: Markdown for people, and the reference for a later run.
//!
//! The file itself explains what is exact and what may vary (`ABOUT`). It ends with the number of
//! its rows, so that a truncated file is detected.

use core::fmt::{self, Write as _};
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

const COLUMNS: [&str; 6] = [
    "instructions",
    "atomic",
    "calls",
    "switches",
    "own",
    "other",
];
/// The column that depends on the compiler.
const INSTRUCTIONS: usize = 0;
/// Instructions may differ by this percentage, or by `FEW`.
const PERCENT: u64 = 5;
const FEW: u64 = 3;

impl Costs {
    fn values(self) -> [u64; 6] {
        let Self {
            instructions,
            atomic,
            calls,
            switches,
            own,
            other,
        } = self;
        [instructions, atomic, calls, switches, own, other]
    }

    fn of([instructions, atomic, calls, switches, own, other]: [u64; 6]) -> Self {
        Self {
            instructions,
            atomic,
            calls,
            switches,
            own,
            other,
        }
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

/// The file is not a table of costs, or not a complete one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Line number from 1, or 0 for the whole file.
    line: usize,
    why: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}", self.why),
            line => write!(f, "line {line}: {}", self.why),
        }
    }
}

impl std::error::Error for Unreadable {}

/// The text at the top of the file.
const ABOUT: &str = "\
# What each operation costs

These numbers are counted, not timed: each operation is single-stepped, so the numbers do not depend
on what else the machine does. Per operation, for the thread that does it:

* **instructions**: all executed outside the kernel and its vDSO, without the call of the operation
  itself;
* **atomic**: atomic read-modify-writes and full fences (a LOCK prefix, `xchg` with memory,
  `mfence`). Each takes a cache line away from all other CPUs;
* **calls**: system calls;
* **switches**: how often the thread sleeps;
* **own**, **other**: cache lines written, of the lock itself and elsewhere, without the thread's
  stack and thread-local storage.

`cargo run --release -- costs --write docs/costs.md` writes this file.
`cargo run --release -- costs --check docs/costs.md` counts again and reports what has changed. Only
our own rows are **checked**. All columns must match exactly except the instructions, which may
differ by 5 % or by 3, because they depend on the compiler. (With the same compiler they differ by
up to 3 % if an operation reads the clock.) The peers' rows describe the versions that were
installed; they are here for comparison.
The numbers of instructions belong to one compiler and one C library. On another machine with the
same compiler and library they differ by no more than that.

In the chapters that compare locks, each operation is one function call, or two (lock and unlock),
and the calls are counted. Rust's std unlocks through a guard that is kept beside the lock: this
accounts for one of its own lines and some of its instructions. Our locks do not spin (spinning is
turned off here), except in the rows with *spinning*, which show them as shipped. Peers spin as they
always do. Our spin is limited by the clock, to some 60 µs, and single-stepping takes longer than
that for a few iterations. So a row with *spinning* shows the minimum and is not checked. A peer
that counts its iterations (std: 100) is counted completely. The drop-in is loaded into a running
process here, not preloaded. A woken thread is held before it continues, so only the waker's work is
counted.

Valgrind's Callgrind counts the same instructions (see the top of
`tools/bench/src/costs.rs`).
";

impl Table {
    /// An empty table, counted by this program.
    pub(super) fn new() -> Self {
        let compiler = env!("WAITWORD_COMPILER");
        let library = crate::machine::glibc_version();
        Self {
            counted_with: format!("{compiler}; {library}"),
            rows: Vec::new(),
        }
    }

    /// Writes the table as Markdown.
    pub fn to_markdown(&self) -> String {
        let mut text = format!("{ABOUT}\n{COUNTED_WITH}{}.\n", self.counted_with);
        for rows in self.rows.chunk_by(|one, next| one.chapter == next.chapter) {
            let _ = write!(text, "\n## {}\n\n", rows[0].chapter);
            let widest = rows.iter().map(|row| row.what.chars().count()).max();
            let width = widest.unwrap_or(0).max(OPERATION.len());
            let line = |text: &mut String, first: &str, cells: [String; 7]| {
                let _ = write!(text, "| {first:width$} |");
                for (cell, name) in cells.iter().zip(COLUMNS.iter().chain([&CHECKED])) {
                    let _ = write!(text, " {cell:>width$} |", width = name.len());
                }
                text.push('\n');
            };
            let mut names = COLUMNS.map(str::to_owned).to_vec();
            names.push(CHECKED.to_owned());
            line(
                &mut text,
                OPERATION,
                core::array::from_fn(|column| names[column].clone()),
            );
            line(
                &mut text,
                &"-".repeat(width),
                core::array::from_fn(|column| format!("{}:", "-".repeat(names[column].len() - 1))),
            );
            for row in rows {
                let mut cells = row.costs.values().map(|value| value.to_string()).to_vec();
                cells.push(if row.is_ours { YES } else { NO }.to_owned());
                line(
                    &mut text,
                    &row.what,
                    core::array::from_fn(|column| cells[column].clone()),
                );
            }
        }
        let _ = write!(text, "\n{}{ROWS}\n", self.rows.len());
        text
    }

    /// Reads what [`Table::to_markdown`] has written.
    ///
    /// # Errors
    /// The text is something else, or has been truncated.
    pub fn from_markdown(text: &str) -> Result<Self, Unreadable> {
        let (mut counted_with, mut chapter, mut rows) = (None, None, Vec::new());
        let mut promised: Option<usize> = None;
        for (number, line) in text.lines().enumerate() {
            let unreadable = |why: &str| Unreadable {
                line: number + 1,
                why: why.to_owned(),
            };
            if let Some(with) = line.strip_prefix(COUNTED_WITH) {
                counted_with = Some(with.trim_end_matches('.').to_owned());
            } else if let Some(name) = line.strip_prefix("## ") {
                chapter = Some(name.to_owned());
            } else if let Some(cells) = line.strip_prefix('|') {
                let cells: Vec<_> = cells
                    .trim_end_matches('|')
                    .split('|')
                    .map(str::trim)
                    .collect();
                let [what, values @ .., checked] = &cells[..] else {
                    return Err(unreadable("a row with too few cells"));
                };
                if *what == OPERATION && values == COLUMNS || what.starts_with("--") {
                    continue;
                }
                let chapter = chapter
                    .clone()
                    .ok_or_else(|| unreadable("a row without a chapter"))?;
                let costs = costs(values).ok_or_else(|| unreadable("not six numbers"))?;
                let is_ours = match *checked {
                    YES => true,
                    NO => false,
                    _ => return Err(unreadable("neither `yes` nor `no` in the last column")),
                };
                rows.push(Row {
                    chapter,
                    what: (*what).to_owned(),
                    is_ours,
                    costs,
                });
            } else if let Some(count) = line.strip_suffix(ROWS) {
                promised = count.parse().ok();
            }
        }
        let whole = |why: String| Unreadable { line: 0, why };
        match promised {
            Some(count) if count == rows.len() => {}
            Some(count) => {
                return Err(whole(format!(
                    "expected {count} rows, but there are {}",
                    rows.len()
                )));
            }
            None => return Err(whole(
                "not a table of costs, or a part of one: the number of rows at the end is missing"
                    .to_owned(),
            )),
        }
        let counted_with = counted_with.ok_or_else(|| {
            whole(format!(
                "a line that begins with \"{COUNTED_WITH}\" is missing"
            ))
        })?;
        Ok(Self { counted_with, rows })
    }
}

const OPERATION: &str = "operation";
const CHECKED: &str = "checked";
const YES: &str = "yes";
const NO: &str = "no";
const COUNTED_WITH: &str = "Counted with ";
const ROWS: &str = " rows.";

fn costs(values: &[&str]) -> Option<Costs> {
    let numbers: Option<Vec<u64>> = values.iter().map(|value| value.parse().ok()).collect();
    Some(Costs::of(numbers?.try_into().ok()?))
}

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
        Difference {
            chapter: self.chapter.clone(),
            what: self.what.clone(),
            change,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(what: &str, is_ours: bool, values: [u64; 6]) -> Row {
        Row {
            chapter: "mutex".to_owned(),
            what: what.to_owned(),
            is_ours,
            costs: Costs::of(values),
        }
    }

    /// A table with two chapters.
    fn table() -> Table {
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

    /// The differences, as text, after one number of the table has changed.
    fn differences(row: usize, change: impl FnOnce(&mut Costs)) -> Vec<String> {
        let mut changed = table();
        change(&mut changed.rows[row].costs);
        let differences = changed.differences_from(&table(), true);
        differences.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let table = table();
        assert_eq!(Table::from_markdown(&table.to_markdown()), Ok(table));
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
        assert!(
            gone.iter()
                .all(|difference| difference.change == Change::Gone)
        );
        assert_eq!(gone.len(), 2);
        let new = whole.differences_from(&part, true);
        assert!(
            new.iter()
                .all(|difference| difference.change == Change::New)
        );
        assert_eq!(new.len(), 2);
        assert_eq!(differences(2, |costs| costs.atomic += 1), [""; 0]);
    }

    #[test]
    fn a_part_of_a_table_is_no_table() {
        let text = table().to_markdown();
        let error = |text: &str| Table::from_markdown(text).unwrap_err().to_string();
        assert!(error("").contains("not a table"));
        assert!(error(&text[..text.len() / 2]).contains("a part of one"));
        let without_a_row: String = text
            .lines()
            .filter(|line| !line.contains("lock, sleeps"))
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(error(&without_a_row), "expected 4 rows, but there are 3");
    }

    #[test]
    fn a_bad_cell_is_told_with_its_line() {
        let text = table().to_markdown();
        let number = 1 + text
            .lines()
            .position(|line| line.contains("lock, sleeps"))
            .unwrap();
        let error = |from: &str, to: &str| {
            Table::from_markdown(&text.replace(from, to))
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            error(" 1000 |", " many |"),
            format!("line {number}: not six numbers")
        );
        assert_eq!(
            error(" 1000 |", ""),
            format!("line {number}: not six numbers")
        );
        assert!(error("|      no |", "|   maybe |").contains("neither `yes` nor `no`"));
        assert!(error("## mutex\n", "").contains("a row without a chapter"));
        assert!(error("Counted with", "Made with").contains("\"Counted with \" is missing"));
    }
}
