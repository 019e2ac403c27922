//! Computation under a lock: threads wait because the holder takes long, and it runs.
//!
//! Evidence: at waits that one place of a program ends, the holder ran for at least half of the
//! time, and fewer than two other threads had the lock during a wait. With more of them, the queue
//! is what costs, and not a section (`convoy.rs`).

use super::sums::{Bounded, Sums};
use super::{Detector, Finding, Kind, Line, Run, count};
use crate::text::time;
use waitword_record::format::{Object, Wait};

/// The sites, by the stacks of the holder, or of the waiter if the holder's is unknown.
#[derive(Debug, Default)]
pub(super) struct Computes(Bounded<(u32, u32), Sums>);

impl Detector for Computes {
    fn add(&mut self, thread: u32, object: Object, wait: &Wait) {
        if object.is_lock() && wait.next == 0 {
            let waiter = if wait.holder_stack == 0 { wait.stack } else { 0 };
            self.0.of((wait.holder_stack, waiter)).add(thread, wait);
        }
    }

    fn findings(&self, run: &Run<'_>) -> Vec<Finding> {
        let found = self.0.iter().map(|(_, sums)| sums).filter(|sums| {
            run.is_certain(sums.running, sums.lost, 0.5)
                && sums.passed_per_wait() < super::convoy::PASSED
                && run.matters(sums.running, sums.waits)
        });
        found.map(finding).collect()
    }
}

fn finding(sums: &Sums) -> Finding {
    let (waiter, holder) = sums.worst();
    let percent = 100.0 * sums.running as f64 / sums.lost.max(1) as f64;
    let mut said = vec![
        Line::at(
            format!(
                "{} of {} for {}, {} each, mostly at",
                count(sums.waits, "wait"),
                sums.threads.shown("thread"),
                sums.locks.shown("lock"),
                time(sums.lost / sums.waits.max(1)),
            ),
            waiter,
        ),
        Line::new(format!("For {percent:.0} % of that time the holder ran.")),
    ];
    if holder != 0 {
        said.push(Line::at("The holder released it at", holder));
    }
    let advice = "Compute before the lock or after the unlock, on a copy. If threads need \
                  different parts of the data, give each part a lock.";
    Finding { kind: Kind::Computes, lost: sums.running, said, advice }
}
