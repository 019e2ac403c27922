//! What each operation costs, in numbers that noise cannot touch: instructions, atomic operations, system calls, context
//! switches, cache lines written. Counted, not timed.
//!
//! A time is never the same twice, and two cores hide contention. But what a lock costs on 64 cores follows from what it
//! does: each atomic operation takes its line away from all other CPUs, each fence drains the store buffer, each system
//! call costs a hundred times that. So an operation is single-stepped, and its instructions are read:
//!
//! ```text
//!   this process (tracer)                    forked child (subject)
//!   ─────────────────────                    ──────────────────────
//!   fork                                     prepare: threads that sleep on the lock, and the like
//!   wait                                     "trace me"; int3
//!   read the instruction, count it           the operation, an instruction at a time
//!   step; and so on until the second int3
//!   kill                                     int3
//! ```
//!
//! | column | counts, of the thread that does the operation |
//! |--------|--------|
//! | instructions | all that it executes outside the kernel and its vDSO; one that repeats itself (`rep`) once |
//! | atomic | instructions with a LOCK prefix, `xchg` with memory (locked by itself), `mfence` |
//! | calls | system calls |
//! | switches | how often it sleeps; that it is preempted is not counted |
//! | own | cache lines of the lock itself that are written, an attempt to (a compare-and-swap that fails) included |
//! | other | other cache lines written, but for the thread's stack and thread-local storage, which no other CPU wants |
//!
//! The numbers are checked in (`docs/costs.md`, [`Table`]), and whoever makes an operation dearer is told by the next
//! test run, on any machine; who makes it cheaper has to say so.
//!
//! # What makes the numbers the same each time
//!
//! 1. Every row has a process of its own, so each starts with the same statics and an empty table of waiters. No two words
//!    meet in a bucket: our table is large, and where the drop-in's locks lie is the same in each run.
//! 2. The subject runs on one CPU and all other threads on another: some paths ask who ran where.
//! 3. Others sleep before the count begins, and are held there: what is woken does not get on, and no alarm rings.
//! 4. Ours do not spin: the budget is zero. Peers do as they do.
//! 5. What is done once only (memory of a thread's first wait, the binding of a function) is done before.
//!
//! What still depends on the moment is the arithmetic of clocks (which of two branches it takes) and how long others have waited, if the
//! machine keeps them from their CPU. It changes the instructions of some rows by up to 3 in a hundred, seldom 7; the other columns are
//! the same in every run. So what differs from a table is counted again. The kernel's code that reads the clock without a call (vDSO) is not counted: it repeats itself as it likes.
//!
//! # Another's count
//!
//! Callgrind counts the same. Of a whole benchmark run under it, a function's instructions by its calls:
//!
//! ```text
//!   valgrind --tool=callgrind target/release/waitword bench uncontended --rounds 1
//!
//!   nsync, lock and unlock                5 + 5 a call      this table: 16
//!   parking_lot, lock and unlock          5 + 5                         16
//!   std, lock and unlock                 16 + 15                        37
//!   parking_lot, read and give back      12 + 6                         24
//! ```
//!
//! The 6 that each row here has more are those of the operation around: two arguments, two calls, a frame.
//!
//! # What is where
//!
//! | file | |
//! |---|---|
//! | `trace` | the tracer, and the forked subject |
//! | `scene` | what the operations act on; the other threads |
//! | `ours` | our operations, by the library's own interface |
//! | `peers` | the same operations of every lock there is, through the benchmark's traits |
//! | [`table`] | the table as Markdown, and how two of them differ |
//!
//! Where ptrace is refused, on one CPU, and on other processors than x86-64, nothing is counted, and that is said.

pub mod table;

#[cfg(target_arch = "x86_64")]
mod ours;
#[cfg(target_arch = "x86_64")]
mod peers;
#[cfg(target_arch = "x86_64")]
mod scene;
#[cfg(target_arch = "x86_64")]
mod trace;

pub use table::{Costs, Row, Table};

/// Which operations to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Ours, and those of every peer.
    All,
    /// Ours only: those that are compared with an older table.
    Ours,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Counted {
    /// All that could be counted.
    pub table: Table,
    /// Operations that could not be, each with the reason.
    pub left_out: Vec<(String, String)>,
    /// Why this machine does not let us count, if it does not.
    pub refused: Option<String>,
}

/// Counts the operations whose chapter and name are `wanted`; `progress` hears how many of how many are done.
#[cfg(target_arch = "x86_64")]
pub fn count(
    which: Which,
    wanted: impl Fn(&str, &str) -> bool,
    progress: impl FnMut(usize, usize),
) -> Counted {
    let mut operations = ours::operations();
    operations.extend(peers::operations());
    operations.retain(|operation| which == Which::All || operation.is_ours);
    operations.retain(|operation| wanted(operation.chapter, &operation.what));
    count_each(operations, progress)
}

#[cfg(target_arch = "x86_64")]
fn count_each(operations: Vec<Operation>, mut progress: impl FnMut(usize, usize)) -> Counted {
    use trace::Failure;
    let mut counted = Counted {
        table: Table::new(),
        left_out: Vec::new(),
        refused: None,
    };
    if crate::workload::allowed_cpus().len() < 2 {
        counted.refused = Some("the threads of an operation need two CPUs".to_owned());
        return counted;
    }
    // The call of an operation and its return are not its own.
    let around = match trace::watch(|| (), || ()) {
        Ok(costs) => costs.instructions,
        Err(failure) => {
            counted.refused = Some(failure.to_string());
            return counted;
        }
    };
    let count = operations.len();
    for (number, operation) in operations.into_iter().enumerate() {
        progress(number, count);
        match trace::watch(operation.prepare, operation.operation) {
            Ok(mut costs) => {
                costs.instructions = costs.instructions.saturating_sub(around);
                counted.table.rows.push(Row {
                    chapter: operation.chapter.to_owned(),
                    what: operation.what,
                    is_ours: operation.is_ours,
                    costs,
                });
            }
            Err(failure @ Failure::Refused(_)) => {
                counted.refused = Some(failure.to_string());
                break;
            }
            Err(failure) => counted.left_out.push((operation.what, failure.to_string())),
        }
    }
    counted
}

/// Counts nothing: this processor's instructions are not known here.
#[cfg(not(target_arch = "x86_64"))]
pub fn count(_: Which, _: impl Fn(&str, &str) -> bool, _: impl FnMut(usize, usize)) -> Counted {
    Counted {
        table: Table::new(),
        left_out: Vec::new(),
        refused: Some("instructions are read on x86-64 only".to_owned()),
    }
}

/// One operation to be counted.
#[cfg(target_arch = "x86_64")]
struct Operation {
    /// What it stands under.
    chapter: &'static str,
    /// Unique in its chapter.
    what: String,
    is_ours: bool,
    prepare: fn(),
    operation: fn(),
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::harness::Context;
    use crate::run::Settings;
    use crate::watchdog::Watchdog;
    use std::sync::Arc;

    /// In a debug build, too, where only the instructions are others. The rows beside the peers' are for the command: it has the
    /// drop-in inside, and a debug build takes long over them.
    #[test]
    fn operations_cost_what_the_checked_in_table_says() {
        let context = Context::new(Settings::default(), Arc::default());
        let _watchdog = Watchdog::start("costs", &context).unwrap();
        let text = include_str!("../../../docs/costs.md");
        let mut old = Table::from_markdown(text).unwrap();
        let operations = ours::operations();
        old.rows.retain(|row| {
            operations
                .iter()
                .any(|operation| operation.chapter == row.chapter)
        });
        let counted = count_each(operations, |_, _| context.progressed());
        if let Some(why) = counted.refused {
            println!("skipped: {why}");
            return;
        }
        assert_eq!(counted.left_out, []);
        let differences = counted.table.differences_from(&old, false);
        let differences: Vec<_> = differences.iter().map(ToString::to_string).collect();
        assert!(differences.is_empty(), "{}", differences.join("\n"));
    }

    #[test]
    fn each_row_has_a_name_of_its_own() {
        let mut operations = ours::operations();
        operations.extend(peers::operations());
        let mut names: Vec<_> = operations
            .iter()
            .map(|row| (row.chapter, row.what.as_str()))
            .collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
