//! The table as Markdown, for people and as the reference for a later run.
//!
//! The file itself explains what is exact and what may vary (`ABOUT`). It ends with the number of
//! its rows, so that a truncated file is detected.

use super::table::{COLUMNS, Costs, Row, Table};
use core::fmt::{self, Write as _};

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
same compiler and library they differ within the same limits.

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
            line(&mut text, OPERATION, core::array::from_fn(|column| names[column].clone()));
            line(
                &mut text,
                &"-".repeat(width),
                core::array::from_fn(|column| format!("{}:", "-".repeat(names[column].len() - 1))),
            );
            for row in rows {
                let mut cells = row.costs.values().map(|value| value.to_string()).to_vec();
                cells.push(if row.is_ours { YES } else { NO }.to_owned());
                line(&mut text, &row.what, core::array::from_fn(|column| cells[column].clone()));
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
            let unreadable = |why: &str| Unreadable { line: number + 1, why: why.to_owned() };
            if let Some(with) = line.strip_prefix(COUNTED_WITH) {
                counted_with = Some(with.trim_end_matches('.').to_owned());
            } else if let Some(name) = line.strip_prefix("## ") {
                chapter = Some(name.to_owned());
            } else if let Some(cells) = line.strip_prefix('|') {
                let cells: Vec<_> = cells.trim_end_matches('|').split('|').map(str::trim).collect();
                let [what, values @ .., checked] = &cells[..] else {
                    return Err(unreadable("a row with too few cells"));
                };
                if *what == OPERATION && values == COLUMNS || what.starts_with("--") {
                    continue;
                }
                let chapter =
                    chapter.clone().ok_or_else(|| unreadable("a row without a chapter"))?;
                let costs = costs(values).ok_or_else(|| unreadable("not six numbers"))?;
                let is_ours = match *checked {
                    YES => true,
                    NO => false,
                    _ => return Err(unreadable("neither `yes` nor `no` in the last column")),
                };
                rows.push(Row { chapter, what: (*what).to_owned(), is_ours, costs });
            } else if let Some(count) = line.strip_suffix(ROWS) {
                promised = count.parse().ok();
            }
        }
        let whole = |why: String| Unreadable { line: 0, why };
        match promised {
            Some(count) if count == rows.len() => {}
            Some(count) => {
                return Err(whole(format!("expected {count} rows, but there are {}", rows.len())));
            }
            None => return Err(whole(
                "not a table of costs, or a part of one: the number of rows at the end is missing"
                    .to_owned(),
            )),
        }
        let counted_with = counted_with.ok_or_else(|| {
            whole(format!("a line that begins with \"{COUNTED_WITH}\" is missing"))
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

#[cfg(test)]
mod tests {
    use super::super::table::sample::table;
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let table = table();
        assert_eq!(Table::from_markdown(&table.to_markdown()), Ok(table));
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
    fn a_bad_cell_is_reported_with_its_line() {
        let text = table().to_markdown();
        let number = 1 + text.lines().position(|line| line.contains("lock, sleeps")).unwrap();
        let error = |from: &str, to: &str| {
            Table::from_markdown(&text.replace(from, to)).unwrap_err().to_string()
        };
        assert_eq!(error(" 1000 |", " many |"), format!("line {number}: not six numbers"));
        assert_eq!(error(" 1000 |", ""), format!("line {number}: not six numbers"));
        assert!(error("|      no |", "|   maybe |").contains("neither `yes` nor `no`"));
        assert!(error("## mutex\n", "").contains("a row without a chapter"));
        assert!(error("Counted with", "Made with").contains("\"Counted with \" is missing"));
    }
}
