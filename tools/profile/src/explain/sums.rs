//! What the detectors keep of the waits that they have seen, in bounded memory.
//!
//! A recording may have millions of locks and stacks. The ones that cost the most matter, so a map
//! that is full forgets the half that costs the least, and a list of candidates replaces its
//! cheapest one.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use waitword_record::format::Wait;

/// The most threads that are told apart at one lock, in a [`Bounded`] map.
pub(crate) const THREADS: usize = 64;

/// How many waits a record stands for.
pub(crate) fn weight(wait: &Wait) -> u64 {
    1 << wait.weight_shift.min(32)
}

/// The time that a record stands for, in nanoseconds.
pub(crate) fn lost(wait: &Wait) -> u64 {
    wait.took.saturating_mul(weight(wait))
}

/// So many thousandths of that time.
pub(crate) fn part(wait: &Wait, thousandths: u16) -> u64 {
    let part = u128::from(lost(wait)) * u128::from(thousandths.min(1000)) / 1000;
    u64::try_from(part).unwrap_or(u64::MAX)
}

/// Adds without overflow.
pub(crate) fn grow(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

/// What a [`Bounded`] map judges its values by.
pub(crate) trait Costs {
    /// The time lost.
    fn cost(&self) -> u64;
}

/// A map of the costliest keys, at most this many.
#[derive(Debug)]
pub(crate) struct Bounded<K, V, const MOST: usize = 4096>(HashMap<K, V>);

impl<K, V, const MOST: usize> Default for Bounded<K, V, MOST> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Copy + Eq + Hash + Ord, V: Default + Costs, const MOST: usize> Bounded<K, V, MOST> {
    /// The value of this key, which is new if it was not there.
    pub(crate) fn of(&mut self, key: K) -> &mut V {
        if self.0.len() >= MOST && !self.0.contains_key(&key) {
            let mut costs: Vec<(u64, K)> =
                self.0.iter().map(|(key, value)| (value.cost(), *key)).collect();
            costs.sort_unstable();
            for (_, cheap) in &costs[..costs.len().div_ceil(2)] {
                self.0.remove(cheap);
            }
        }
        self.0.entry(key).or_default()
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.0.get(key)
    }

    /// All of them, in order of their keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let mut all: Vec<_> = self.0.iter().collect();
        all.sort_unstable_by_key(|(key, _)| **key);
        all.into_iter()
    }
}

/// What happened at certain times, of which the latest are kept. The threads of a recording come in
/// blocks, so what happened once is complete only after a while.
#[derive(Debug)]
pub(crate) struct Recent<K, V>(BTreeMap<(u64, K), V>);

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Copy + Ord, V: Default> Recent<K, V> {
    const MOST: usize = 4096;

    /// The value of this key at this time, which is new if it was not there. If there are too many,
    /// gives the older half to `fold`.
    pub(crate) fn of(&mut self, when: u64, key: K, mut fold: impl FnMut(K, &V)) -> &mut V {
        if self.0.len() >= Self::MOST && !self.0.contains_key(&(when, key)) {
            for _ in 0..Self::MOST / 2 {
                if let Some(((_, key), value)) = self.0.pop_first() {
                    fold(key, &value);
                }
            }
        }
        self.0.entry((when, key)).or_default()
    }

    /// Those that are kept, the oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.0.iter().map(|((_, key), value)| (*key, value))
    }
}

/// A count of different things, up to a limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Few<T>(Vec<T>);

impl<T: PartialEq> Few<T> {
    const MOST: usize = 128;

    pub(crate) fn add(&mut self, one: T) {
        if self.0.len() < Self::MOST && !self.0.contains(&one) {
            self.0.push(one);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }

    /// Whether there may be more.
    pub(crate) fn is_full(&self) -> bool {
        self.0.len() == Self::MOST
    }

    /// The number of these things, in words.
    pub(crate) fn shown(&self, what: &str) -> String {
        match self.len() {
            Self::MOST => format!("{} or more {what}s", Self::MOST),
            number => super::count(number as u64, what),
        }
    }
}

/// The keys with the greatest sums: the Space-Saving algorithm of Metwally, Agrawal and El Abbadi.
/// A key that comes late inherits the sum of the one that it replaces, so a frequent one stays.
#[derive(Clone, Debug, Default)]
pub(crate) struct Top<T>(Vec<(T, u64)>);

impl<T: Copy + PartialEq> Top<T> {
    const MOST: usize = 16;

    pub(crate) fn add(&mut self, key: T, more: u64) {
        if let Some((_, sum)) = self.0.iter_mut().find(|(known, _)| *known == key) {
            grow(sum, more);
        } else if self.0.len() < Self::MOST {
            self.0.push((key, more));
        } else if let Some(least) = self.0.iter_mut().min_by_key(|(_, sum)| *sum) {
            *least = (key, least.1.saturating_add(more));
        }
    }

    /// The key with the greatest sum; of equals the first.
    pub(crate) fn first(&self) -> Option<T> {
        self.0.iter().rev().max_by_key(|(_, sum)| *sum).map(|(key, _)| *key)
    }
}

/// Waits with something in common: the same lock, or the same code.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    /// How many, also those that sampling left out.
    pub(crate) waits: u64,
    /// How long they took together, in nanoseconds.
    pub(crate) lost: u64,
    /// The longest.
    pub(crate) longest: u64,
    /// The part of `lost` in which the holder ran, ...
    pub(crate) running: u64,
    /// ... was runnable without a CPU, ...
    pub(crate) preempted: u64,
    /// ... and slept.
    pub(crate) asleep: u64,
    /// How often other threads released the lock meanwhile.
    pub(crate) passed: u64,
    /// The threads that waited.
    pub(crate) threads: Few<u32>,
    /// The locks.
    pub(crate) locks: Few<u64>,
    /// The stacks of the waiter and of the holder.
    pub(crate) stacks: Top<(u32, u32)>,
    /// When the first wait began and the last one ended; 0: none.
    pub(crate) between: (u64, u64),
}

impl Costs for Sums {
    fn cost(&self) -> u64 {
        self.lost
    }
}

impl Sums {
    pub(crate) fn add(&mut self, thread: u32, wait: &Wait) {
        let (weight, lost) = (weight(wait), lost(wait));
        grow(&mut self.waits, weight);
        grow(&mut self.lost, lost);
        self.longest = self.longest.max(wait.took);
        grow(&mut self.running, part(wait, wait.running));
        grow(&mut self.preempted, part(wait, wait.preempted));
        grow(&mut self.asleep, part(wait, wait.asleep));
        grow(&mut self.passed, weight.saturating_mul(wait.passed.into()));
        self.threads.add(thread);
        self.locks.add(wait.address);
        self.stacks.add((wait.stack, wait.holder_stack), lost);
        let ended = wait.began.saturating_add(wait.took);
        self.between = match self.between {
            (0, 0) => (wait.began, ended),
            (first, last) => (first.min(wait.began), last.max(ended)),
        };
    }

    /// How many threads waited at the same time, on average from the first wait to the last.
    pub(crate) fn queue(&self) -> f64 {
        let (first, last) = self.between;
        self.lost as f64 / last.saturating_sub(first).max(1) as f64
    }

    /// How many other threads had the lock during one wait, on average.
    pub(crate) fn passed_per_wait(&self) -> f64 {
        self.passed as f64 / self.waits.max(1) as f64
    }

    /// For how long each holder kept the lock, as a wait sees it: a wait lasts until those that
    /// came first and the last holder have released it.
    pub(crate) fn hold(&self) -> u64 {
        self.lost / self.passed.saturating_add(self.waits).max(1)
    }

    /// The stacks of the waiter and of the holder that cost the most.
    pub(crate) fn worst(&self) -> (u32, u32) {
        self.stacks.first().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct Cost(u64);

    impl Costs for Cost {
        fn cost(&self) -> u64 {
            self.0
        }
    }

    #[test]
    fn a_full_map_keeps_what_costs_the_most() {
        let mut map: Bounded<u64, Cost, 8> = Bounded::default();
        map.of(1000).0 = 1 << 40;
        (0..100).for_each(|key| map.of(key).0 = key);
        assert!(map.0.len() <= 8);
        assert_eq!(map.get(&1000).unwrap().0, 1 << 40);
        assert_eq!(map.iter().next().unwrap().0 / 90, 1, "{:?}", map.0);
    }

    #[test]
    fn a_frequent_key_is_found_among_many() {
        let mut top = Top::default();
        for n in 0..1000_u32 {
            top.add(n, 1);
            top.add(7777, 3);
        }
        assert_eq!(top.first(), Some(7777));
        assert!(top.0.len() <= Top::<u32>::MOST);
        assert_eq!(Top::<u32>::default().first(), None);
    }

    #[test]
    fn few_things_are_counted_and_many_are_said_to_be_many() {
        let mut few = Few::default();
        (0..5).for_each(|n| few.add(n % 3));
        assert_eq!((few.len(), few.shown("lock")), (3, "3 locks".to_owned()));
        (0..1000).for_each(|n| few.add(n));
        assert_eq!(few.shown("lock"), "128 or more locks");
    }
}
