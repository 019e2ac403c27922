//! The holder waits for another lock: what the waiter lost, it lost because of that one.
//!
//! Evidence: the recorder saw the holder of a lock wait for another lock most of the time
//! ([`Wait::next`]). The links of different waits make a chain, which is followed from the lock
//! that is waited for to the last one; the thread at its end is the one that the recorder names.

use super::sums::{Bounded, Costs, Sums, Top, lost};
use super::{Detector, Finding, Kind, Line, Run, count};
use crate::text::time;
use waitword_record::format::{Object, Wait};

/// A longer chain is cut off.
const LONGEST: usize = 8;

/// From each lock to others.
#[derive(Debug, Default)]
pub(super) struct Chain(Bounded<u64, Link>);

#[derive(Debug, Default)]
struct Link {
    sums: Sums,
    next: Top<u64>,
}

impl Costs for Link {
    fn cost(&self) -> u64 {
        self.sums.cost()
    }
}

impl Detector for Chain {
    fn add(&mut self, thread: u32, object: Object, wait: &Wait) {
        if object.is_lock() && wait.next != 0 && wait.next != wait.address {
            let link = self.0.of(wait.address);
            link.sums.add(thread, wait);
            link.next.add(wait.next, lost(wait));
        }
    }

    fn findings(&self, run: &Run<'_>) -> Vec<Finding> {
        let found = self.0.iter().filter(|(_, link)| run.matters(link.sums.lost, link.sums.waits));
        found.map(|(lock, link)| self.finding(*lock, &link.sums)).collect()
    }
}

impl Chain {
    fn finding(&self, lock: u64, sums: &Sums) -> Finding {
        let mut locks = vec![lock];
        while let Some(next) = locks.last().and_then(|lock| self.0.get(lock)?.next.first()) {
            if locks.contains(&next) || locks.len() == LONGEST {
                break;
            }
            locks.push(next);
        }
        let chain: Vec<String> = locks.iter().map(|lock| format!("{lock:#x}")).collect();
        let (waiter, holder) = sums.worst();
        let mut said = vec![
            Line::at(
                format!(
                    "{} of {} for lock {lock:#x}, the longest {}, mostly at",
                    count(sums.waits, "wait"),
                    sums.threads.shown("thread"),
                    time(sums.longest),
                ),
                waiter,
            ),
            Line::new(format!(
                "Meanwhile its holder waited for another lock: {}.",
                chain.join(" -> ")
            )),
        ];
        if holder != 0 {
            said.push(Line::at("The last lock was released at", holder));
        }
        let advice = "Release the first lock before you take the next one, or take that one first. \
                      What makes the last lock slow is the cause of all these waits.";
        Finding { kind: Kind::Chain, lost: sums.lost, said, advice }
    }
}
