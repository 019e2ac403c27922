//! The waits for each object: how long they were, how evenly the threads were served, and because
//! of whom they waited.
//!
//! A program may have millions of locks. When there are too many here, the half that lost the least
//! time is added to a rest and forgotten; a lock that comes back begins again. So the locks at the
//! top are right, and what is missing is in [`Rest`].

use crate::read::Fold;
use crate::sites::{Site, weight};
use crate::top::Top;
use core::cmp::Reverse;
use std::collections::HashMap;
use waitword_record::format::{Object, Wait};

/// How many objects are told apart.
const MOST: usize = 1 << 14;
/// How many threads all objects together, and one alone, tell apart.
const MOST_THREADS: usize = 1 << 19;
const MOST_THREADS_OF_ONE: usize = 1 << 12;
/// The buckets of a histogram of times: four for each power of two, up to 2⁴⁰ ns.
pub const BUCKETS: usize = 4 * 40;

/// The bucket of a time in nanoseconds. The last one has all longer ones too.
pub fn bucket(nanoseconds: u64) -> usize {
    let power = nanoseconds.max(1).ilog2();
    let quarter = (u128::from(nanoseconds.max(1)) << 2 >> power) as usize & 3;
    (4 * power as usize + quarter).min(BUCKETS - 1)
}

/// The shortest time of a bucket, in nanoseconds. (The first few are narrower than a nanosecond.)
pub fn shortest(bucket: usize) -> u64 {
    let (power, quarter) = (bucket / 4, bucket as u64 % 4);
    ((4 + quarter) << power).div_ceil(4)
}

/// What tells objects apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// What was waited for.
    pub object: Object,
    /// Its address.
    pub address: u64,
}

impl Key {
    /// What it is called in a sentence: "rwlock to read".
    pub fn object_name(&self) -> &'static str {
        match self.object {
            Object::Mutex => "mutex",
            Object::Read => "rwlock to read",
            Object::Write => "rwlock to write",
            Object::Condvar => "condition variable",
            Object::Semaphore => "semaphore",
            Object::Barrier => "barrier",
            Object::Futex => "futex",
            Object::Join => "join",
            Object::Once => "once",
            Object::Spin => "spin lock",
        }
    }
}

/// What a thread waited for an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// How often.
    pub count: u64,
    /// How long in all, in nanoseconds.
    pub nanoseconds: u64,
}

/// The waits for an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Which one.
    pub key: Key,
    /// All its waits.
    pub sum: Site,
    /// How many waits took how long, by [`bucket`].
    pub histogram: [u64; BUCKETS],
    /// What each thread waited, the longest first. At most 4096 threads.
    pub threads: Vec<(u32, Share)>,
    /// The stacks that waited, with those that kept the object, by nanoseconds.
    pub stacks: Top<(u32, u32)>,
    /// The threads that kept it, by nanoseconds.
    pub holders: Top<u32>,
}

impl Lock {
    /// Jain's index of the times that the threads waited: 1 if all waited equally long, and one
    /// divided by their number if one waited and the others hardly did. `None` for a single thread.
    pub fn fairness(&self) -> Option<f64> {
        let times = self.threads.iter().map(|(_, share)| share.nanoseconds as f64);
        let (sum, squares) =
            times.fold((0.0, 0.0), |(sum, squares), time| (sum + time, squares + time * time));
        let count = self.threads.len();
        (count > 1 && squares > 0.0).then(|| sum * sum / (count as f64 * squares))
    }

    /// The time that this share of all waits did not exceed, from 0 to 1: the upper end of its
    /// bucket, in nanoseconds, but no more than the longest.
    pub fn quantile(&self, share: f64) -> u64 {
        let wanted = (self.sum.count as f64 * share).ceil().max(1.0);
        let mut seen = 0.0;
        let bucket = self.histogram.iter().position(|count| {
            seen += *count as f64;
            seen >= wanted
        });
        bucket.map_or(self.sum.longest, |bucket| shortest(bucket + 1).min(self.sum.longest))
    }
}

/// The objects that are not told apart any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rest {
    /// How often an object was forgotten.
    pub objects: u64,
    /// The waits for them that are lost to the list.
    pub count: u64,
    /// How long these took, in nanoseconds.
    pub nanoseconds: u64,
}

/// Objects in the making.
#[derive(Debug, Default)]
pub struct Locks {
    all: HashMap<Key, Growing>,
    threads: usize,
    rest: Rest,
}

#[derive(Debug)]
struct Growing {
    lock: Lock,
    threads: HashMap<u32, Share>,
}

impl Fold for Locks {
    fn add(&mut self, thread: u32, wait: &Wait) {
        let Some(object) = wait.object() else {
            return;
        };
        if self.all.len() >= MOST || self.threads >= MOST_THREADS {
            self.forget_half();
        }
        let key = Key { object, address: wait.address };
        let Growing { lock, threads } = self.all.entry(key).or_insert_with(|| Growing::new(key));
        let weight = weight(wait);
        let took = wait.took.saturating_mul(weight);
        lock.sum.add(wait);
        lock.stacks.add((wait.stack, wait.holder_stack), took);
        if wait.holder != 0 {
            lock.holders.add(wait.holder, took);
        }
        let bucket = &mut lock.histogram[bucket(wait.took)];
        *bucket = bucket.saturating_add(weight);
        if threads.len() < MOST_THREADS_OF_ONE || threads.contains_key(&thread) {
            let before = threads.len();
            let share = threads.entry(thread).or_default();
            share.count = share.count.saturating_add(weight);
            share.nanoseconds = share.nanoseconds.saturating_add(took);
            self.threads += threads.len() - before;
        }
    }
}

impl Growing {
    fn new(key: Key) -> Self {
        let lock = Lock {
            key,
            sum: Site { objects: 1, ..Site::default() },
            histogram: [0; BUCKETS],
            threads: Vec::new(),
            stacks: Top::default(),
            holders: Top::default(),
        };
        Self { lock, threads: HashMap::new() }
    }
}

impl Locks {
    fn forget_half(&mut self) {
        let mut times: Vec<u64> =
            self.all.values().map(|growing| growing.lock.sum.nanoseconds).collect();
        times.sort_unstable();
        let median = times[times.len() / 2];
        let (rest, threads) = (&mut self.rest, &mut self.threads);
        // Of those in the middle some have to go.
        let longer = times.len() - times.partition_point(|time| *time <= median);
        let mut may_stay = (times.len() / 2).saturating_sub(longer);
        self.all.retain(|_, growing| {
            let sum = &growing.lock.sum;
            let is_median = sum.nanoseconds == median && may_stay > 0;
            may_stay -= usize::from(is_median);
            let stays = sum.nanoseconds > median || is_median;
            if !stays {
                rest.objects += 1;
                rest.count = rest.count.saturating_add(sum.count);
                rest.nanoseconds = rest.nanoseconds.saturating_add(sum.nanoseconds);
                *threads -= growing.threads.len();
            }
            stays
        });
    }

    /// The objects, those that lost the most time first, and what is not told apart.
    pub fn finish(self) -> (Vec<Lock>, Rest) {
        let finished = |Growing { mut lock, threads }| {
            lock.sum.threads = threads.len();
            lock.threads = threads.into_iter().collect();
            lock.threads.sort_by_key(|(thread, share)| (Reverse(share.nanoseconds), *thread));
            lock
        };
        let mut all: Vec<Lock> = self.all.into_values().map(finished).collect();
        all.sort_by_key(|lock| (Reverse(lock.sum.nanoseconds), lock.key.address));
        (all, self.rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sites::tests::wait;

    fn locks(waits: impl IntoIterator<Item = (u32, Wait)>) -> (Vec<Lock>, Rest) {
        let mut locks = Locks::default();
        for (thread, wait) in waits {
            locks.add(thread, &wait);
        }
        locks.finish()
    }

    #[test]
    fn an_object_has_the_times_of_its_waits_and_of_its_threads() {
        let long = Wait { weight_shift: 1, holder: 9, ..wait(Object::Mutex, 5000, 2, 3) };
        let other = Wait { address: 0x8000, ..wait(Object::Mutex, 1, 1, 0) };
        let short = wait(Object::Mutex, 1000, 1, 0);
        let (all, rest) = locks([(1, short), (2, long), (1, short), (3, other)]);
        assert_eq!((all.len(), rest), (2, Rest::default()));
        let first = &all[0];
        assert_eq!(first.key, Key { object: Object::Mutex, address: 0x7000 });
        assert_eq!((first.sum.count, first.sum.nanoseconds, first.sum.longest), (4, 12000, 5000));
        assert_eq!((first.histogram[bucket(1000)], first.histogram[bucket(5000)]), (2, 2));
        assert_eq!((first.quantile(0.5), first.quantile(0.51)), (1024, 5000));
        let share = |count, nanoseconds| Share { count, nanoseconds };
        assert_eq!(first.threads, [(2, share(2, 10_000)), (1, share(2, 2000))]);
        assert_eq!(first.stacks.first(), Some(((2, 3), 10_000)));
        assert_eq!(first.holders.first(), Some((9, 10_000)));
        let jain = 12_000_f64.powi(2) / (2.0 * (1e8 + 4e6));
        assert!((first.fairness().unwrap() - jain).abs() < 1e-9);
        assert_eq!(all[1].fairness(), None);
        assert_eq!((all[1].histogram[0], all[1].quantile(1.0)), (1, 1));
    }

    #[test]
    fn every_time_is_in_its_bucket() {
        for time in (1..5000).chain([1 << 30, (1 << 30) + 1, (1 << 30) - 1, (1 << 40) - 1]) {
            let bucket = bucket(time);
            assert!((shortest(bucket)..shortest(bucket + 1)).contains(&time), "{time}: {bucket}");
        }
        assert_eq!((bucket(0), bucket(u64::MAX)), (0, BUCKETS - 1));
    }

    #[test]
    fn too_many_objects_become_a_rest_and_no_time_is_lost() {
        let hot = Wait { address: 1, ..wait(Object::Mutex, 100, 1, 0) };
        let count = 3 * MOST as u64;
        let (all, rest) = locks((0..count).flat_map(|number| {
            let cold = Wait { address: 16 * number, took: 10, ..hot };
            [(1, cold), (2, hot)]
        }));
        assert!(all.len() < MOST && rest.objects > MOST as u64);
        assert_eq!((all[0].key.address, all[0].sum.nanoseconds), (1, 100 * count));
        let total: u64 = all.iter().map(|lock| lock.sum.nanoseconds).sum();
        assert_eq!(total + rest.nanoseconds, 110 * count);
    }
}
