//! A look: the threads of a process at one moment, and what each waits for.

use super::calls::{Place, place};
use super::glibc;
use super::recorded::{Recorded, Recording};
use crate::remote::{Call, Remote, Stack, Thread};
use crate::symbols::Symbols;
use anyhow::Result;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use waitword_record::format::{MOST_HELD, Object};

/// The threads, by their IDs in their own PID namespace: the IDs that locks contain.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Those that have not ended.
    pub threads: BTreeMap<u32, Node>,
    /// When the look began, in nanoseconds of `CLOCK_MONOTONIC`.
    pub at: u64,
}

/// A thread.
#[derive(Clone, Debug)]
pub struct Node {
    /// What the kernel says of it.
    pub thread: Thread,
    /// Where it is.
    pub stack: Stack,
    /// What it waits for, if it waits.
    pub wait: Option<Wait>,
}

/// A wait that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// What the thread waits for.
    pub object: Object,
    /// Its address, if that is known.
    pub address: Option<u64>,
    /// When the wait began, in nanoseconds of `CLOCK_MONOTONIC`, if that is known.
    pub since: Option<u64>,
    /// Which threads hold the object.
    pub holders: Holders,
    /// How this is known.
    pub source: Source,
    /// The kind of a mutex.
    pub kind: Option<&'static str>,
    /// Whether it has a deadline, so that it ends by itself.
    pub has_deadline: bool,
}

/// Which threads have what another one waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holders {
    /// These.
    Threads(Vec<u32>),
    /// So many readers; an rwlock does not know which ones.
    Readers(u32),
    /// A thread of another process: the lock is shared, or was held at a fork.
    Elsewhere(u32),
    /// It is not known; why.
    Unknown(&'static str),
    /// No thread: it waits for work, or for an event.
    None,
}

/// How a wait and its holder are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The process records.
    Recording,
    /// The object's bytes, in glibc's layout.
    Glibc,
    /// The word of a priority-inheriting lock, which the kernel prescribes.
    Kernel,
    /// Only that the thread sleeps in a futex call, below this function.
    Stack,
}

impl Source {
    /// As a part of a sentence.
    pub fn shown(self) -> &'static str {
        match self {
            Self::Recording => "the recording",
            Self::Glibc => "glibc's object",
            Self::Kernel => "the futex word",
            Self::Stack => "the stack only",
        }
    }
}

impl Wait {
    /// Whether it is for a lock, or for the end of a thread: something that a thread can withhold.
    pub fn has_holder(&self) -> bool {
        self.object.is_lock() || self.object == Object::Join
    }
}

impl Node {
    /// Whether the thread may sleep in a wait. One that has left a wait by a jump still seems to
    /// wait in its recording, but runs, or sleeps in another call.
    fn may_be_parked(&self) -> bool {
        match self.thread.call {
            Call::In { number, .. } => is_futex(number),
            // Running, or the kernel does not say.
            Call::Running => self.thread.state != 'R',
            Call::Outside { .. } => false,
        }
    }

    /// Whether the thread is in the same wait as at an earlier look, and has been all the time.
    pub fn still_waits(&self, earlier: &Self) -> bool {
        match (&self.wait, &earlier.wait) {
            (Some(now), Some(then)) if now.source == Source::Recording => {
                (now.source, now.object, now.address, now.since)
                    == (then.source, then.object, then.address, then.since)
                    && self.may_be_parked()
                    && earlier.may_be_parked()
            }
            (Some(now), Some(then)) => {
                (now.object, now.address) == (then.object, then.address)
                    && self.thread.call == earlier.thread.call
                    && self.thread.switches == earlier.thread.switches
            }
            _ => false,
        }
    }
}

impl Graph {
    /// Looks at a process, and at its recording, if it has one. The stacks of threads that have not
    /// run since the look before are those of that look.
    ///
    /// # Errors
    /// The process has ended, or the recording cannot be read.
    pub fn look(
        remote: &Remote,
        recording: Option<&Recording>,
        symbols: &mut Symbols<'_>,
        before: &Self,
    ) -> Result<Self> {
        let at = crate::now();
        // First the recording: a holder in it that is missing from the threads has ended.
        let recorded = recording.map(Recording::threads).transpose()?.unwrap_or_default();
        let mut graph = Self { threads: BTreeMap::new(), at };
        let mut threads = remote.threads()?;
        threads.retain(|thread| !thread.has_ended());
        let ids: HashSet<u32> = threads.iter().map(|thread| thread.own_tid).collect();
        for thread in threads {
            let before = before.threads.get(&thread.own_tid).filter(|it| it.thread == thread);
            let stack = before.map_or_else(|| remote.stack(&thread), |it| it.stack.clone());
            let wait = of_stack(remote, &thread, &stack, symbols, &ids);
            graph.threads.insert(thread.own_tid, Node { thread, stack, wait });
        }
        graph.add_recorded(&recorded);
        let proc = remote.path(Path::new("/proc"));
        graph.note_other_processes(|thread| {
            // In the process's own namespace of IDs.
            proc.join("self").exists().then(|| proc.join(thread.to_string()).exists())
        });
        Ok(graph)
    }

    /// What a recording says counts more than what a stack shows.
    pub(super) fn add_recorded(&mut self, recorded: &[Recorded]) {
        let mut holders: HashMap<u64, Vec<u32>> = HashMap::new();
        for thread in recorded {
            for (address, _) in &thread.held {
                let holders = holders.entry(*address).or_default();
                // A recursive lock is in the list more than once.
                if holders.last() != Some(&thread.thread) {
                    holders.push(thread.thread);
                }
            }
        }
        let holds_more = recorded.iter().any(|it| it.held_count as usize > MOST_HELD);
        for it in recorded {
            let (Some(waiting), Some(node)) = (it.waiting, self.threads.get_mut(&it.thread)) else {
                continue;
            };
            let is_same = |wait: &&mut Wait| {
                wait.source == Source::Kernel && wait.address == Some(waiting.address)
            };
            if let Some(wait) = node.wait.as_mut().filter(is_same)
                && !holders.contains_key(&waiting.address)
            {
                // The library's recorder does not know who holds such a lock. Its word names the
                // owner.
                wait.since = Some(waiting.since);
                continue;
            }
            let known = if waiting.object.is_lock() {
                holders.get(&waiting.address).cloned().map_or(
                    Holders::Unknown(if holds_more {
                        "a thread holds more locks than a recording has room for"
                    } else {
                        "it was locked before the recording began, or has just been released"
                    }),
                    Holders::Threads,
                )
            } else {
                // Whose end it waits for is in the call.
                match node.wait.take() {
                    Some(wait) if waiting.object == Object::Join => wait.holders,
                    _ => Holders::None,
                }
            };
            node.wait = Some(Wait {
                object: waiting.object,
                address: Some(waiting.address),
                since: Some(waiting.since),
                holders: known,
                source: Source::Recording,
                kind: None,
                has_deadline: waiting.has_deadline,
            });
        }
    }

    /// A lock may be held by a thread of another process: a process-shared one, or one that a fork
    /// has copied. `exists`: whether there is such a thread; `None` if that cannot be seen.
    pub(super) fn note_other_processes(&mut self, exists: impl Fn(u32) -> Option<bool>) {
        let own: HashSet<u32> = self.threads.keys().copied().collect();
        for node in self.threads.values_mut() {
            // A recording knows the locks of its own threads only.
            let Some(wait) = node.wait.as_mut().filter(|it| it.source != Source::Recording) else {
                continue;
            };
            if let Holders::Threads(holders) = &wait.holders
                && let [holder] = holders.as_slice()
                && !own.contains(holder)
            {
                match exists(*holder) {
                    Some(true) => wait.holders = Holders::Elsewhere(*holder),
                    Some(false) => {}
                    None => wait.holders = Holders::Unknown("its threads' IDs cannot be seen here"),
                }
            }
        }
    }
}

/// What a thread that sleeps in a futex call waits for.
fn of_stack(
    remote: &Remote,
    thread: &Thread,
    stack: &Stack,
    symbols: &mut Symbols<'_>,
    threads: &HashSet<u32>,
) -> Option<Wait> {
    let Call::In { number, args, .. } = thread.call else {
        return None;
    };
    let word = match i64::from(number) {
        libc::SYS_futex => glibc::FutexWait::of(args)?,
        _ if is_futex(number) => {
            return Some(plain(Object::Futex, None, Holders::Unknown(NO_OWNER)));
        }
        _ => return None,
    };
    let wait = match place(symbols, &stack.frames) {
        Some(Place { object, is_glibc: true }) => glibc::wait(remote, object, &word),
        Some(Place { object, .. }) => {
            let owner = word.owner_of_kernel_lock(remote);
            owner.unwrap_or_else(|| plain(object, None, unknown_unless_work(object)))
        }
        None => glibc::by_call(remote, &word, threads).unwrap_or_else(|| {
            plain(Object::Futex, Some(word.address), Holders::Unknown(NO_OWNER))
        }),
    };
    Some(Wait { has_deadline: word.has_deadline, ..wait })
}

fn is_futex(call: u32) -> bool {
    /// futex_waitv and futex_wait.
    const NEW: [i64; 2] = [449, 455];
    i64::from(call) == libc::SYS_futex || NEW.contains(&i64::from(call))
}

const NO_OWNER: &str = "it keeps no owner";

fn unknown_unless_work(object: Object) -> Holders {
    if object.is_lock() { Holders::Unknown(NO_OWNER) } else { Holders::None }
}

fn plain(object: Object, address: Option<u64>, holders: Holders) -> Wait {
    Wait {
        object,
        address,
        since: None,
        holders,
        source: Source::Stack,
        kind: None,
        has_deadline: false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::cycles::tests::graph;
    use super::super::recorded::Waiting;
    use super::*;

    #[test]
    fn a_holder_elsewhere_has_not_ended() {
        let held_by = |thread| Some((Object::Mutex, Holders::Threads(vec![thread])));
        let look = |exists: Option<bool>, source| {
            let mut graph = graph(&[(1, held_by(9)), (2, held_by(1))]);
            for node in graph.threads.values_mut() {
                node.wait.as_mut().unwrap().source = source;
            }
            graph.note_other_processes(|_| exists);
            graph.threads.values().map(|it| it.wait.clone().unwrap().holders).collect::<Vec<_>>()
        };
        let threads = |thread| Holders::Threads(vec![thread]);
        assert_eq!(look(Some(true), Source::Glibc), [Holders::Elsewhere(9), threads(1)]);
        assert_eq!(look(Some(false), Source::Kernel), [threads(9), threads(1)]);
        assert!(matches!(look(None, Source::Glibc)[0], Holders::Unknown(_)));
        assert_eq!(look(Some(true), Source::Recording), [threads(9), threads(1)]);
    }

    #[test]
    fn the_owner_in_a_kernel_s_word_counts_where_a_recording_knows_none() {
        let owner = |held: &[(u64, bool)]| {
            let mut graph =
                graph(&[(1, Some((Object::Mutex, Holders::Threads(vec![2])))), (2, None)]);
            let wait = graph.threads.get_mut(&1).unwrap().wait.as_mut().unwrap();
            wait.source = Source::Kernel;
            let address = wait.address.unwrap();
            let waiting =
                Waiting { object: Object::Mutex, address, since: 77, has_deadline: false };
            let recorded = |thread, waiting, held: &[(u64, bool)]| Recorded {
                ring: 0,
                thread,
                waiting,
                held: held.to_vec(),
                held_count: held.len() as u32,
            };
            graph.add_recorded(&[recorded(1, Some(waiting), &[]), recorded(3, None, held)]);
            let wait = graph.threads[&1].wait.clone().unwrap();
            assert_eq!(wait.since, Some(77));
            (wait.source, wait.holders)
        };
        let threads = |thread| Holders::Threads(vec![thread]);
        assert_eq!(owner(&[]), (Source::Kernel, threads(2)));
        assert_eq!(owner(&[(0x1001, false)]), (Source::Recording, threads(3)));
    }

    #[test]
    fn a_thread_that_has_left_its_wait_waits_no_longer() {
        let graph = graph(&[(1, Some((Object::Mutex, Holders::Threads(vec![2]))))]);
        let node = &graph.threads[&1];
        let with = |call, state| {
            let mut node = node.clone();
            (node.thread.call, node.thread.state) = (call, state);
            node
        };
        let call = |number: i64| Call::In { number: number as u32, args: [0; 6], sp: 0, pc: 0 };
        let parked = with(call(libc::SYS_futex), 'S');
        assert!(parked.still_waits(node) && node.still_waits(&parked));
        for other in [with(call(libc::SYS_nanosleep), 'S'), with(Call::Running, 'R')] {
            assert!(!other.still_waits(&parked) && !parked.still_waits(&other));
        }
    }
}
