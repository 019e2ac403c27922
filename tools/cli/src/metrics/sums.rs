//! The sums behind the metrics. They only grow, and the number of their labels has a limit.
//!
//! Waits are summed up by stack while a recording is read, and by name afterwards. A name gets
//! metrics of its own when it is first served, as long as there are any left: the costliest names
//! first. All others are summed up. A name that has gone there stays there, so that no number ever
//! becomes smaller: a smaller number would look like a restart of the program.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use waitword_profile::live::rates::weight;
use waitword_profile::live::{Live, ProcessId, Record, printable};
use waitword_record::format::{Ended, Object};

/// The bounds of the histograms, in nanoseconds: two for each power of ten from 10 µs to 100 s.
pub(super) const BOUNDS: [u64; 15] = [
    10_000,
    30_000,
    100_000,
    300_000,
    1_000_000,
    3_000_000,
    10_000_000,
    30_000_000,
    100_000_000,
    300_000_000,
    1_000_000_000,
    3_000_000_000,
    10_000_000_000,
    30_000_000_000,
    100_000_000_000,
];
/// The label of all names that have no metrics of their own.
const OTHERS: &str = "(other)";
/// The label of an unknown stack.
const UNKNOWN: &str = "(unknown)";
/// The most names that wait for their first request, and stacks that wait for a name.
const MOST_NEW: usize = 1 << 14;
/// The longest label, in bytes, and the most functions in it.
const LONGEST: usize = 240;
const MOST_FUNCTIONS: usize = 3;

/// How many values there were up to each bound, above the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Histogram {
    /// The last is for values above all bounds.
    pub(super) counts: [u64; BOUNDS.len() + 1],
    /// In nanoseconds.
    pub(super) sum: u64,
}

impl Histogram {
    fn observe(&mut self, nanoseconds: u64, weight: u64) {
        let place = BOUNDS.partition_point(|bound| *bound < nanoseconds);
        self.counts[place] = self.counts[place].saturating_add(weight);
        self.sum = self.sum.saturating_add(nanoseconds.saturating_mul(weight));
    }

    /// The number of values.
    pub(super) fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

/// Sums that can be added.
pub(super) trait Sum: Default {
    fn add(&mut self, other: &Self);
    /// What it cost, in nanoseconds.
    fn cost(&self) -> u64;
}

impl Sum for Histogram {
    fn add(&mut self, other: &Self) {
        for (to, more) in self.counts.iter_mut().zip(other.counts) {
            *to = to.saturating_add(more);
        }
        self.sum = self.sum.saturating_add(other.sum);
    }

    fn cost(&self) -> u64 {
        self.sum
    }
}

/// Waits for locks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Waits {
    pub(super) took: Histogram,
    pub(super) handed_over: u64,
    pub(super) timed_out: u64,
    /// What the holders did meanwhile, in nanoseconds; the rest is unknown.
    pub(super) running: u64,
    pub(super) preempted: u64,
    pub(super) asleep: u64,
}

impl Sum for Waits {
    fn add(&mut self, other: &Self) {
        self.took.add(&other.took);
        for (to, more) in [
            (&mut self.handed_over, other.handed_over),
            (&mut self.timed_out, other.timed_out),
            (&mut self.running, other.running),
            (&mut self.preempted, other.preempted),
            (&mut self.asleep, other.asleep),
        ] {
            *to = to.saturating_add(more);
        }
    }

    fn cost(&self) -> u64 {
        self.took.sum
    }
}

/// Sums by name, with a limit.
#[derive(Clone, Debug)]
pub(super) struct Limited<K, S> {
    own: BTreeMap<K, S>,
    new: HashMap<K, S>,
    others: S,
    most: usize,
}

impl<K: Clone + Ord + Hash, S: Sum + Clone> Limited<K, S> {
    fn new(most: usize) -> Self {
        Self { own: BTreeMap::new(), new: HashMap::new(), others: S::default(), most }
    }

    fn add(&mut self, key: K, sum: &S) {
        if let Some(own) = self.own.get_mut(&key) {
            own.add(sum);
        } else if self.new.len() < MOST_NEW || self.new.contains_key(&key) {
            self.new.entry(key).or_default().add(sum);
        } else {
            self.others.add(sum);
        }
    }

    /// The sums to be served, and the sum of all others.
    fn serve(&mut self) -> (BTreeMap<K, S>, S) {
        let mut new: Vec<(K, S)> = self.new.drain().collect();
        new.sort_by(|(one, sum), (other, of_other)| {
            of_other.cost().cmp(&sum.cost()).then_with(|| one.cmp(other))
        });
        for (key, sum) in new {
            if self.own.len() < self.most {
                self.own.insert(key, sum);
            } else {
                self.others.add(&sum);
            }
        }
        (self.own.clone(), self.others.clone())
    }
}

/// What was recorded at a stack and has no name yet.
#[derive(Clone, Debug, Default)]
struct Unnamed {
    waits: Waits,
    holds: Histogram,
    /// It had no name in the last round either.
    is_old: bool,
}

/// All sums.
#[derive(Debug)]
pub(super) struct Gathered {
    /// `None`: holds.
    unnamed: HashMap<(ProcessId, Option<Object>, u32), Unnamed>,
    locks: Limited<(String, &'static str), Waits>,
    holds: Limited<String, Histogram>,
    /// Waits for work and events, by kind.
    events: BTreeMap<&'static str, Histogram>,
    lost: u64,
}

/// All that is served.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// By site and kind.
    pub(super) locks: Vec<((String, &'static str), Waits)>,
    pub(super) holds: Vec<(String, Histogram)>,
    pub(super) events: Vec<(&'static str, Histogram)>,
    /// Threads that wait now, by kind.
    pub(super) waiters: Vec<(&'static str, u64)>,
    pub(super) threads: u64,
    pub(super) processes: u64,
    pub(super) lost: u64,
}

impl Gathered {
    /// With metrics of their own for at most this many sites.
    pub(super) fn new(sites: usize) -> Self {
        Self {
            unnamed: HashMap::new(),
            locks: Limited::new(sites),
            holds: Limited::new(sites),
            events: BTreeMap::new(),
            lost: 0,
        }
    }

    /// A thread of this process has recorded something.
    pub(super) fn add(&mut self, process: ProcessId, record: Record<'_>) {
        match record {
            Record::Hold(hold) => {
                let unnamed = self.at(process, None, hold.stack);
                unnamed.holds.observe(hold.took, 1);
            }
            Record::Wait(wait) => {
                let Some(object) = wait.object() else {
                    return;
                };
                let weight = weight(wait);
                if !object.is_lock() {
                    let events = self.events.entry(label(object)).or_default();
                    return events.observe(wait.took, weight);
                }
                let took = wait.took.saturating_mul(weight);
                let part = |thousandths: u16| {
                    (u128::from(took) * u128::from(thousandths.min(1000)) / 1000) as u64
                };
                let if_ended = |how| if wait.ended == how as u8 { weight } else { 0 };
                let mut waits = Waits {
                    took: Histogram::default(),
                    handed_over: if_ended(Ended::HandedOver),
                    timed_out: if_ended(Ended::TimedOut),
                    running: part(wait.running),
                    preempted: part(wait.preempted),
                    asleep: part(wait.asleep),
                };
                waits.took.observe(wait.took, weight);
                self.at(process, Some(object), wait.stack).waits.add(&waits);
            }
        }
    }

    fn at(&mut self, process: ProcessId, object: Option<Object>, stack: u32) -> &mut Unnamed {
        // Beyond the limit, an unknown stack.
        let is_full = self.unnamed.len() >= MOST_NEW;
        let key = (process, object, stack);
        let key = match is_full && !self.unnamed.contains_key(&key) {
            true => (process, object, 0),
            false => key,
        };
        self.unnamed.entry(key).or_default()
    }

    /// Names what has been added, now that the stacks are known. (A stack that another thread has
    /// recorded may be read a moment later.)
    pub(super) fn name(&mut self, live: &mut Live) {
        for ((process, object, stack), unnamed) in core::mem::take(&mut self.unnamed) {
            let is_known = stack == 0
                || live.process(process).is_none_or(|it| it.recorded.stacks.contains_key(&stack));
            if !is_known && !unnamed.is_old {
                let unnamed = Unnamed { is_old: true, ..unnamed };
                self.unnamed.insert((process, object, stack), unnamed);
                continue;
            }
            let site = site(live, process, stack);
            match object {
                Some(object) => self.locks.add((site, label(object)), &unnamed.waits),
                None => self.holds.add(site, &unnamed.holds),
            }
        }
    }

    /// All sums, and what threads do now.
    pub(super) fn snapshot(&mut self, live: &Live) -> Snapshot {
        let (locks, other_locks) = self.locks.serve();
        let (holds, other_holds) = self.holds.serve();
        let mut locks: Vec<_> = locks.into_iter().collect();
        locks.push(((OTHERS.to_owned(), OTHERS), other_locks));
        let mut holds: Vec<_> = holds.into_iter().collect();
        holds.push((OTHERS.to_owned(), other_holds));
        let mut waiters: BTreeMap<&str, u64> =
            Object::ALL.iter().map(|object| (label(*object), 0)).collect();
        let (mut threads, mut processes, mut lost) = (0, 0, 0_u64);
        for process in live.processes() {
            processes += u64::from(!process.has_ended);
            threads += process.threads.len() as u64;
            lost = lost.saturating_add(process.recorded.lost);
            for waiting in process.threads.iter().filter_map(|thread| thread.waiting) {
                *waiters.entry(label(waiting.object)).or_default() += 1;
            }
        }
        // A process that is not followed any more does not make it smaller.
        self.lost = self.lost.max(lost);
        Snapshot {
            locks,
            holds,
            events: self.events.iter().map(|(kind, sum)| (*kind, *sum)).collect(),
            waiters: waiters.into_iter().collect(),
            threads,
            processes,
            lost: self.lost,
        }
    }
}

/// The kind of an object, as the value of a label.
fn label(object: Object) -> &'static str {
    match object {
        Object::Mutex => "mutex",
        Object::Read => "rwlock_read",
        Object::Write => "rwlock_write",
        Object::Condvar => "condvar",
        Object::Semaphore => "semaphore",
        Object::Barrier => "barrier",
        Object::Futex => "futex",
        Object::Join => "join",
        Object::Once => "once",
        Object::Spin => "spin",
    }
}

/// The innermost functions of a stack. The first one is often only a wrapper.
fn site(live: &mut Live, process: ProcessId, stack: u32) -> String {
    let frames = live.frames(process, stack);
    let functions: Vec<String> =
        frames.iter().take(MOST_FUNCTIONS).map(|frame| printable(&frame.function)).collect();
    let mut site = functions.join(" < ");
    if site.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|end| site.is_char_boundary(*end)).unwrap_or(0);
        site.truncate(end);
    }
    if site.is_empty() { UNKNOWN.to_owned() } else { site }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_counted_up_to_the_first_bound_that_is_not_below_it() {
        let mut histogram = Histogram::default();
        histogram.observe(10_000, 1);
        histogram.observe(10_001, 4);
        histogram.observe(u64::MAX, 1);
        assert_eq!((histogram.counts[0], histogram.counts[1]), (1, 4));
        assert_eq!(histogram.counts[BOUNDS.len()], 1);
        assert_eq!((histogram.count(), histogram.sum), (6, u64::MAX));
    }

    fn of(nanoseconds: u64) -> Histogram {
        let mut histogram = Histogram::default();
        histogram.observe(nanoseconds, 1);
        histogram
    }

    /// The costliest get metrics of their own, and no sum that was served becomes smaller.
    #[test]
    fn sums_only_grow() {
        let mut sums = Limited::new(2);
        for (key, took) in [("a", 1), ("b", 20), ("c", 300)] {
            sums.add(key, &of(took));
        }
        let (own, others) = sums.serve();
        assert_eq!(own.keys().copied().collect::<Vec<_>>(), ["b", "c"]);
        assert_eq!(others.sum, 1);
        // It would be the costliest now.
        sums.add("a", &of(10_000));
        sums.add("b", &of(1));
        let (own, others) = sums.serve();
        assert_eq!((own["b"].sum, own["c"].sum, others.sum), (21, 300, 10_001));
        assert_eq!(own.len(), 2);
    }

    #[test]
    fn names_that_are_never_served_have_a_limit() {
        let mut sums = Limited::new(2);
        (0..2 * MOST_NEW).for_each(|n| sums.add(n, &of(1)));
        assert_eq!(sums.new.len(), MOST_NEW);
        let (own, others) = sums.serve();
        assert_eq!(own.values().map(Histogram::count).sum::<u64>(), 2);
        assert_eq!(others.count(), 2 * MOST_NEW as u64 - 2);
    }
}
