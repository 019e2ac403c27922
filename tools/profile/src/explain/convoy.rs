//! A lock convoy: a queue at one lock that does not drain, though each holder keeps it briefly.
//!
//! Evidence: at least three threads wait for the lock; on average at least two of them at the same
//! time, so that the next waiter is there before the lock is free; and during a wait at least two
//! other threads have the lock, so that a wait takes three sections or more. If the holders slept
//! for half of the time, that is the cause (`asleep.rs`), and not the queue. Where the kernel does
//! not show what holders do, the finding says that they may have slept.

use super::sums::{Bounded, Sums};
use super::{Detector, Finding, Kind, Line, Run};
use crate::text::time;
use waitword_record::format::{Object, Wait};

/// How many other threads have the lock during a wait, on average.
pub(super) const PASSED: f64 = 2.0;
/// How many threads wait at the same time, on average.
const QUEUE: f64 = 2.0;

/// By lock.
#[derive(Debug, Default)]
pub(super) struct Convoy(Bounded<u64, Sums>);

impl Detector for Convoy {
    fn add(&mut self, thread: u32, object: Object, wait: &Wait) {
        if object.is_lock() && wait.next == 0 {
            self.0.of(wait.address).add(thread, wait);
        }
    }

    fn findings(&self, run: &Run<'_>) -> Vec<Finding> {
        let found = self.0.iter().filter(|(_, sums)| {
            sums.threads.len() >= 3
                && sums.queue() >= QUEUE
                && sums.passed_per_wait() >= PASSED
                && sums.asleep < sums.lost / 2
                && run.matters(sums.lost, sums.waits)
        });
        found.map(|(lock, sums)| finding(*lock, sums, run)).collect()
    }
}

fn finding(lock: u64, sums: &Sums, run: &Run<'_>) -> Finding {
    let (waiter, holder) = sums.worst();
    let (first, last) = sums.between;
    let share = 100.0 * last.saturating_sub(first) as f64 / run.length as f64;
    let mut said = vec![
        Line::at(
            format!(
                "{} queue at lock {lock:#x}, {:.1} at the same time on average, during \
                 {:.0} % of the run, mostly at",
                sums.threads.shown("thread"),
                sums.queue(),
                share.min(100.0),
            ),
            waiter,
        ),
        Line::new(format!(
            "A wait takes {}, and each holder keeps the lock for {}: {:.1} others have it first.",
            time(sums.lost / sums.waits.max(1)),
            time(sums.hold()),
            sums.passed_per_wait(),
        )),
    ];
    if sums.running + sums.preempted + sums.asleep == 0 {
        said.push(Line::new("Whether the holders slept meanwhile is not known here.".to_owned()));
    }
    if holder != 0 {
        said.push(Line::at("The holder released it mostly at", holder));
    }
    let advice = "Take the lock less often (several items at a time), or split it: a lock for each \
                  part of the data, or per-thread data that are merged later. Fewer threads would \
                  do the same work.";
    Finding { kind: Kind::Convoy, lost: sums.lost, said, advice }
}
