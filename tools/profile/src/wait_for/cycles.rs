//! What is wrong in a look: cycles of threads that wait for each other, and locks whose holder has
//! ended.
//!
//! A thread waits for *all* holders of a lock: an rwlock with several readers becomes free when the
//! last one releases it. So one holder that never does so is enough, and any cycle is a deadlock.
//! Only one is reported of those that have threads in common.

use super::graph::{Graph, Holders, Node};
use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use waitword_record::format::Object;

/// Something that does not end by itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Finding {
    /// Each thread waits for what the next one holds, and the last one for what the first one
    /// holds. One thread alone waits for what it holds itself.
    Cycle(Vec<u32>),
    /// These threads wait for a lock whose holder has ended.
    Ended {
        /// The thread that has ended.
        holder: u32,
        /// Those that wait.
        waiters: Vec<u32>,
    },
    /// This thread waits for an rwlock that is never free: new readers come before the old ones
    /// have gone.
    Starved {
        /// The thread that wants to write.
        writer: u32,
    },
}

impl Finding {
    /// The threads that wait.
    pub fn waiters(&self) -> Vec<u32> {
        match self {
            Self::Cycle(threads) | Self::Ended { waiters: threads, .. } => threads.clone(),
            Self::Starved { writer } => vec![*writer],
        }
    }
}

/// The threads that keep what this one waits for.
fn holders(node: &Node) -> &[u32] {
    match &node.wait {
        // A wait with a deadline ends by itself.
        Some(wait) if wait.has_holder() && !wait.has_deadline => match &wait.holders {
            Holders::Threads(holders) => holders,
            _ => &[],
        },
        _ => &[],
    }
}

/// The cycles, and the locks whose holder has ended.
pub(super) fn find(graph: &Graph) -> Vec<Finding> {
    let mut edges = DiGraphMap::<u32, ()>::new();
    let mut ended: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (&thread, node) in &graph.threads {
        for &holder in holders(node) {
            if graph.threads.contains_key(&holder) {
                edges.add_edge(thread, holder, ());
            } else if node.wait.as_ref().is_some_and(|wait| wait.object != Object::Join) {
                ended.entry(holder).or_default().push(thread);
            }
        }
    }
    let mut cycles: Vec<Vec<u32>> = tarjan_scc(&edges)
        .iter()
        .filter_map(|component| shortest_cycle(&edges, component))
        .collect();
    cycles.sort();
    let cycles = cycles.into_iter().map(Finding::Cycle);
    cycles
        .chain(ended.into_iter().map(|(holder, waiters)| Finding::Ended { holder, waiters }))
        .collect()
}

/// A shortest way from the first thread that is on a cycle of these back to it.
fn shortest_cycle(edges: &DiGraphMap<u32, ()>, component: &[u32]) -> Option<Vec<u32>> {
    let alone = component.iter().copied().filter(|&it| edges.contains_edge(it, it)).min();
    if let Some(thread) = alone {
        return Some(vec![thread]);
    }
    if component.len() < 2 {
        return None;
    }
    let members: HashSet<u32> = component.iter().copied().collect();
    let start = component.iter().copied().min()?;
    let mut came_from: HashMap<u32, u32> = HashMap::new();
    let mut next = VecDeque::from([start]);
    while let Some(thread) = next.pop_front() {
        for holder in edges.neighbors(thread).filter(|holder| members.contains(holder)) {
            if holder == start {
                let mut cycle = vec![thread];
                while let Some(&before) = cycle.last().and_then(|last| came_from.get(last)) {
                    cycle.push(before);
                }
                cycle.reverse();
                return Some(cycle);
            }
            if let std::collections::hash_map::Entry::Vacant(place) = came_from.entry(holder) {
                place.insert(thread);
                next.push_back(holder);
            }
        }
    }
    None
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::graph::{Source, Wait};
    use super::*;
    use crate::remote::{Call, Stack, Thread};

    /// A graph of these threads: what each waits for, and who holds it.
    pub(crate) fn graph(threads: &[(u32, Option<(Object, Holders)>)]) -> Graph {
        let node = |tid, wait: &Option<(Object, Holders)>| Node {
            thread: Thread {
                tid,
                own_tid: tid,
                name: format!("t{tid}"),
                state: 'S',
                switches: 1,
                call: Call::Running,
            },
            stack: Stack::default(),
            wait: wait.clone().map(|(object, holders)| Wait {
                object,
                address: Some(0x1000 + u64::from(tid)),
                since: Some(5),
                holders,
                source: Source::Recording,
                kind: None,
                has_deadline: false,
            }),
        };
        let threads = threads.iter().map(|(tid, wait)| (*tid, node(*tid, wait))).collect();
        Graph { threads, at: 1_000_000_005 }
    }

    fn mutex_of(holders: &[u32]) -> Option<(Object, Holders)> {
        Some((Object::Mutex, Holders::Threads(holders.to_vec())))
    }

    #[test]
    fn a_cycle_is_found_among_chains_and_those_who_wait_for_it_are_not_on_it() {
        let found = find(&graph(&[
            (1, mutex_of(&[2])),
            (2, mutex_of(&[3])),
            (3, mutex_of(&[1])),
            // Waits for the cycle, a chain that ends, and no wait.
            (4, mutex_of(&[1])),
            (5, mutex_of(&[6])),
            (6, None),
        ]));
        assert_eq!(found, [Finding::Cycle(vec![1, 2, 3])]);
    }

    #[test]
    fn of_cycles_with_common_threads_a_shortest_one_is_reported() {
        let found = find(&graph(&[
            (1, Some((Object::Write, Holders::Threads(vec![2, 3])))),
            (2, mutex_of(&[3])),
            (3, mutex_of(&[1])),
        ]));
        assert_eq!(found, [Finding::Cycle(vec![1, 3])]);
    }

    #[test]
    fn a_thread_that_waits_for_itself_and_one_whose_holder_has_ended() {
        let found = find(&graph(&[(1, mutex_of(&[1])), (2, mutex_of(&[9])), (3, mutex_of(&[9]))]));
        let ended = Finding::Ended { holder: 9, waiters: vec![2, 3] };
        assert_eq!(found, [Finding::Cycle(vec![1]), ended]);
    }

    #[test]
    fn a_join_can_close_a_cycle_and_the_end_of_a_joined_thread_is_no_finding() {
        let join = |thread| Some((Object::Join, Holders::Threads(vec![thread])));
        let found = find(&graph(&[(1, join(2)), (2, mutex_of(&[1])), (3, join(9))]));
        assert_eq!(found, [Finding::Cycle(vec![1, 2])]);
    }

    #[test]
    fn a_wait_with_a_deadline_is_on_no_cycle() {
        let mut timed = graph(&[(1, mutex_of(&[2])), (2, mutex_of(&[1])), (3, mutex_of(&[9]))]);
        for thread in [1, 3] {
            timed.threads.get_mut(&thread).unwrap().wait.as_mut().unwrap().has_deadline = true;
        }
        assert_eq!(find(&timed), []);
    }

    #[test]
    fn waits_for_work_and_unknown_holders_are_no_finding() {
        let found = find(&graph(&[
            (1, Some((Object::Condvar, Holders::None))),
            (2, Some((Object::Mutex, Holders::Unknown("why")))),
            (3, Some((Object::Write, Holders::Readers(2)))),
            (4, Some((Object::Mutex, Holders::Elsewhere(9)))),
            // Whatever it says of a holder.
            (5, Some((Object::Condvar, Holders::Threads(vec![5])))),
        ]));
        assert_eq!(found, []);
    }
}
