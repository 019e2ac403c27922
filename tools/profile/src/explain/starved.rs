//! A starved writer: it waits for long, and readers come and go meanwhile.
//!
//! Evidence: a wait to write of at least 10 ms, during which other threads released the lock at
//! least ten times, and none of those that kept it is known to write: the ones that waited there
//! to write waited for the same readers. 10 ms is the time after which the drop-in's rwlock
//! promises a writer its turn; a wait that is ended by that is shorter than a time slice or two
//! more. The longest such wait has to matter: 1 % of the run by itself.

use super::sums::{Bounded, Costs, Few, Sums};
use super::{Detector, Finding, Kind, Line, Run, count};
use crate::text::time;
use waitword_record::format::{Ended, Object, Wait};

/// Shorter waits are not starvation.
const LONG: u64 = 10_000_000;
/// How often the lock was released meanwhile.
const PASSED: u16 = 10;

/// By lock.
#[derive(Debug, Default)]
pub(super) struct Starved(Bounded<u64, Lock>);

#[derive(Debug, Default)]
struct Lock {
    /// The long waits.
    long: Sums,
    timed_out: u64,
    /// The holders named by long waits.
    holders: Few<u32>,
    /// The threads that wait to write.
    writers: Few<u32>,
}

impl Costs for Lock {
    fn cost(&self) -> u64 {
        self.long.cost()
    }
}

impl Detector for Starved {
    fn add(&mut self, thread: u32, object: Object, wait: &Wait) {
        if object != Object::Write {
            return;
        }
        let lock = self.0.of(wait.address);
        lock.writers.add(thread);
        if wait.took >= LONG && wait.passed >= PASSED {
            lock.long.add(thread, wait);
            lock.timed_out += u64::from(wait.ended == Ended::TimedOut as u8);
            if wait.holder != 0 {
                lock.holders.add(wait.holder);
            }
        }
    }

    fn findings(&self, run: &Run<'_>) -> Vec<Finding> {
        let found = self.0.iter().filter(|(_, lock)| {
            let is_writer = |holder| lock.writers.iter().any(|writer| writer == holder);
            lock.long.longest >= (run.length / 100).max(LONG) && !lock.holders.iter().any(is_writer)
        });
        found.map(|(address, lock)| finding(*address, lock)).collect()
    }
}

fn finding(address: u64, lock: &Lock) -> Finding {
    let long = &lock.long;
    let (waiter, holder) = long.worst();
    let mut said = vec![
        Line::at(
            format!(
                "{} to write at rwlock {address:#x}, the longest {}, mostly at",
                count(long.waits, "long wait"),
                time(long.longest),
            ),
            waiter,
        ),
        Line::new(format!(
            "Readers released the lock {:.0} times during one of them, on average; {} ended by \
             their deadline.",
            long.passed_per_wait(),
            lock.timed_out,
        )),
    ];
    if holder != 0 {
        said.push(Line::at("A reader released it at", holder));
    }
    let advice = "Readers overlap and keep the writer out: use an rwlock that prefers writers \
                  (PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP), shorten the read sections, or \
                  let readers use a copy that the writer replaces.";
    Finding { kind: Kind::Starved, lost: long.lost, said, advice }
}
