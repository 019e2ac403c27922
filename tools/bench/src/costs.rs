//! What each operation costs, in numbers that noise cannot affect: instructions, atomic operations,
//! system calls, context switches, cache lines written. They are counted, not timed.
//!
//! A time is never the same twice, and two cores hide contention. But the cost of a lock on 64
//! cores follows from what it does: each atomic operation takes its cache line away from all other
//! CPUs, each fence drains the store buffer, each system call costs a hundred times as much. So an
//! operation is single-stepped, and its instructions are decoded:
//!
//! ```text
//!   this process (tracer)                    forked child (subject)
//!   ─────────────────────                    ──────────────────────
//!   fork                                     prepare: put threads to sleep on the lock, etc.
//!   wait                                     PTRACE_TRACEME; int3
//!   decode the instruction, count it         the operation, one instruction at a time
//!   step; repeat until the second int3
//!   kill                                     int3
//! ```
//!
//! | column | counts, for the thread that does the operation |
//! |--------|--------|
//! | instructions | executed outside the kernel and its vDSO; a repeated one (`rep`) counts once |
//! | atomic | instructions with a LOCK prefix, `xchg` with memory (implicitly locked), `mfence` |
//! | calls | system calls |
//! | switches | how often the thread sleeps; preemptions are not counted |
//! | own | cache lines of the lock that are written, also by a failed compare-and-swap |
//! | other | other cache lines written, without the thread's stack and thread-local storage |
//!
//! The stack and thread-local storage are left out because no other CPU wants those lines.
//!
//! The numbers are checked in (`docs/costs.md`, [`Table`]). If a change makes an operation more
//! expensive, the next test run fails, on any machine. If a change makes an operation cheaper, the
//! table must be updated.
//!
//! # What makes the numbers reproducible
//!
//! 1. Every row has its own process, so each starts with the same statics and an empty waiter
//!    table. No two words meet in a bucket: our table is large, and the drop-in's locks lie at the
//!    same address in each run.
//! 2. The subject runs on one CPU and all other threads on another, because some paths depend on
//!    which thread ran where.
//! 3. Other threads are put to sleep before the count begins and are held there: a woken thread
//!    makes no progress, and no re-check timer fires.
//! 4. Our locks do not spin: the budget is zero. Peers spin as they always do.
//! 5. One-time work (memory for a thread's first wait, the binding of a function) is done
//!    beforehand.
//!
//! Two things still vary: the arithmetic of clocks (which of two branches it takes), and how long
//! other threads have waited, if the machine keeps them from their CPU. They change the
//! instructions of some rows by up to 3 %, rarely 7 %. The other columns are the same in every run.
//! Therefore a row that differs from the table is counted again. The kernel's vDSO code, which
//! reads the clock without a system call, is not counted, because it loops an arbitrary number of
//! times.
//!
//! # Comparison with Callgrind
//!
//! Callgrind counts the same. The instructions per call of a function, from a whole benchmark run
//! under Callgrind:
//!
//! ```text
//!   valgrind --tool=callgrind target/release/waitword bench uncontended --rounds 1
//!
//!   nsync, lock and unlock                5 + 5 a call      this table: 16
//!   parking_lot, lock and unlock          5 + 5                         16
//!   std, lock and unlock                 16 + 15                        37
//!   parking_lot, read and unlock      12 + 6                         24
//! ```
//!
//! The 6 extra instructions in each row here belong to the surrounding operation: two arguments,
//! two calls, a stack frame.
//!
//! # Files
//!
//! | file | contents |
//! |---|---|
//! | `trace`, `child`, `seen` | the tracer; the forked subject; what its instructions cost |
//! | `scene` | the objects that the operations act on; the other threads |
//! | `ours` | our operations, through the library's own interface |
//! | `peers` | the same operations of every lock, through the benchmark's traits |
//! | `table`, `markdown`, `differences` | the table; as Markdown; two tables compared |
//!
//! If ptrace is refused, if there is only one CPU, or if the processor is not x86-64, nothing is
//! counted, and the result says so.

mod differences;
mod markdown;
mod table;

#[cfg(target_arch = "x86_64")]
mod child;
#[cfg(target_arch = "x86_64")]
mod operation;
#[cfg(target_arch = "x86_64")]
mod ours;
#[cfg(target_arch = "x86_64")]
mod peers;
#[cfg(target_arch = "x86_64")]
mod scene;
#[cfg(target_arch = "x86_64")]
mod seen;
#[cfg(target_arch = "x86_64")]
mod trace;

pub use differences::{Change, Difference};
pub use markdown::Unreadable;
#[cfg(target_arch = "x86_64")]
use operation::Operation;
pub use table::{Costs, Row, Table};

/// Which operations to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Ours and every peer's.
    All,
    /// Only ours. These are the ones that are compared with an older table.
    Ours,
}

/// The result of a count.
#[derive(Clone, Debug)]
pub struct Counted {
    /// The rows that could be counted.
    pub table: Table,
    /// Operations that could not be counted, each with the reason.
    pub left_out: Vec<(String, String)>,
    /// The reason if this machine does not allow counting at all.
    pub refused: Option<String>,
}

/// Counts the operations whose chapter and name are `wanted`. `progress` gets the number of
/// operations done and the total.
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
    use child::Failure;
    let mut counted = Counted { table: Table::new(), left_out: Vec::new(), refused: None };
    if crate::cpus::allowed_cpus().len() < 2 {
        counted.refused = Some("operations with several threads need two CPUs".to_owned());
        return counted;
    }
    // The call of an operation and its return do not belong to it.
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

/// Counts nothing: only x86-64 instructions can be decoded.
#[cfg(not(target_arch = "x86_64"))]
pub fn count(_: Which, _: impl Fn(&str, &str) -> bool, _: impl FnMut(usize, usize)) -> Counted {
    Counted {
        table: Table::new(),
        left_out: Vec::new(),
        refused: Some("only x86-64 instructions can be decoded".to_owned()),
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::harness::Context;
    use crate::settings::Settings;
    use crate::watchdog;
    use std::sync::Arc;

    /// Also runs in debug builds, where only the instruction counts differ. The chapters that
    /// compare with peers are left to the `costs` command, because it contains the drop-in and a
    /// debug build takes too long on them.
    #[test]
    fn operations_cost_what_the_checked_in_table_says() {
        let context = Context::new(Settings::default(), Arc::default());
        let _watchdog = watchdog::start("costs", &context).unwrap();
        let text = include_str!("../../../docs/costs.md");
        let mut old = Table::from_markdown(text).unwrap();
        let operations = ours::operations();
        old.rows.retain(|row| operations.iter().any(|operation| operation.chapter == row.chapter));
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
        let mut names: Vec<_> =
            operations.iter().map(|row| (row.chapter, row.what.as_str())).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
