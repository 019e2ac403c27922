//! Finds the threads that can never go on: cycles of threads that wait for each other, and threads
//! that wait for one that has ended.
//!
//! # Why a cycle that is found is one
//!
//! The check reads the records one after the other, without stopping any thread: first all of them,
//! then, once more, the `sequence` of those in the cycle. If none has changed, no thread of the
//! cycle had got its lock when it was read again. For suppose that thread A had, whose lock thread
//! B is recorded to hold, in its wait number b:
//!
//! * B held the lock before that wait began and after it ended, since it writes locks down after
//!   taking them and strikes them out before giving them back.
//! * So A got it after B's wait had ended; or it had it, and gave it back, before B took it. In the
//!   second case A's wait was over before B's began, and the check, which had seen B's, would have
//!   seen that at the second look.
//! * In the first case B had got the lock that it waited for. So had the next thread, before it,
//!   and so on, all round the cycle: A had got its lock before it got its lock.
//!
//! # What that rests on
//!
//! A recorded holder may hold nothing, if its guard was leaked and the lock's memory is another
//! lock now, or if another thread has given the lock back. Then that lock has other holders, too,
//! which cannot hold it beside the first: such locks are left out. The pause between the two looks
//! is for threads that have just taken a lock, and have not yet written it down.
//!
//! Some waits end with an error instead of the lock. Cycles that are only made of those are left
//! out.

use super::kind::{LockKind, Way};
use super::record::{self, Record, Use, Waiting};
use crate::sys::tid;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering::Relaxed;

/// A thread that waits, and a thread that holds what it waits for.
#[derive(Clone, Copy)]
pub(super) struct Link<'a> {
    pub(super) waiting: &'a Waiting,
    pub(super) holder: &'static Record,
    pub(super) held: Use,
    pub(super) holder_has_ended: bool,
}

/// All threads that wait, and what could keep them from going on.
pub(super) struct Graph {
    waiting: Vec<Waiting>,
    /// The holders of each lock that wait or have ended. (Others will give it back.)
    holders: HashMap<usize, Vec<(Holder, Use)>>,
}

#[derive(Clone, Copy)]
enum Holder {
    /// This one of those that wait.
    Waits(usize),
    HasEnded(&'static Record),
}

impl Graph {
    /// As the threads are now.
    pub(super) fn read() -> Self {
        let mut graph = Self {
            waiting: Vec::new(),
            holders: HashMap::new(),
        };
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

    /// All deadlocks in which there is a thread that has not been reported in this wait.
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
        holders
            .copied()
            .filter(move |(_, held)| blocks(held.way, wait.way))
    }

    /// The shortest cycle through this thread.
    fn cycle_of(&self, start: usize) -> Option<Vec<Link<'_>>> {
        // By which thread each was found, and what it holds that that one waits for.
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

    /// The cycle, from `start` on, each thread before the one that it waits for.
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

    /// This thread, if what it waits for is held by one that has ended.
    fn link_to_the_ended(&self, index: usize) -> Option<Link<'_>> {
        let waiting = &self.waiting[index];
        if waiting.wait.kind == LockKind::PiMutex {
            // The kernel passes it on.
            return None;
        }
        self.blockers(index)
            .find_map(|(holder, held)| match holder {
                Holder::HasEnded(holder) => Some(Link {
                    waiting,
                    holder,
                    held,
                    holder_has_ended: true,
                }),
                Holder::Waits(_) => None,
            })
    }
}

/// Whether a thread that holds a lock so keeps one from it that wants it so.
fn blocks(held: Way, wanted: Way) -> bool {
    match wanted {
        Way::Shared => held == Way::Exclusive,
        Way::Upgradable => held != Way::Shared,
        Way::Exclusive => true,
        // The one upgradable holder is the thread that waits.
        Way::Upgrade => held == Way::Shared,
    }
}

/// Whether one of the waits, at least, ends with
/// [`LockError::Deadlock`](crate::LockError::Deadlock).
fn is_refused(cycle: &[Link<'_>]) -> bool {
    // The kernel follows the chain of owners through its own mutexes only.
    let is_in_kernel = |link: &Link<'_>| link.waiting.wait.kind == LockKind::PiMutex;
    let is_of_one_checked =
        cycle.len() == 1 && cycle[0].waiting.wait.kind == LockKind::CheckedMutex;
    is_of_one_checked || cycle.iter().all(is_in_kernel)
}

impl Link<'_> {
    /// Whether the thread still waits, and no thread holds the lock that could not hold it beside
    /// the holder.
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

    /// Whether the holder's last destructor has run, and the lock is held still.
    fn holder_is_gone(&self) -> bool {
        let is_held = |held: &Use| held.lock == self.held.lock && held.way == self.held.way;
        let is_gone = |(_, number)| !tid::exists(number);
        self.holder.has_ended()
            && self.holder.held().iter().any(is_held)
            && self.holder.thread().is_some_and(is_gone)
    }
}
