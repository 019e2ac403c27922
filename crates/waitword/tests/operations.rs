//! What each operation costs where many CPUs meet: atomic operations, system calls, cache lines written. Counted, not timed.
//!
//! Two cores hide contention, and a time is never the same twice. But what a lock costs on 64 cores follows from numbers
//! that noise cannot touch: each atomic operation takes its line away from all other CPUs, each fence drains the store
//! buffer, each system call costs a hundred times that. So an operation is single-stepped, and its instructions are read:
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
//! | column | counts |
//! |--------|--------|
//! | locked | instructions with a LOCK prefix, `xchg` with memory (locked by itself), `mfence` |
//! | calls | system calls |
//! | own | cache lines of the lock itself that are written, an attempt to (a compare-and-swap that fails) included |
//! | other | other cache lines written, but for the subject's stack and thread-local storage, which no other CPU wants |
//!
//! The numbers are asserted: a change that makes an operation dearer fails here, and one that makes it cheaper has to say so.
//! They are the same in a debug build. To see them: `cargo test -p waitword --test operations -- --nocapture`.
//!
//! # What makes the numbers the same each time
//!
//! 1. Every row has a process of its own, so each starts with the same statics and an empty table, which is so large that two words
//!    do not meet in a bucket.
//! 2. The subject runs on one CPU and all other threads on another: some paths ask who ran where.
//! 3. Others sleep before the count begins, and are held there: what is woken does not get on, and no alarm rings.
//! 4. Nobody spins: the budget is zero.
//!
//! Where ptrace is refused, on one CPU, and on other processors than x86-64, nothing is counted, and a line says so.

#[cfg(target_arch = "x86_64")]
mod common;
#[cfg(target_arch = "x86_64")]
mod support;

#[cfg(target_arch = "x86_64")]
#[path = "operations/rows.rs"]
mod rows;
#[cfg(target_arch = "x86_64")]
#[path = "operations/scene.rs"]
mod scene;
#[cfg(target_arch = "x86_64")]
#[path = "operations/trace.rs"]
mod trace;

#[cfg(not(target_arch = "x86_64"))]
#[test]
fn operations_cost_what_they_should() {
    println!("skipped: instructions are counted on x86-64 only");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn operations_cost_what_they_should() {
    let _watchdog = support::watchdog::watch("operations_cost_what_they_should");
    if scene::cpus().len() < 2 {
        println!("skipped: the threads of a row need two CPUs");
        return;
    }
    let mut wrong = Vec::new();
    for chapter in rows::CHAPTERS {
        println!("\n{:<44}locked  calls    own  other", chapter.name);
        for row in chapter.rows {
            let Some(costs) = trace::watch(row.prepare, row.operation) else {
                println!("skipped: this kernel refuses ptrace");
                return;
            };
            let numbers = costs.map(|cost| format!("{cost:>7}")).concat();
            println!("  {:<41}{numbers}", row.what);
            if costs != row.costs {
                wrong.push(format!("{}: {costs:?}, not {:?}", row.what, row.costs));
            }
        }
    }
    assert!(wrong.is_empty(), "it has changed:\n{}", wrong.join("\n"));
}
