//! Lock orders that can deadlock: one thread locks A and then B, another one B and then A.
//!
//! Evidence for the order "A, then B": a thread waited for A; the recorder saw that A's holder
//! waited for B ([`Wait::next`]); and the thread that then released A was recorded as it waited for
//! B at that time. Orders that make a cycle, seen in at least two threads, can deadlock, unless
//! these threads always hold one more lock around both. The time that was lost does not matter: a
//! deadlock loses all of it.

use super::sums::{Bounded, Costs, grow, lost, weight};
use super::{Detector, Finding, Kind, Line, Run, capital};
use crate::text::time;
use std::collections::{BTreeMap, BTreeSet};
use waitword_record::format::{Object, Wait};

/// The most locks in a cycle that is looked for.
const LONGEST: usize = 4;
/// The most cycles that are reported.
const REPORTED: usize = 5;
/// How many waits are remembered for each order, and for each thread at a lock: the longest.
const REMEMBERED: usize = 8;

#[derive(Debug, Default)]
pub(super) struct Order {
    /// From the lock that a thread waited for to the one that its holder waited for.
    orders: Bounded<(u64, u64), Waits>,
    /// The waits of each thread for each lock.
    waits: Bounded<(u32, u64), Waits>,
}

#[derive(Debug, Default)]
struct Waits {
    count: u64,
    lost: u64,
    longest: Vec<Remembered>,
}

#[derive(Clone, Copy, Debug)]
struct Remembered {
    began: u64,
    ended: u64,
    stack: u32,
    /// The thread that released the lock.
    waker: u32,
}

impl Remembered {
    fn took(&self) -> u64 {
        self.ended - self.began
    }
}

impl Costs for Waits {
    fn cost(&self) -> u64 {
        self.lost
    }
}

impl Waits {
    fn add(&mut self, wait: &Wait) {
        grow(&mut self.count, weight(wait));
        grow(&mut self.lost, lost(wait));
        let ended = wait.began.saturating_add(wait.took);
        let this = Remembered { began: wait.began, ended, stack: wait.stack, waker: wait.waker };
        if self.longest.len() < REMEMBERED {
            self.longest.push(this);
        } else if let Some(least) = self.longest.iter_mut().min_by_key(|it| it.took())
            && least.took() < this.took()
        {
            *least = this;
        }
    }
}

/// A thread that locked one lock and then waited for another, at this stack.
#[derive(Clone, Copy, Debug)]
struct Seen {
    thread: u32,
    stack: u32,
}

impl Detector for Order {
    fn add(&mut self, thread: u32, object: Object, wait: &Wait) {
        if !object.is_lock() {
            return;
        }
        self.waits.of((thread, wait.address)).add(wait);
        if wait.next != 0 && wait.next != wait.address {
            self.orders.of((wait.address, wait.next)).add(wait);
        }
    }

    fn findings(&self, run: &Run<'_>) -> Vec<Finding> {
        let mut graph: BTreeMap<u64, BTreeMap<u64, Vec<Seen>>> = BTreeMap::new();
        for ((first, then), order) in self.orders.iter() {
            let seen = self.seen(*then, order);
            if !seen.is_empty() {
                graph.entry(*first).or_default().insert(*then, seen);
            }
        }
        let mut cycles = BTreeSet::new();
        for lock in graph.keys() {
            find_cycles(&graph, &mut vec![*lock], &mut cycles);
        }
        cycles.iter().filter_map(|cycle| self.finding(&graph, cycle, run)).collect()
    }
}

impl Order {
    /// The threads that had the first lock of an order and waited for the second one.
    fn seen(&self, then: u64, order: &Waits) -> Vec<Seen> {
        let mut all: Vec<Seen> = Vec::new();
        for example in &order.longest {
            let thread = example.waker;
            let waits = self.waits.get(&(thread, then));
            let at_that_time = waits.and_then(|waits| {
                waits.longest.iter().find(|it| it.began < example.ended && example.began < it.ended)
            });
            if let Some(wait) = at_that_time
                && all.iter().all(|seen| seen.thread != thread)
            {
                all.push(Seen { thread, stack: wait.stack });
            }
        }
        all
    }

    fn finding(
        &self,
        graph: &BTreeMap<u64, BTreeMap<u64, Vec<Seen>>>,
        cycle: &[u64],
        run: &Run<'_>,
    ) -> Option<Finding> {
        let next = |n: usize| cycle[(n + 1) % cycle.len()];
        let orders: Vec<(u64, u64, &[Seen])> = cycle
            .iter()
            .enumerate()
            .filter_map(|(n, lock)| Some((*lock, next(n), &**graph.get(lock)?.get(&next(n))?)))
            .collect();
        let threads: BTreeSet<u32> =
            orders.iter().flat_map(|(.., seen)| seen.iter().map(|it| it.thread)).collect();
        if orders.len() != cycle.len() || threads.len() < 2 {
            return None;
        }
        let mut sum = 0;
        let mut said = vec![Line::new(format!(
            "{} locks are taken in different orders. Two threads that meet there wait for each \
             other for ever.",
            cycle.len(),
        ))];
        for (first, then, seen) in orders {
            let waits = self.orders.get(&(first, then))?;
            grow(&mut sum, waits.lost);
            let Seen { thread, stack } = *seen.first()?;
            said.push(Line::at(
                format!(
                    "{} had lock {first:#x} and waited for lock {then:#x}, while others waited \
                     for the first one ({} waits, {}), at",
                    capital(&run.thread(thread)),
                    waits.count,
                    time(waits.lost),
                ),
                stack,
            ));
        }
        let advice = "Take these locks in the same order everywhere, or the second one with \
                      trylock, and release the first one if that fails. If all these places hold \
                      one more lock around both, they cannot deadlock.";
        Some(Finding { kind: Kind::Order, lost: sum, said, advice })
    }
}

/// Adds the cycles that begin with this path. Each begins with its smallest address.
fn find_cycles(
    graph: &BTreeMap<u64, BTreeMap<u64, Vec<Seen>>>,
    path: &mut Vec<u64>,
    cycles: &mut BTreeSet<Vec<u64>>,
) {
    let (Some(&first), Some(last)) = (path.first(), path.last()) else {
        return;
    };
    for &next in graph.get(last).into_iter().flat_map(BTreeMap::keys) {
        if cycles.len() >= REPORTED {
            return;
        }
        if next == first && path.len() > 1 {
            cycles.insert(path.clone());
        } else if next > first && path.len() < LONGEST && !path.contains(&next) {
            path.push(next);
            find_cycles(graph, path, cycles);
            path.pop();
        }
    }
}
