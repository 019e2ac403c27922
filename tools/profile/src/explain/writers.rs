//! Too many writers for an rwlock: it costs more than a mutex and admits no more threads.
//!
//! Evidence: at least half of the waits are to write, by two threads or more, and these threads
//! wait for each other: for at least half of the time that they lost, a thread kept the lock that
//! itself waits there to write. A recording shows no reader that has not waited, so that writers
//! wait is not enough: they wait for readers too. A thread that both reads and writes counts as a
//! writer in the proportion of its waits.

use super::sums::{Bounded, Costs, Sums, THREADS, grow, lost, weight};
use super::{Detector, Finding, Kind, Line, Run};
use crate::text::time;
use waitword_record::format::{Object, Wait};

/// By lock.
#[derive(Debug, Default)]
pub(super) struct Writers(Bounded<u64, Lock>);

#[derive(Debug, Default)]
struct Lock {
    write: Sums,
    reads: u64,
    threads: Bounded<u32, Role, THREADS>,
}

/// What one thread does at the lock.
#[derive(Debug, Default)]
struct Role {
    reads: u64,
    writes: u64,
    /// How long writers waited because this thread had the lock.
    kept: u64,
}

impl Costs for Lock {
    fn cost(&self) -> u64 {
        self.write.cost()
    }
}

impl Costs for Role {
    fn cost(&self) -> u64 {
        self.kept.saturating_add(self.writes)
    }
}

impl Lock {
    /// How long writers waited for writers.
    fn by_writers(&self) -> u64 {
        let by = self.threads.iter().map(|(_, role)| {
            let all = u128::from(role.writes) + u128::from(role.reads);
            let kept = u128::from(role.kept) * u128::from(role.writes);
            u64::try_from(kept / all.max(1)).unwrap_or(u64::MAX)
        });
        by.fold(0, u64::saturating_add)
    }
}

impl Detector for Writers {
    fn add(&mut self, thread: u32, object: Object, wait: &Wait) {
        let is_write = match object {
            Object::Write => true,
            Object::Read => false,
            _ => return,
        };
        let lock = self.0.of(wait.address);
        let role = lock.threads.of(thread);
        if is_write {
            grow(&mut role.writes, weight(wait));
            lock.write.add(thread, wait);
            if wait.holder != 0 {
                grow(&mut lock.threads.of(wait.holder).kept, lost(wait));
            }
        } else {
            grow(&mut role.reads, weight(wait));
            grow(&mut lock.reads, weight(wait));
        }
    }

    fn findings(&self, run: &Run<'_>) -> Vec<Finding> {
        let found = self.0.iter().filter(|(_, lock)| {
            let write = &lock.write;
            write.threads.len() >= 2
                && write.waits >= lock.reads
                && lock.by_writers() >= write.lost / 2
                && run.matters(write.lost, write.waits)
        });
        found.map(|(address, lock)| finding(*address, lock)).collect()
    }
}

fn finding(address: u64, lock: &Lock) -> Finding {
    let write = &lock.write;
    let (waiter, holder) = write.worst();
    let mut said = vec![
        Line::at(
            format!(
                "{} waits to write and {} to read at rwlock {address:#x}; {} write, \
                 mostly at",
                write.waits,
                lock.reads,
                write.threads.shown("thread"),
            ),
            waiter,
        ),
        Line::new(format!(
            "The writers lost {}, and for {:.0} % of that another writer had the lock.",
            time(write.lost),
            100.0 * lock.by_writers() as f64 / write.lost.max(1) as f64,
        )),
    ];
    if holder != 0 {
        said.push(Line::at("It released the lock at", holder));
    }
    let advice = "An rwlock brings nothing here: writers exclude each other as at a mutex. Use a \
                  mutex, or move what does not change the data out of the write sections.";
    Finding { kind: Kind::Writers, lost: write.lost, said, advice }
}
