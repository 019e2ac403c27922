//! The two looks, and what is the same in both.

use super::cycles::{Finding, find};
use super::glibc;
use super::graph::{Graph, Holders, Source, Wait};
use super::recorded::{Recorded, Recording};
use crate::remote::Remote;
use crate::symbols::Symbols;
use anyhow::Result;
use core::time::Duration;
use std::time::Instant;
use waitword_record::format::Object;

/// The time between the looks. A thread that waits needs that long to be of interest.
const PAUSE: Duration = Duration::from_millis(100);
/// How long a writer has waited that counts as starved.
const STARVED: Duration = Duration::from_secs(1);
/// How long its rwlock is watched, and the time between two glances at it: two readers that relieve
/// each other hold it together for some ten microseconds only.
const WATCHED: Duration = Duration::from_secs(1);
const BETWEEN_GLANCES: Duration = Duration::from_micros(100);
/// A recording takes longer to read, but says which readers there are.
const BETWEEN_READS: Duration = Duration::from_millis(20);
/// How often its readers must change meanwhile.
const CHANGES: u32 = 3;
/// In what part of the glances the lock may be free: a recording can show the moment between two
/// owners. If it is free more often, the writer is only slow.
const MAY_BE_FREE: u32 = 10;

/// What was found.
#[derive(Clone, Debug)]
pub struct Report {
    /// The last look.
    pub graph: Graph,
    /// Those threads that were in the same wait at the look before, too.
    pub waiters: Vec<u32>,
    /// What does not end by itself, the worst first.
    pub findings: Vec<Finding>,
}

/// Looks at a process for deadlocks.
///
/// # Errors
/// It has ended, or its recording cannot be read.
pub fn examine(
    remote: &Remote,
    recording: Option<&Recording>,
    symbols: &mut Symbols<'_>,
) -> Result<Report> {
    let first = Graph::look(remote, recording, symbols, &Graph::default())?;
    std::thread::sleep(PAUSE);
    let second = Graph::look(remote, recording, symbols, &first)?;
    let mut report = compare(&first, second);
    let starved = starved(remote, recording, symbols, &report)?;
    report.findings.extend(starved);
    let concerned: Vec<u32> = report.findings.iter().flat_map(Finding::waiters).collect();
    for thread in concerned {
        if let Some(node) = report.graph.threads.get_mut(&thread) {
            node.stack = remote.whole_stack(&node.thread);
        }
    }
    Ok(report)
}

/// What of the second look was in the first one, too.
fn compare(first: &Graph, second: Graph) -> Report {
    let still_waits = |thread: &u32| match (first.threads.get(thread), second.threads.get(thread)) {
        (Some(then), Some(now)) => now.still_waits(then),
        _ => false,
    };
    let waiters: Vec<u32> = second.threads.keys().copied().filter(still_waits).collect();
    let before = find(first);
    let found = find(&second).into_iter().filter_map(|finding| match finding {
        Finding::Ended { holder, mut waiters } => {
            let had_ended =
                |it: &Finding| matches!(it, Finding::Ended { holder: h, .. } if *h == holder);
            waiters.retain(still_waits);
            (before.iter().any(had_ended) && !waiters.is_empty())
                .then_some(Finding::Ended { holder, waiters })
        }
        other => other.waiters().iter().all(still_waits).then_some(other),
    });
    let findings = found.collect();
    Report { findings, waiters, graph: second }
}

/// Writers that wait for long, while readers come and go.
fn starved(
    remote: &Remote,
    recording: Option<&Recording>,
    symbols: &mut Symbols<'_>,
    report: &Report,
) -> Result<Vec<Finding>> {
    let concerned: Vec<u32> = report.findings.iter().flat_map(Finding::waiters).collect();
    let mut watched: Vec<Watched> = report
        .waiters
        .iter()
        .filter(|thread| !concerned.contains(thread))
        .filter_map(|thread| {
            Watched::new(*thread, report.graph.threads.get(thread)?.wait.as_ref()?)
        })
        .collect();
    if watched.is_empty() {
        return Ok(Vec::new());
    }
    let are_recorded = watched.iter().all(|it| it.source == Source::Recording);
    let between = if are_recorded { BETWEEN_READS } else { BETWEEN_GLANCES };
    let (began, mut read) = (Instant::now(), None::<Instant>);
    while began.elapsed() < WATCHED {
        let threads = match recording {
            Some(recording) if read.is_none_or(|read| read.elapsed() >= BETWEEN_READS) => {
                read = Some(Instant::now());
                Some(recording.threads()?)
            }
            _ => None,
        };
        for writer in &mut watched {
            match (writer.source, &threads) {
                (Source::Recording, Some(threads)) => {
                    writer.glance(readers(threads, writer.address));
                }
                (Source::Recording, None) => {}
                _ => writer.glance(glibc::readers(remote, writer.address).map(|it| vec![it])),
            }
        }
        std::thread::sleep(between);
    }
    let last = Graph::look(remote, recording, symbols, &report.graph)?;
    let still = |thread: u32| {
        let (now, then) = (last.threads.get(&thread), report.graph.threads.get(&thread));
        now.zip(then).is_some_and(|(now, then)| now.still_waits(then))
    };
    let long_ago = last.at.saturating_sub(STARVED.as_nanos() as u64);
    watched.retain(|it| {
        it.is_starved() && it.since.is_none_or(|since| since <= long_ago) && still(it.thread)
    });
    Ok(watched.iter().map(|it| Finding::Starved { writer: it.thread }).collect())
}

/// The threads that hold a lock, if they are all readers.
fn readers(threads: &[Recorded], lock: u64) -> Option<Vec<u32>> {
    let mut holders = Vec::new();
    for thread in threads {
        for (_, reads) in thread.held.iter().filter(|(address, _)| *address == lock) {
            if !reads {
                return None;
            }
            holders.push(thread.thread);
        }
    }
    (!holders.is_empty()).then_some(holders)
}

/// A writer that may be starved.
struct Watched {
    thread: u32,
    address: u64,
    since: Option<u64>,
    source: Source,
    readers: Option<Vec<u32>>,
    changes: u32,
    glances: u32,
    free: u32,
}

impl Watched {
    fn new(thread: u32, wait: &Wait) -> Option<Self> {
        let may_be_readers = matches!(wait.holders, Holders::Readers(_) | Holders::Threads(_))
            || wait.source == Source::Recording;
        let wanted = wait.object == Object::Write && may_be_readers;
        let (address, since, source) = (wait.address.filter(|_| wanted)?, wait.since, wait.source);
        Some(Self {
            thread,
            address,
            since,
            source,
            readers: None,
            changes: 0,
            glances: 0,
            free: 0,
        })
    }

    /// Notes which readers there are; `None` if there are none.
    fn glance(&mut self, now: Option<Vec<u32>>) {
        self.glances += 1;
        match now {
            None => self.free += 1,
            Some(now) => {
                self.changes += u32::from(self.readers.as_ref().is_some_and(|it| *it != now));
                self.readers = Some(now);
            }
        }
    }

    fn is_starved(&self) -> bool {
        self.changes >= CHANGES && self.free <= self.glances / MAY_BE_FREE
    }
}

impl Report {
    /// How many threads wait for locks, in both looks.
    pub fn waiting_for_locks(&self) -> usize {
        self.waits().filter(|(_, wait)| wait.object.is_lock()).count()
    }

    /// The waits of the threads that were in them in both looks.
    pub fn waits(&self) -> impl Iterator<Item = (u32, &Wait)> {
        self.waiters
            .iter()
            .filter_map(|thread| Some((*thread, self.graph.threads.get(thread)?.wait.as_ref()?)))
    }

    /// The threads that wait for a lock whose holder is not known.
    pub fn without_holder(&self) -> Vec<u32> {
        let unknown = |wait: &Wait| {
            matches!(wait.holders, Holders::Unknown(_))
                && (wait.object.is_lock() || wait.object == Object::Futex)
        };
        self.waits().filter(|(_, wait)| unknown(wait)).map(|(thread, _)| thread).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::cycles::tests::graph;
    use super::super::recorded::{Recording, Waiting, tests::rings};
    use super::*;
    use waitword_testkit::{sleeps, until};

    fn mutex_of(holder: u32) -> Option<(Object, Holders)> {
        Some((Object::Mutex, Holders::Threads(vec![holder])))
    }

    #[test]
    fn only_what_is_the_same_in_both_looks_is_found() {
        let cycle = graph(&[(1, mutex_of(2)), (2, mutex_of(1)), (3, mutex_of(9))]);
        let report = compare(&cycle, cycle.clone());
        let ended = Finding::Ended { holder: 9, waiters: vec![3] };
        assert_eq!(report.findings, [Finding::Cycle(vec![1, 2]), ended]);
        assert_eq!(report.waiting_for_locks(), 3);
        // One of the waits is another one: the first look was torn.
        let mut other = cycle.clone();
        other.threads.get_mut(&2).unwrap().wait.as_mut().unwrap().since = Some(6);
        other.threads.get_mut(&3).unwrap().wait.as_mut().unwrap().address = Some(1);
        let report = compare(&other, cycle.clone());
        assert_eq!(report.findings, []);
        assert_eq!(report.waiters, [1]);
        // The holder ended between the looks.
        let before = graph(&[(3, mutex_of(9)), (9, None)]);
        assert_eq!(compare(&before, cycle).findings, []);
    }

    #[test]
    fn a_writer_is_starved_if_readers_change_and_never_leave() {
        let wait =
            graph(&[(1, Some((Object::Write, Holders::Readers(1))))]).threads[&1].wait.clone();
        let watch = |glances: &[Option<u32>]| {
            let mut watched = Watched::new(1, wait.as_ref().unwrap()).unwrap();
            glances.iter().for_each(|it| watched.glance(it.map(|it| vec![it])));
            watched.is_starved()
        };
        assert!(watch(&[Some(1), Some(2), Some(1), Some(2)]));
        assert!(!watch(&[Some(1), Some(1), Some(1), Some(2)]), "one reader stays");
        assert!(!watch(&[Some(1), None, Some(2), None, Some(1), Some(2)]), "the lock is free");
    }

    #[test]
    fn readers_of_a_recording_are_none_if_one_writes() {
        let thread = |thread, held: &[(u64, bool)]| Recorded {
            ring: 0,
            thread,
            waiting: None,
            held: held.to_vec(),
            held_count: held.len() as u32,
        };
        let threads = [thread(1, &[(8, true), (16, false)]), thread(2, &[(8, true)])];
        assert_eq!(readers(&threads, 8), Some(vec![1, 2]));
        assert_eq!(readers(&threads, 16), None);
        assert_eq!(readers(&threads, 24), None);
    }

    /// The test's own process stands for one that records: two threads of it wait for each other in
    /// the file, and one for a thread that has ended.
    #[test]
    fn a_recording_says_who_waits_for_whom() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join(format!("{}.1.rings", std::process::id()));
        let (tell, threads) = std::sync::mpsc::channel();
        let (end, ends): (Vec<_>, Vec<_>) =
            (0..3).map(|_| std::sync::mpsc::channel::<()>()).unzip();
        std::thread::scope(|scope| {
            for end in ends {
                let tell = tell.clone();
                scope.spawn(move || {
                    tell.send(nix::unistd::gettid().as_raw() as u32).unwrap();
                    let _ = end.recv();
                });
            }
            let [a, b, c] = [(); 3].map(|()| threads.recv().unwrap());
            // A thread that is not asleep yet may not wait at all.
            until(|| [a, b, c].into_iter().all(sleeps));
            let wait =
                |object, address| Some(Waiting { object, address, since: 77, has_deadline: false });
            let ended = 1 << 23;
            let bytes = rings(&[
                (a, wait(Object::Mutex, 0x20), &[0x10]),
                (b, wait(Object::Write, 0x10), &[0x21, 0x30]),
                (c, wait(Object::Mutex, 0x40), &[]),
                (ended, None, &[0x40]),
            ]);
            std::fs::write(&path, bytes).unwrap();
            let remote = Remote::open(std::process::id()).unwrap();
            let recording = Recording::find(&remote, Some(place.path())).unwrap().unwrap();
            let mut symbols = remote.symbols();
            let report = examine(&remote, Some(&recording), &mut symbols).unwrap();
            let cycle = if a < b { vec![a, b] } else { vec![b, a] };
            let ended = Finding::Ended { holder: ended, waiters: vec![c] };
            assert_eq!(report.findings, [Finding::Cycle(cycle), ended]);
            let wait = report.graph.threads[&a].wait.as_ref().unwrap();
            assert_eq!((wait.source, wait.since), (Source::Recording, Some(77)));
            drop(end);
        });
        let remote = Remote::open(std::process::id()).unwrap();
        let nowhere = tempfile::tempdir().unwrap();
        assert!(Recording::find(&remote, Some(nowhere.path())).is_err());
    }
}
