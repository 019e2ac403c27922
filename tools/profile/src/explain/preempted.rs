//! Preempted holders: threads wait because the holder is runnable and has no CPU.
//!
//! Evidence: at waits that one place of a program ends, the holder had no CPU for at least a third
//! of the time. On a fair scheduler a runnable thread lacks a CPU for a third of the time when half
//! again as many threads are runnable as there are CPUs. The cause is the same for all locks, so a
//! process has one such finding.

use super::sums::{Bounded, Few, Sums, grow};
use super::{Detector, Finding, Kind, Line, Run, count};
use crate::text::time;
use waitword_record::format::{Object, Wait};

/// How many places are named.
const NAMED: usize = 3;

/// By the holder's stack.
#[derive(Debug, Default)]
pub(super) struct Preempted(Bounded<u32, Sums>);

impl Detector for Preempted {
    fn add(&mut self, thread: u32, object: Object, wait: &Wait) {
        if object.is_lock() {
            self.0.of(wait.holder_stack).add(thread, wait);
        }
    }

    fn findings(&self, run: &Run<'_>) -> Vec<Finding> {
        let mut places: Vec<&Sums> = self
            .0
            .iter()
            .map(|(_, sums)| sums)
            .filter(|sums| run.is_certain(sums.preempted, sums.lost, 1.0 / 3.0))
            .collect();
        places.sort_by_key(|sums| core::cmp::Reverse(sums.preempted));
        let (mut preempted, mut lost, mut waits) = (0, 0, 0);
        let mut threads = Few::default();
        for sums in &places {
            grow(&mut preempted, sums.preempted);
            grow(&mut lost, sums.lost);
            grow(&mut waits, sums.waits);
            sums.threads.iter().for_each(|thread| threads.add(*thread));
        }
        if !run.matters(preempted, waits) {
            return Vec::new();
        }
        let percent = 100.0 * preempted as f64 / lost.max(1) as f64;
        let mut said = vec![Line::new(format!(
            "In {} of {}, {} together, the holder was runnable without a CPU for {percent:.0} % of \
             the time. {} of the process waited for something.",
            count(waits, "wait"),
            threads.shown("thread"),
            time(lost),
            count(run.waiters as u64, "thread"),
        ))];
        for sums in places.iter().take(NAMED) {
            let (waiter, holder) = sums.worst();
            said.push(Line::at(format!("{} lost at", time(sums.lost)), waiter));
            if holder != 0 {
                said.push(Line::at("The holder released it at", holder));
            }
        }
        let advice = "More threads are runnable than there are CPUs: start as many worker threads \
                      as CPUs, or keep other processes off these CPUs. Shorter sections are \
                      preempted less often.";
        vec![Finding { kind: Kind::Preempted, lost: preempted, said, advice }]
    }
}
