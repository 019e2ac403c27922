//! Finds the threads that can never continue: cycles of threads that wait for each other, and
//! threads that wait for one that has ended.
//!
//! # Why a found cycle is a deadlock
//!
//! The check reads the records one after the other, without stopping any thread: first all of them,
//! then, a second time, the `sequence` of those in the cycle. If none has changed, no thread of the
//! cycle had acquired its lock when it was read the second time. For suppose that thread A had, and
//! that thread B is recorded to hold that lock, in its wait number b:
//!
//! * B held the lock before that wait began and after it ended, since a thread records a lock after
//!   acquiring it and removes it before releasing it.
//! * So either A acquired it after B's wait had ended, or A acquired and released it before B
//!   acquired it. In the second case A's wait was over before B's began. The check had seen B's
//!   wait, so its second look would have seen that A's was over.
//! * In the first case B had acquired the lock that it waited for. So had the next thread, even
//!   earlier, and so on around the cycle: A had acquired its lock before it acquired its lock.
//!
//! # Assumptions
//!
//! A recorded holder might no longer hold the lock: its guard was leaked and the memory is another
//! lock now, or another thread has released the lock. Then the lock also has other holders, which
//! cannot hold it at the same time as the recorded one. Such locks are left out. The pause between
//! the two looks gives threads that have just acquired a lock time to record it.
//!
//! Some waits end with an error instead of the lock. Cycles that consist only of those are left
//! out.

use super::kind::{LockKind, Way};
use super::record::{self, Record, Use, Waiting};
use crate::sys::tid;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering::Relaxed;

/// A waiting thread, and a thread that holds the lock it waits for.
#[derive(Clone, Copy)]
pub(super) struct Link<'a> {
    pub(super) waiting: &'a Waiting,
    pub(super) holder: &'static Record,
    pub(super) held: Use,
    pub(super) holder_has_ended: bool,
}

/// All waiting threads, and the holders that could block them.
pub(super) struct Graph {
    waiting: Vec<Waiting>,
    /// The holders of each lock that are waiting or have ended. (Other holders will release it.)
    holders: HashMap<usize, Vec<(Holder, Use)>>,
}

#[derive(Clone, Copy)]
enum Holder {
    /// The waiting thread with this index.
    Waits(usize),
    HasEnded(&'static Record),
}

impl Graph {
    /// Reads the current state of all threads.
    pub(super) fn read() -> Self {
        let mut graph = Self { waiting: Vec::new(), holders: HashMap::new() };
        for record in record::all() {
            if let Some(waiting) = record.look() {
                graph.add(Holder::Waits(graph.waiting.len()), &waiting.held);
                graph.waiting.push(waiting);
            } else if record.has_ended() {
                graph.add(Holder::HasEnded(record), &record.held());
            }
        }
        graph
    }

    fn add(&mut self, holder: Holder, held: &[Use]) {
        for held in held {
            let holders = self.holders.entry(held.lock).or_default();
            holders.push((holder, *held));
        }
    }

    /// All deadlocks with at least one thread that has not been reported in its present wait.
    pub(super) fn deadlocks(&self) -> Vec<Vec<Link<'_>>> {
        let mut deadlocks: Vec<Vec<Link<'_>>> = Vec::new();
        for (index, waiting) in self.waiting.iter().enumerate() {
            let is_known = waiting.record.reported.load(Relaxed) == waiting.sequence
                || (deadlocks.iter().flatten())
                    .any(|link| core::ptr::eq(link.waiting.record, waiting.record));
            if is_known {
                continue;
            }
            let cycle = self.cycle_of(index).filter(|cycle| !is_refused(cycle));
            deadlocks.extend(cycle.or_else(|| Some(vec![self.link_to_the_ended(index)?])));
        }
        deadlocks
    }

    /// The holders that keep this thread from its lock.
    fn blockers(&self, index: usize) -> impl Iterator<Item = (Holder, Use)> {
        let wait = self.waiting[index].wait;
        let holders = self.holders.get(&wait.lock).into_iter().flatten();
        holders.copied().filter(move |(_, held)| blocks(held.way, wait.way))
    }

    /// The shortest cycle through this thread.
    fn cycle_of(&self, start: usize) -> Option<Vec<Link<'_>>> {
        // For each thread that was found, the thread that it was found from and the hold that
        // blocks that thread.
        let mut found: HashMap<usize, (usize, Use)> = HashMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(index) = queue.pop_front() {
            for (holder, held) in self.blockers(index) {
                let Holder::Waits(holder) = holder else {
                    continue;
                };
                if found.contains_key(&holder) {
                    continue;
                }
                found.insert(holder, (index, held));
                if holder == start {
                    return Some(self.links(start, &found));
                }
                queue.push_back(holder);
            }
        }
        None
    }

    /// The cycle, starting with `start`; each thread precedes the one that it waits for.
    fn links(&self, start: usize, found: &HashMap<usize, (usize, Use)>) -> Vec<Link<'_>> {
        let mut links = Vec::new();
        let mut holder = start;
        loop {
            let (index, held) = found[&holder];
            links.push(Link {
                waiting: &self.waiting[index],
                holder: self.waiting[holder].record,
                held,
                holder_has_ended: false,
            });
            holder = index;
            if holder == start {
                break;
            }
        }
        links.reverse();
        links
    }

    /// The link of this thread, if a thread that has ended holds the lock it waits for.
    fn link_to_the_ended(&self, index: usize) -> Option<Link<'_>> {
        let waiting = &self.waiting[index];
        if waiting.wait.kind == LockKind::PiMutex {
            // The kernel hands the mutex off.
            return None;
        }
        self.blockers(index).find_map(|(holder, held)| match holder {
            Holder::HasEnded(holder) => {
                Some(Link { waiting, holder, held, holder_has_ended: true })
            }
            Holder::Waits(_) => None,
        })
    }
}

/// Whether holding a lock in the way `held` blocks a thread that wants it in the way `wanted`.
fn blocks(held: Way, wanted: Way) -> bool {
    match wanted {
        Way::Shared => held == Way::Exclusive,
        Way::Upgradable => held != Way::Shared,
        Way::Exclusive => true,
        // The upgradable holder is the waiting thread itself.
        Way::Upgrade => held == Way::Shared,
    }
}

/// Whether at least one of the waits ends with [`LockError::Deadlock`](crate::LockError::Deadlock).
fn is_refused(cycle: &[Link<'_>]) -> bool {
    // The kernel follows the chain of owners through its own mutexes only.
    let is_in_kernel = |link: &Link<'_>| link.waiting.wait.kind == LockKind::PiMutex;
    let is_of_one_checked =
        cycle.len() == 1 && cycle[0].waiting.wait.kind == LockKind::CheckedMutex;
    is_of_one_checked || cycle.iter().all(is_in_kernel)
}

impl Link<'_> {
    /// Whether the thread still waits, and no other recorded holder contradicts this one.
    pub(super) fn stands(&self) -> bool {
        self.waiting.record.is_at(self.waiting.sequence)
            && !self.is_contradicted()
            && (!self.holder_has_ended || self.holder_is_gone())
    }

    fn is_contradicted(&self) -> bool {
        let excludes = |other: &Use| {
            let beside = |one: Way, other: Way| one == Way::Shared && other != Way::Exclusive;
            let (one, other_way) = (self.held.way, other.way);
            other.lock == self.held.lock && !beside(one, other_way) && !beside(other_way, one)
        };
        record::all()
            .filter(|other| !core::ptr::eq(*other, self.holder))
            .any(|other| other.held().iter().any(excludes))
    }

    /// Whether the holder's last destructor has run and the lock is still held.
    fn holder_is_gone(&self) -> bool {
        let is_held = |held: &Use| held.lock == self.held.lock && held.way == self.held.way;
        let is_gone = |(_, number)| !tid::exists(number);
        self.holder.has_ended()
            && self.holder.held().iter().any(is_held)
            && self.holder.thread().is_some_and(is_gone)
    }
}
