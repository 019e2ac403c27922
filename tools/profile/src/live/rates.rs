//! Sums of waits: since the beginning, and in slots of the recent past, one for each poll.
//!
//! A wait belongs to the slot in which it ends. For locks there is a second sum, the *share* of the
//! slot: the part of each wait that lies in it, waits included that have not ended. It is how much
//! time threads lost in this very slot: two threads that wait all the time lose two seconds per
//! second, also while nothing ends.

use super::ProcessId;
use super::process::Followed;
use crate::sites::{Key, Site};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use waitword_record::format::{Ended, Object, Wait};

/// How long slots are kept, in nanoseconds.
pub const HISTORY: u64 = 300_000_000_000;
/// The most slots, whatever their length.
const MOST_SLOTS: usize = 3000;
/// The most sites in all slots together, and in the sums since the beginning.
const MOST_SITES: usize = 1 << 16;
/// The most sites in one slot.
const MOST_SITES_OF_A_SLOT: usize = 1 << 14;

/// What tells the sums apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The process.
    pub process: ProcessId,
    /// What was waited for.
    pub object: Object,
    /// Its address.
    pub address: u64,
    /// The waiter's stack; 0: unknown.
    pub stack: u32,
    /// The stack of the thread that kept it; 0: unknown.
    pub holder_stack: u32,
}

impl Place {
    /// As a site, for the exports.
    pub(super) fn site(&self) -> Key {
        Key { object: self.object, stack: self.stack, holder_stack: self.holder_stack }
    }

    /// The lock.
    pub fn lock(&self) -> Lock {
        Lock { process: self.process, address: self.address }
    }
}

/// A lock, or another object, of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lock {
    /// The process.
    pub process: ProcessId,
    /// The address.
    pub address: u64,
}

/// Sums of waits; times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// How many ended, also those that were not recorded because of sampling.
    pub count: u64,
    /// How long they took.
    pub nanoseconds: u64,
    /// The part of the slots during which they lasted.
    pub share: u64,
    /// The longest.
    pub longest: u64,
    /// How many ended by a deadline.
    pub timed_out: u64,
    /// How many ended because the lock was handed over.
    pub handed_over: u64,
    /// The part of `nanoseconds` during which the holder ran, ...
    pub running: u64,
    /// ... was runnable, but had no CPU, ...
    pub preempted: u64,
    /// ... and slept. The rest is unknown.
    pub asleep: u64,
}

impl Sums {
    /// One wait; `share` of it lies in the slot.
    fn of(wait: &Wait, share: u64) -> Self {
        let weight = weight(wait);
        let nanoseconds = wait.took.saturating_mul(weight);
        let part = |thousandths: u16| {
            (u128::from(nanoseconds) * u128::from(thousandths.min(1000)) / 1000) as u64
        };
        let if_ended = |how: Ended| if wait.ended == how as u8 { weight } else { 0 };
        Self {
            count: weight,
            nanoseconds,
            share: share.saturating_mul(weight),
            longest: wait.took,
            timed_out: if_ended(Ended::TimedOut),
            handed_over: if_ended(Ended::HandedOver),
            running: part(wait.running),
            preempted: part(wait.preempted),
            asleep: part(wait.asleep),
        }
    }

    /// Adds other waits.
    pub fn add(&mut self, other: &Self) {
        let sum = |to: &mut u64, more: u64| *to = to.saturating_add(more);
        sum(&mut self.count, other.count);
        sum(&mut self.nanoseconds, other.nanoseconds);
        sum(&mut self.share, other.share);
        self.longest = self.longest.max(other.longest);
        sum(&mut self.timed_out, other.timed_out);
        sum(&mut self.handed_over, other.handed_over);
        sum(&mut self.running, other.running);
        sum(&mut self.preempted, other.preempted);
        sum(&mut self.asleep, other.asleep);
    }

    /// Adds these to a site.
    pub(super) fn add_to(&self, site: &mut Site) {
        site.count = site.count.saturating_add(self.count);
        site.nanoseconds = site.nanoseconds.saturating_add(self.nanoseconds);
        site.longest = site.longest.max(self.longest);
        site.timed_out = site.timed_out.saturating_add(self.timed_out);
        site.running = site.running.saturating_add(self.running);
        site.preempted = site.preempted.saturating_add(self.preempted);
        site.asleep = site.asleep.saturating_add(self.asleep);
        site.objects += 1;
    }
}

/// How many waits this one stands for.
pub fn weight(wait: &Wait) -> u64 {
    1 << wait.weight_shift.min(32)
}

/// A map with a limit. Beyond it, what lost the least time goes into one sum for all others.
#[derive(Debug)]
struct Limited<K> {
    all: HashMap<K, Sums>,
    others: Sums,
    most: usize,
}

impl<K: Copy + Eq + Hash> Limited<K> {
    fn new(most: usize) -> Self {
        Self { all: HashMap::new(), others: Sums::default(), most }
    }

    fn add(&mut self, key: K, sums: &Sums) {
        if self.all.len() >= self.most && !self.all.contains_key(&key) {
            let mut lost: Vec<u64> = self.all.values().map(|sums| sums.nanoseconds).collect();
            let middle = lost.len() / 2;
            let (_, &mut limit, _) = lost.select_nth_unstable(middle);
            let mut room = middle + 1;
            self.all.retain(|_, sums| {
                let leaves = sums.nanoseconds <= limit && room > 0;
                if leaves {
                    room -= 1;
                    self.others.add(sums);
                }
                !leaves
            });
        }
        self.all.entry(key).or_default().add(sums);
    }

    fn forget(&mut self, is_it: impl Fn(&K) -> bool) {
        let others = &mut self.others;
        self.all.retain(|key, sums| {
            let leaves = is_it(key);
            if leaves {
                others.add(sums);
            }
            !leaves
        });
    }
}

/// The sums of the time between two polls.
#[derive(Debug)]
struct Slot {
    from: u64,
    until: u64,
    sites: Limited<Place>,
    /// Shares of waits that had not ended.
    waiting: HashMap<Lock, (Object, u64)>,
}

impl Slot {
    fn new(from: u64) -> Self {
        let (sites, waiting) = (Limited::new(MOST_SITES_OF_A_SLOT), HashMap::new());
        Self { from, until: from, sites, waiting }
    }
}

/// All sums.
#[derive(Debug)]
pub struct Rates {
    slots: VecDeque<Slot>,
    now: Slot,
    total: Limited<Place>,
    threads: Limited<(Lock, u32)>,
}

/// What is known of a lock or another object, lately and since the beginning.
#[derive(Clone, Debug)]
pub struct Row {
    /// Which one.
    pub lock: Lock,
    /// What was waited for most.
    pub object: Object,
    /// Of the waits that ended lately; `share` is that of all.
    pub recent: Sums,
    /// Of all.
    pub total: Sums,
    /// The number of threads that wait now.
    pub waiters: u32,
    /// Since when the first of them waits.
    pub since: Option<u64>,
    /// How long they wait already, together.
    pub so_far: u64,
    /// The threads that hold it now, as far as is known.
    pub holders: Vec<u32>,
    /// Where the most time was lost: lately if any wait ended, else since the beginning.
    pub worst: Option<Place>,
}

impl Rates {
    /// Begins now.
    pub fn new(now: u64) -> Self {
        Self {
            slots: VecDeque::new(),
            now: Slot::new(now),
            total: Limited::new(MOST_SITES),
            threads: Limited::new(MOST_SITES),
        }
    }

    /// A wait that has ended.
    pub fn add(&mut self, process: ProcessId, thread: u32, wait: &Wait) {
        let Some(object) = wait.object() else {
            return;
        };
        let (stack, holder_stack) = (wait.stack, wait.holder_stack);
        let place = Place { process, object, address: wait.address, stack, holder_stack };
        let ended = wait.began.saturating_add(wait.took);
        let share = ended.saturating_sub(wait.began.max(self.now.from));
        let sums = Sums::of(wait, share);
        self.now.sites.add(place, &sums);
        self.total.add(place, &sums);
        self.threads.add((place.lock(), thread), &sums);
    }

    /// A poll has ended: what comes from now on belongs to another slot.
    pub fn end_slot<'a>(&mut self, now: u64, processes: impl Iterator<Item = &'a Followed>) {
        let from = self.now.from;
        for process in processes {
            for waiting in process.threads.iter().filter_map(|thread| thread.waiting) {
                let lock = Lock { process: process.id, address: waiting.address };
                let share = now.saturating_sub(waiting.since.max(from));
                let (_, sum) = self.now.waiting.entry(lock).or_insert((waiting.object, 0));
                *sum = sum.saturating_add(share);
            }
        }
        self.now.until = now;
        let ended = core::mem::replace(&mut self.now, Slot::new(now));
        self.slots.push_back(ended);
        let mut sites: usize = self.slots.iter().map(|slot| slot.sites.all.len()).sum();
        while self.slots.len() > 1 {
            let first = &self.slots[0];
            let is_needed = first.until.saturating_add(HISTORY) > now
                && sites <= MOST_SITES
                && self.slots.len() <= MOST_SLOTS;
            if is_needed {
                break;
            }
            sites -= first.sites.all.len();
            self.slots.pop_front();
        }
    }

    /// A process is not followed any more: its sums go to those of all others.
    pub fn forget(&mut self, process: ProcessId) {
        self.total.forget(|place| place.process == process);
        self.threads.forget(|(lock, _)| lock.process == process);
        self.slots.iter_mut().for_each(|it| it.sites.forget(|place| place.process == process));
    }

    /// The newest slots that cover this time, at least one if there is any, and how long they are
    /// in nanoseconds.
    fn recent(&self, nanoseconds: u64) -> (impl Iterator<Item = &Slot>, u64) {
        let until = self.slots.back().map_or(0, |slot| slot.until);
        // A poll is never on time to the microsecond.
        let enough = nanoseconds - nanoseconds / 8;
        let count =
            self.slots.iter().rev().take_while(|slot| {
                slot.until == until || until.saturating_sub(slot.until) < enough
            });
        let count = count.count();
        let from = self.slots.iter().rev().take(count).next_back().map_or(until, |slot| slot.from);
        (self.slots.iter().rev().take(count), until.saturating_sub(from))
    }

    /// The sums by site of the waits that ended within the last `nanoseconds`, or of all.
    pub fn sites(&self, nanoseconds: Option<u64>) -> HashMap<Place, Sums> {
        let Some(nanoseconds) = nanoseconds else {
            return self.total.all.clone();
        };
        let mut all: HashMap<Place, Sums> = HashMap::new();
        for slot in self.recent(nanoseconds).0 {
            for (place, sums) in &slot.sites.all {
                all.entry(*place).or_default().add(sums);
            }
        }
        all
    }

    /// Every lock and other object, unsorted, and the length of the recent past (about
    /// `nanoseconds`) that is shown.
    pub fn rows<'a>(
        &self,
        nanoseconds: u64,
        processes: impl Iterator<Item = &'a Followed>,
    ) -> (Vec<Row>, u64) {
        let (slots, length) = self.recent(nanoseconds);
        let until = self.now.from;
        let mut rows: HashMap<Lock, Row> = HashMap::new();
        let mut worst: HashMap<Lock, (u64, Place)> = HashMap::new();
        for (place, sums) in &self.total.all {
            row(&mut rows, place.lock(), place.object).total.add(sums);
        }
        for slot in slots {
            for (place, sums) in &slot.sites.all {
                row(&mut rows, place.lock(), place.object).recent.add(sums);
                let of_slot = worst.entry(place.lock()).or_insert((0, *place));
                if sums.nanoseconds > of_slot.0 {
                    *of_slot = (sums.nanoseconds, *place);
                }
            }
            for (lock, (object, share)) in &slot.waiting {
                let row = row(&mut rows, *lock, *object);
                row.recent.share = row.recent.share.saturating_add(*share);
            }
        }
        let mut of_all: HashMap<Lock, (u64, Place)> = HashMap::new();
        for (place, sums) in &self.total.all {
            if !worst.contains_key(&place.lock()) {
                let of_lock = of_all.entry(place.lock()).or_insert((0, *place));
                if sums.nanoseconds > of_lock.0 {
                    *of_lock = (sums.nanoseconds, *place);
                }
            }
        }
        for (lock, (_, place)) in worst.into_iter().chain(of_all) {
            if let Entry::Occupied(mut row) = rows.entry(lock) {
                let row = row.get_mut();
                (row.worst, row.object) = (Some(place), place.object);
            }
        }
        for process in processes {
            for thread in &process.threads {
                if let Some(waiting) = thread.waiting {
                    let lock = Lock { process: process.id, address: waiting.address };
                    let row = row(&mut rows, lock, waiting.object);
                    row.waiters += 1;
                    let since = row.since.map_or(waiting.since, |it| it.min(waiting.since));
                    row.since = Some(since);
                    let so_far = until.saturating_sub(waiting.since);
                    row.so_far = row.so_far.saturating_add(so_far);
                }
                for (address, _) in &thread.held {
                    let lock = Lock { process: process.id, address: *address };
                    if let Some(row) = rows.get_mut(&lock) {
                        row.holders.push(thread.thread);
                    }
                }
            }
        }
        (rows.into_values().collect(), length)
    }

    /// Where threads waited for this lock since the beginning, what lost the most time first.
    pub fn places(&self, lock: Lock) -> Vec<(Place, Sums)> {
        let of_lock = self.total.all.iter().filter(|(place, _)| place.lock() == lock);
        let mut all: Vec<_> = of_lock.map(|(place, sums)| (*place, *sums)).collect();
        all.sort_by_key(|(place, sums)| (core::cmp::Reverse(sums.nanoseconds), place.stack));
        all
    }

    /// The threads that waited for this lock since the beginning, likewise.
    pub fn threads(&self, lock: Lock) -> Vec<(u32, Sums)> {
        let of_lock = self.threads.all.iter().filter(|((of, _), _)| *of == lock);
        let mut all: Vec<_> = of_lock.map(|((_, thread), sums)| (*thread, *sums)).collect();
        all.sort_by_key(|(thread, sums)| (core::cmp::Reverse(sums.nanoseconds), *thread));
        all
    }

    /// The waits since the beginning whose places are not kept: there were too many.
    pub fn others(&self) -> Sums {
        self.total.others
    }
}

fn row(rows: &mut HashMap<Lock, Row>, lock: Lock, object: Object) -> &mut Row {
    rows.entry(lock).or_insert_with(|| Row {
        lock,
        object,
        recent: Sums::default(),
        total: Sums::default(),
        waiters: 0,
        since: None,
        so_far: 0,
        holders: Vec::new(),
        worst: None,
    })
}

/// The name of an object's kind, as users call it.
pub fn kind(object: Object) -> &'static str {
    match object {
        Object::Mutex => "mutex",
        Object::Read => "rwlock, to read",
        Object::Write => "rwlock, to write",
        Object::Condvar => "condvar",
        Object::Semaphore => "semaphore",
        Object::Barrier => "barrier",
        Object::Futex => "futex",
        Object::Join => "join",
        Object::Once => "once",
        Object::Spin => "spin lock",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use waitword_record::format::Tag;

    const SECOND: u64 = 1_000_000_000;

    fn wait(address: u64, began: u64, took: u64, stack: u32) -> Wait {
        Wait {
            tag: Tag::Wait as u8,
            object: Object::Mutex as u8,
            ended: Ended::HandedOver as u8,
            weight_shift: 0,
            stack,
            began,
            took,
            address,
            holder: 0,
            holder_stack: 0,
            waker: 0,
            in_vain: 0,
            passed: 0,
            running: 250,
            preempted: 0,
            asleep: 750,
            call: 0,
            next: 0,
        }
    }

    fn end_slot(rates: &mut Rates, now: u64) {
        rates.end_slot(now, core::iter::empty());
    }

    fn only_row(rates: &Rates) -> (Row, u64) {
        let (mut rows, length) = rates.rows(SECOND, core::iter::empty());
        assert_eq!(rows.len(), 1);
        (rows.remove(0), length)
    }

    #[test]
    fn a_long_wait_counts_in_a_slot_as_far_as_it_lies_there() {
        let mut rates = Rates::new(10 * SECOND);
        rates.add(0, 7, &wait(0x10, 8 * SECOND, 5 * SECOND / 2, 1));
        end_slot(&mut rates, 11 * SECOND);
        let (row, length) = only_row(&rates);
        assert_eq!(length, SECOND);
        assert_eq!((row.recent.share, row.recent.nanoseconds), (SECOND / 2, 5 * SECOND / 2));
        assert_eq!((row.recent.asleep, row.recent.running), (15 * SECOND / 8, 5 * SECOND / 8));
        assert_eq!((row.recent.count, row.recent.handed_over), (1, 1));
        // Later it is over, and only in the sums since the beginning.
        end_slot(&mut rates, 12 * SECOND);
        let (row, _) = only_row(&rates);
        assert_eq!((row.recent, row.total.count), (Sums::default(), 1));
        assert_eq!(row.worst.unwrap().stack, 1);
    }

    #[test]
    fn short_slots_add_up_to_the_time_that_is_wanted() {
        let mut rates = Rates::new(0);
        for n in 1..=8 {
            rates.add(0, 7, &wait(0x10, n * SECOND / 4 - 1000, 1000, 1));
            end_slot(&mut rates, n * SECOND / 4 + n % 2 * 1000);
        }
        let (row, length) = only_row(&rates);
        assert_eq!((row.recent.count, row.total.count), (4, 8));
        assert!(length.abs_diff(SECOND) < SECOND / 100);
        assert_eq!(rates.sites(Some(SECOND)).values().map(|it| it.count).sum::<u64>(), 4);
        assert_eq!(rates.sites(None).values().map(|it| it.count).sum::<u64>(), 8);
    }

    #[test]
    fn the_places_and_threads_of_a_lock_come_by_time() {
        let mut rates = Rates::new(0);
        for (thread, stack, took) in [(1, 1, 500), (2, 2, 900), (3, 2, 1)] {
            rates.add(0, thread, &wait(0x10, 0, took, stack));
        }
        rates.add(0, 9, &Wait { weight_shift: 3, ..wait(0x20, 0, 100, 1) });
        let lock = Lock { process: 0, address: 0x10 };
        let places: Vec<_> =
            rates.places(lock).iter().map(|(it, sums)| (it.stack, sums.nanoseconds)).collect();
        assert_eq!(places, [(2, 901), (1, 500)]);
        let threads: Vec<_> = rates.threads(lock).iter().map(|(thread, _)| *thread).collect();
        assert_eq!(threads, [2, 1, 3]);
        let other = rates.places(Lock { process: 0, address: 0x20 })[0].1;
        assert_eq!((other.count, other.nanoseconds, other.longest), (8, 800, 100));
        rates.forget(0);
        assert!(rates.places(lock).is_empty());
        assert_eq!(rates.others().nanoseconds, 1401 + 800);
    }

    #[test]
    fn there_is_a_limit_and_nothing_is_lost_beyond_it() {
        let mut limited = Limited::new(100);
        for n in 0..1000_u64 {
            limited.add(n, &Sums { count: 1, nanoseconds: n % 7, ..Sums::default() });
            assert!(limited.all.len() <= 100);
        }
        let kept: u64 = limited.all.values().map(|sums| sums.count).sum();
        assert_eq!(kept + limited.others.count, 1000);
        let mut rates = Rates::new(0);
        for n in 0..2 * MOST_SLOTS as u64 {
            end_slot(&mut rates, n);
        }
        assert_eq!(rates.slots.len(), MOST_SLOTS);
        end_slot(&mut rates, 2 * HISTORY);
        assert_eq!(rates.slots.len(), 1);
    }
}
